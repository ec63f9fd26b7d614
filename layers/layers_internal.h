/* What the layer classes share: their tables, and checks for their `infer`. */
#ifndef SDLF_LAYERS_INTERNAL_H
#define SDLF_LAYERS_INTERNAL_H

#include <sdlf/layers.h>

extern const sdlf_layer_class sdlf_add_class;
extern const sdlf_layer_class sdlf_arg_reduce_class;
extern const sdlf_layer_class sdlf_avg_pool2d_class;
extern const sdlf_layer_class sdlf_batch_norm2d_class;
extern const sdlf_layer_class sdlf_bce_with_logits_class;
extern const sdlf_layer_class sdlf_binary_class;
extern const sdlf_layer_class sdlf_cast_class;
extern const sdlf_layer_class sdlf_clip_class;
extern const sdlf_layer_class sdlf_concat_class;
extern const sdlf_layer_class sdlf_conv2d_class;
extern const sdlf_layer_class sdlf_conv_transpose2d_class;
extern const sdlf_layer_class sdlf_depth_to_space_class;
extern const sdlf_layer_class sdlf_dropout_class;
extern const sdlf_layer_class sdlf_expand_class;
extern const sdlf_layer_class sdlf_flatten_class;
extern const sdlf_layer_class sdlf_fully_connected_class;
extern const sdlf_layer_class sdlf_gather_class;
extern const sdlf_layer_class sdlf_global_avg_pool2d_class;
extern const sdlf_layer_class sdlf_graph_conv_class;
extern const sdlf_layer_class sdlf_group_norm_class;
extern const sdlf_layer_class sdlf_huber_class;
extern const sdlf_layer_class sdlf_layer_norm_class;
extern const sdlf_layer_class sdlf_leaky_relu_class;
extern const sdlf_layer_class sdlf_log_softmax_class;
extern const sdlf_layer_class sdlf_lrn_class;
extern const sdlf_layer_class sdlf_mae_class;
extern const sdlf_layer_class sdlf_matmul_class;
extern const sdlf_layer_class sdlf_max_pool2d_class;
extern const sdlf_layer_class sdlf_mse_class;
extern const sdlf_layer_class sdlf_pad_class;
extern const sdlf_layer_class sdlf_reduce_class;
extern const sdlf_layer_class sdlf_relu6_class;
extern const sdlf_layer_class sdlf_relu_class;
extern const sdlf_layer_class sdlf_reshape_class;
extern const sdlf_layer_class sdlf_resize_class;
extern const sdlf_layer_class sdlf_select_class;
extern const sdlf_layer_class sdlf_sigmoid_class;
extern const sdlf_layer_class sdlf_slice_class;
extern const sdlf_layer_class sdlf_softmax_class;
extern const sdlf_layer_class sdlf_softmax_cross_entropy_class;
extern const sdlf_layer_class sdlf_space_to_depth_class;
extern const sdlf_layer_class sdlf_tanh_class;
extern const sdlf_layer_class sdlf_tile_class;
extern const sdlf_layer_class sdlf_top_k_class;
extern const sdlf_layer_class sdlf_transpose_class;
extern const sdlf_layer_class sdlf_unary_class;
extern const sdlf_layer_class sdlf_value_class;

/* The options of a layer that has none but its name. */
typedef struct sdlf_plain_options {
    const char *name;
} sdlf_plain_options;

/* The field table that goes with them: empty. */
extern const sdlf_field sdlf_plain_fields[];

/* ---- checks for `infer`; their messages begin with what is wrong, status SDLF_ERROR_SHAPE ---- */

/* Input `index` has the plan's floating type. */
sdlf_status sdlf_layer_check_float(const sdlf_signature *signature, int index);

/* Input `index` is floating and has this many dimensions; `form` says which: "(N,C,H,W)". */
sdlf_status sdlf_layer_check_rank(const sdlf_signature *signature, int index, int rank, const char *form);

/* A window of these options, vertical and horizontal: a stride of 0 is the size, a dilation of 0 is 1, `extra` is added to the
 * padding below and right. */
sdlf_window2d sdlf_layer_window(const int size[2], const int stride[2], const int dilation[2], const int padding[2],
                                const int extra[2]);

/* The size of a window's output over an image of (N,C,H,W); each at least 1. `what` is the window's name: "kernel". */
sdlf_status sdlf_layer_window_output(const sdlf_window2d *window, sdlf_shape input, const char *what,
                                     int64_t output[2]);

/* Where an operation writes a parameter's gradient that it cannot leave out: the gradient, or, of a frozen parameter, a scratch tensor. */
sdlf_tensor sdlf_layer_gradient(sdlf_layer_context *context, int parameter);

#endif
