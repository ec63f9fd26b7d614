/* The networks that come with SDLF: for pictures 1x28x28 of ten classes, such as MNIST's. */
#include <sdlf/formats.h>

#include <stdio.h>
#include <string.h>

#include <sdlf/layers.h>
#include <sdlf/suggest.h>

#include "framework/model_internal.h"
#include "framework/require.h"

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
    return sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = units});
}

static sdlf_node simple_cnn(sdlf_model *net, sdlf_node x)
{
    x = pool(net, conv(net, x, 32, 5, 2));
    x = sdlf_relu(net, fully_connected(net, x, 1024));
    return fully_connected(net, x, 10);
}

/* LeNet-5 (LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition, 1998) as it is built
 * today: ReLU for tanh, max-pooling for averages, full connections between maps, softmax for radial units. */
static sdlf_node lenet5(sdlf_model *net, sdlf_node x)
{
    x = pool(net, conv(net, x, 6, 5, 2));
    x = pool(net, conv(net, x, 16, 5, 0));
    x = sdlf_relu(net, fully_connected(net, x, 120));
    x = sdlf_relu(net, fully_connected(net, x, 84));
    return fully_connected(net, x, 10);
}

static sdlf_node mlp(sdlf_model *net, sdlf_node x)
{
    x = sdlf_relu(net, fully_connected(net, x, 256));
    x = sdlf_relu(net, fully_connected(net, x, 128));
    return fully_connected(net, x, 10);
}

/* The smallest that reaches 99% of MNIST in one epoch, trained as sdlf_network_builtin_training says. */
static sdlf_node fast_cnn(sdlf_model *net, sdlf_node x)
{
    x = pool(net, conv(net, x, 16, 5, 0));
    x = pool(net, conv(net, x, 32, 5, 0));
    x = sdlf_relu(net, fully_connected(net, x, 128));
    return fully_connected(net, x, 10);
}

static const struct {
    const char *name, *summary;
    sdlf_node (*logits)(sdlf_model *net, sdlf_node image);
} networks[] = {
    {"simple_cnn", "conv 5x5x32, max-pool, 1024 units: a wide hidden layer", simple_cnn},
    {"lenet5", "two convolutions and three small layers: the classic", lenet5},
    {"mlp", "784-256-128-10: no convolution", mlp},
    {"fast_cnn", "two small convolutions, 128 units: 99% of MNIST in one epoch, by its own training settings",
     fast_cnn},
};
enum { NETWORK_COUNT = sizeof networks / sizeof networks[0] };

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

sdlf_status sdlf_network_builtin(sdlf_model **model, const char *name)
{
    SDLF_REQUIRE(model);
    *model = NULL;
    SDLF_REQUIRE(name);
    int index = 0;
    while (index < NETWORK_COUNT && strcmp(networks[index].name, name) != 0) index++;
    if (index == NETWORK_COUNT) return unknown(name);
    sdlf_model *net = sdlf_model_create(name);
    sdlf_node image = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 28, 28));
    sdlf_output(net, "class", sdlf_softmax(net, networks[index].logits(net, image)));
    sdlf_status status = net != NULL ? model_infer(net) : sdlf_model_status(net);
    if (status == SDLF_OK)
        *model = net;
    else
        sdlf_model_free(net);
    return status;
}
