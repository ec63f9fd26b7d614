/* The layer classes that network files and models may name, in the order of listings. */
#include "layers/layers_internal.h"

#include <string.h>

static const sdlf_layer_class *const classes[] = {
    &sdlf_conv2d_class,
    &sdlf_max_pool2d_class,
    &sdlf_avg_pool2d_class,
    &sdlf_global_avg_pool2d_class,
    &sdlf_fully_connected_class,
    &sdlf_graph_conv_class,
    &sdlf_batch_norm2d_class,
    &sdlf_dropout_class,
    &sdlf_relu_class,
    &sdlf_relu6_class,
    &sdlf_clip_class,
    &sdlf_leaky_relu_class,
    &sdlf_sigmoid_class,
    &sdlf_tanh_class,
    &sdlf_unary_class,
    &sdlf_flatten_class,
    &sdlf_reshape_class,
    &sdlf_add_class,
    &sdlf_concat_class,
    &sdlf_binary_class,
    &sdlf_select_class,
    &sdlf_reduce_class,
    &sdlf_arg_reduce_class,
    &sdlf_gather_class,
    &sdlf_matmul_class,
    &sdlf_conv_transpose2d_class,
    &sdlf_layer_norm_class,
    &sdlf_group_norm_class,
    &sdlf_lrn_class,
    &sdlf_top_k_class,
    &sdlf_resize_class,
    &sdlf_value_class,
    &sdlf_cast_class,
    &sdlf_transpose_class,
    &sdlf_slice_class,
    &sdlf_pad_class,
    &sdlf_expand_class,
    &sdlf_tile_class,
    &sdlf_depth_to_space_class,
    &sdlf_space_to_depth_class,
    &sdlf_softmax_class,
    &sdlf_log_softmax_class,
    &sdlf_softmax_cross_entropy_class,
    &sdlf_mse_class,
    &sdlf_mae_class,
    &sdlf_huber_class,
    &sdlf_bce_with_logits_class,
};

const sdlf_layer_class *sdlf_layer_class_at(int index)
{
    int count = (int)(sizeof classes / sizeof classes[0]);
    return index >= 0 && index < count ? classes[index] : NULL;
}

const sdlf_layer_class *sdlf_layer_class_find(const char *name)
{
    if (name == NULL) return NULL;
    for (int index = 0; name != NULL && sdlf_layer_class_at(index) != NULL; index++)
        if (strcmp(classes[index]->name, name) == 0) return classes[index];
    return NULL;
}
