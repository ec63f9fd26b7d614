/* SPDX-License-Identifier: MIT */
/* The built-in networks: for images of any size, or sequences of any length, and any number of classes. */
#include <sdlf/formats.h>

#include <stdio.h>
#include <string.h>

#include <sdlf/suggest.h>

#include "framework/formats/builtin_networks.h"
#include "framework/model_internal.h"
#include "framework/require.h"

sdlf_node network_conv_bn(sdlf_model *net, sdlf_node x, const network_conv *o)
{
    x = sdlf_conv2d(net, x,
                    &(sdlf_conv2d_options){.name = o->conv,
                                           .filters = o->filters,
                                           .kernel = {o->kernel, o->kernel},
                                           .stride = {o->stride, o->stride},
                                           .padding = {o->kernel / 2, o->kernel / 2},
                                           .groups = o->groups > 0 ? o->groups : 1,
                                           .no_bias = !o->bias,
                                           .initializer = SDLF_INIT_HE_NORMAL});
    return sdlf_batch_norm2d(net, x, &(sdlf_batch_norm2d_options){.name = o->norm});
}

sdlf_node network_fully_connected(sdlf_model *net, sdlf_node x, const char *name, int units)
{
    return sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.name = name, .units = units});
}

bool network_is_small(sdlf_shape sample)
{
    enum { SMALL = 64 };
    return sample.dim[1] <= SMALL || sample.dim[2] <= SMALL;
}

/* ---- networks for small images ---- */

static sdlf_node conv(sdlf_model *net, sdlf_node x, int filters, int kernel, int padding)
{
    x = sdlf_conv2d(
        net, x, &(sdlf_conv2d_options){.filters = filters, .kernel = {kernel, kernel}, .padding = {padding, padding}});
    return sdlf_relu(net, x);
}

static sdlf_node pool(sdlf_model *net, sdlf_node x)
{
    return sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {2, 2}});
}

static sdlf_node fully_connected(sdlf_model *net, sdlf_node x, int units)
{
    return network_fully_connected(net, x, NULL, units);
}

static sdlf_node simple_cnn(sdlf_model *net, sdlf_node x, sdlf_shape sample, int classes)
{
    (void)sample;
    x = pool(net, conv(net, x, 32, 5, 2));
    x = sdlf_relu(net, fully_connected(net, x, 1024));
    return fully_connected(net, x, classes);
}

/* LeNet-5 (LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition, 1998) in its modern
 * form: ReLU for tanh, max-pooling for averages, full connections between maps, softmax for radial units. */
static sdlf_node lenet5(sdlf_model *net, sdlf_node x, sdlf_shape sample, int classes)
{
    (void)sample;
    x = pool(net, conv(net, x, 6, 5, 2));
    x = pool(net, conv(net, x, 16, 5, 0));
    x = sdlf_relu(net, fully_connected(net, x, 120));
    x = sdlf_relu(net, fully_connected(net, x, 84));
    return fully_connected(net, x, classes);
}

static sdlf_node mlp(sdlf_model *net, sdlf_node x, sdlf_shape sample, int classes)
{
    (void)sample;
    x = sdlf_relu(net, fully_connected(net, x, 256));
    x = sdlf_relu(net, fully_connected(net, x, 128));
    return fully_connected(net, x, classes);
}

/* The smallest network to reach 99% of MNIST in one epoch, trained as specified by sdlf_network_builtin_training. */
static sdlf_node fast_cnn(sdlf_model *net, sdlf_node x, sdlf_shape sample, int classes)
{
    (void)sample;
    x = pool(net, conv(net, x, 16, 5, 0));
    x = pool(net, conv(net, x, 32, 5, 0));
    x = sdlf_relu(net, fully_connected(net, x, 128));
    return fully_connected(net, x, classes);
}

/* ---- the table ---- */

static const struct {
    const char *name, *summary;
    network_logits *logits;
    int channels, side; /* of an image, unless another shape is requested; channels 0: of a sequence of `side` tokens */
    int least;          /* minimum side in pixels; 0: samples of any shape, including vectors */
} networks[] = {
    {"simple_cnn", "conv 5x5x32, max-pool, 1024 units: a wide hidden layer", simple_cnn, 1, 28, 2},
    {"lenet5", "two convolutions and three small layers: the classic", lenet5, 1, 28, 12},
    {"mlp", "256 and 128 hidden units: no convolution", mlp, 1, 28, 0},
    {"fast_cnn", "two small convolutions, 128 units: 99% of MNIST in one epoch, by its own training settings", fast_cnn,
     1, 28, 16},
    {"cifar_fast", "whitening and six 3x3 convolutions: CIFAR-10 in seconds on a GPU, by its own training settings",
     network_cifar_fast, 3, 32, 25},
    {"resnet20", "the residual network for CIFAR-10, 16 to 64 channels", network_resnet20, 3, 32, 1},
    {"resnet18", "residual, 64 to 512 channels; images up to 64 pixels keep their resolution at first",
     network_resnet18, 3, 32, 1},
    {"resnet50", "the same with bottlenecks, 256 to 2048 channels", network_resnet50, 3, 32, 1},
    {"vgg11_bn", "eight 3x3 convolutions with batch normalisation, 64 to 512 channels", network_vgg11_bn, 3, 32, 32},
    {"mobilenet_v2", "inverted residuals with depthwise convolutions, few operations", network_mobilenet_v2, 3, 32, 1},
    {"vit_tiny", "a vision transformer, 192 channels, 3 heads; images up to 64 pixels in patches of 4x4",
     network_vit_tiny, 3, 32, 16},
    {"char_gpt", "a character transformer, 128 channels, 4 heads, 4 blocks: predicts the next one of a text",
     network_char_gpt, 0, 128, 1},
};
enum { NETWORK_COUNT = sizeof networks / sizeof networks[0], CLASSES = 10, CHARACTERS = 96 };

static bool is_sequential(int index)
{
    return networks[index].channels == 0;
}

const char *sdlf_network_builtin_name(int index)
{
    return index >= 0 && index < NETWORK_COUNT ? networks[index].name : NULL;
}

const char *sdlf_network_builtin_summary(int index)
{
    return index >= 0 && index < NETWORK_COUNT ? networks[index].summary : NULL;
}

static sdlf_status unknown(const char *name)
{
    char known[256] = "";
    sdlf_suggestion near = {.word = name};
    for (int i = 0; i < NETWORK_COUNT; i++) {
        size_t length = strlen(known);
        sdlf_suggest(&near, networks[i].name);
        snprintf(known + length, sizeof known - length, "%s%s", i > 0 ? ", " : "", networks[i].name);
    }
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "unknown network '%s'%s; the built-in ones are %s", name,
                     sdlf_suggestion_print(&near).text, known);
}

static sdlf_status find(int *index, const char *name)
{
    *index = 0;
    while (*index < NETWORK_COUNT && strcmp(networks[*index].name, name) != 0) ++*index;
    return *index < NETWORK_COUNT ? SDLF_OK : unknown(name);
}

static sdlf_status check(int index, sdlf_shape sample, int classes, int fewest)
{
    const char *name = networks[index].name;
    int least = networks[index].least;
    bool picture = sample.rank == 3 && sample.dim[0] >= 1 && sample.dim[1] >= least && sample.dim[2] >= least;
    if (is_sequential(index) && sample.rank != 1)
        return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s' expects sequences of tokens, found samples %s", name,
                         sdlf_shape_print(sample).text);
    if (!is_sequential(index) && !picture && (least > 0 || sample.rank < 1))
        return sdlf_fail(SDLF_ERROR_SHAPE,
                         "network '%s' expects pictures CxHxW of %dx%d pixels or more, found samples %s; 'mlp' accepts "
                         "any shape",
                         name, least, least, sdlf_shape_print(sample).text);
    if (classes >= fewest) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_SHAPE, "network '%s' needs %d scores or more, found %d", name, fewest, classes);
}

static sdlf_status make(sdlf_model **model, int index, sdlf_shape sample, int classes, bool targets)
{
    sdlf_model *net = sdlf_model_create(networks[index].name);
    sdlf_node image = sdlf_input(net, is_sequential(index) ? "tokens" : "image", SDLF_FLOAT32, sample);
    sdlf_node scores = networks[index].logits(net, image, sample, classes);
    if (targets)
        sdlf_output(net, "value", scores);
    else
        sdlf_output(net, "class",
                    sdlf_model_add(net, sdlf_layer_class_find("softmax"),
                                   is_sequential(index) ? &(sdlf_softmax_options){.axis = -1} : NULL, &scores, 1));
    sdlf_status status = net != NULL ? model_infer(net) : sdlf_model_status(net);
    if (status == SDLF_OK)
        *model = net;
    else
        sdlf_model_free(net);
    return status;
}

sdlf_status sdlf_network_builtin(sdlf_model **model, const char *name)
{
    int index;
    SDLF_REQUIRE(model);
    *model = NULL;
    SDLF_REQUIRE(name);
    sdlf_status status = find(&index, name);
    if (status != SDLF_OK) return status;
    int side = networks[index].side;
    if (is_sequential(index)) return make(model, index, sdlf_shape(side), CHARACTERS, false);
    return make(model, index, sdlf_shape(networks[index].channels, side, side), CLASSES, false);
}

static sdlf_status make_for(sdlf_model **model, const char *name, sdlf_shape sample, int scores, bool targets)
{
    int index;
    *model = NULL;
    sdlf_status status = find(&index, name);
    if (status == SDLF_OK) status = check(index, sample, scores, targets ? 1 : 2);
    return status == SDLF_OK ? make(model, index, sample, scores, targets) : status;
}

sdlf_status sdlf_network_builtin_for(sdlf_model **model, const char *name, sdlf_shape sample, int classes)
{
    SDLF_REQUIRE(model);
    *model = NULL;
    SDLF_REQUIRE(name);
    return make_for(model, name, sample, classes, false);
}

sdlf_status sdlf_network_builtin_for_targets(sdlf_model **model, const char *name, sdlf_shape sample, int targets)
{
    SDLF_REQUIRE(model);
    *model = NULL;
    SDLF_REQUIRE(name);
    return make_for(model, name, sample, targets, true);
}
