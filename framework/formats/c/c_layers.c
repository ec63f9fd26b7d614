/* The layers that a network as C may have: what is refused, and the statements for each. */
#include "framework/formats/c/c_export.h"

#include <string.h>

/* ---- checks ---- */

/* Kernels know no batch: the first dimension is 1. */
static void check_sample(c_export *e, int layer)
{
    sdlf_shape x = c_in_shape(e, layer, 0);
    if (x.rank < 1 || x.dim[0] != 1)
        c_refuse(e, layer, "its input is %s, and a batch of 1 was expected", sdlf_shape_print(x).text);
}

/* ---- windows ---- */

typedef struct geometry {
    const int *size, *stride, *dilation, *padding;
    int groups;
} geometry;

static void print_window(c_export *e, int layer, geometry g)
{
    sdlf_shape x = c_in_shape(e, layer, 0), y = c_out_shape(e, layer);
    c_print(
        e,
        "        &(const window){.channels = %d, .height = %d, .width = %d, .filters = %d, .rows = %d, .columns = %d,\n"
        "                        .groups = %d, .size = {%d, %d}, .stride = {%d, %d}, .dilation = {%d, %d}, "
        ".padding = {%d, %d}}",
        (int)x.dim[1], (int)x.dim[2], (int)x.dim[3], (int)y.dim[1], (int)y.dim[2], (int)y.dim[3], g.groups, g.size[0],
        g.size[1], g.stride[0], g.stride[1], g.dilation[0], g.dilation[1], g.padding[0], g.padding[1]);
}

static c_name bias_of(const c_export *e, int layer)
{
    bool any = c_parameter(e, layer, "bias") != NULL || e->value[layer].norm >= 0;
    return any ? c_weights(e, layer, "bias") : (c_name){"NULL"};
}

static void print_conv2d(c_export *e, int layer)
{
    const sdlf_conv2d_options *o = c_at(e, layer)->layer.options;
    c_print(e, "    conv2d(%s, %s, %s, %s,\n", c_in(e, layer, 0).text, c_weights(e, layer, "weight").text,
            bias_of(e, layer).text, c_out(e, layer).text);
    print_window(e, layer, (geometry){o->kernel, o->stride, o->dilation, o->padding, o->groups});
    c_print(e, ");\n");
}

static void print_pool(c_export *e, int layer)
{
    static const int one[2] = {1, 1};
    const sdlf_pool2d_options *o = c_at(e, layer)->layer.options;
    bool mean = strcmp(c_at(e, layer)->layer.type->name, "avg_pool2d") == 0;
    int stride[2];
    for (int i = 0; i < 2; i++) stride[i] = o->stride[i] != 0 ? o->stride[i] : o->window[i];
    c_print(e, "    %s(%s, %s,\n", mean ? "avg_pool2d" : "max_pool2d", c_in(e, layer, 0).text, c_out(e, layer).text);
    print_window(e, layer,
                 (geometry){o->window, stride, mean || o->dilation[0] == 0 ? one : o->dilation, o->padding, 1});
    c_print(e, mean ? ", %d);\n" : ");\n", o->count_padding);
}

static void print_global_avg_pool2d(c_export *e, int layer)
{
    sdlf_shape x = c_in_shape(e, layer, 0);
    c_print(e, "    global_avg_pool2d(%s, %s, %d, %d);\n", c_in(e, layer, 0).text, c_out(e, layer).text, (int)x.dim[1],
            (int)(x.dim[2] * x.dim[3]));
}

/* ---- products and channels ---- */

static void print_fully_connected(c_export *e, int layer)
{
    sdlf_shape weight = c_parameter(e, layer, "weight")->spec.shape;
    c_print(e, "    fully_connected(%s, %s, %s, %s, %d, %d);\n", c_in(e, layer, 0).text,
            c_weights(e, layer, "weight").text, bias_of(e, layer).text, c_out(e, layer).text, (int)weight.dim[1],
            (int)weight.dim[0]);
}

static void print_batch_norm(c_export *e, int layer)
{
    sdlf_shape x = c_in_shape(e, layer, 0);
    c_print(e, "    scale_channels(%s, %s, %s, %s, %d, %d);\n", c_in(e, layer, 0).text,
            c_weights(e, layer, "scale").text, c_weights(e, layer, "shift").text, c_out(e, layer).text, (int)x.dim[1],
            (int)sdlf_shape_span(x, 2, x.rank));
}

static void print_softmax(c_export *e, int layer)
{
    int axis = ((const sdlf_softmax_options *)c_at(e, layer)->layer.options)->axis;
    sdlf_shape x = c_in_shape(e, layer, 0);
    if (axis < 0) axis += x.rank;
    c_print(e, "    %s(%s, %s, %d, %d, %d);\n", c_at(e, layer)->layer.type->name, c_in(e, layer, 0).text,
            c_out(e, layer).text, (int)sdlf_shape_span(x, 0, axis), (int)x.dim[axis],
            (int)sdlf_shape_span(x, axis + 1, x.rank));
}

/* ---- loops over elements ---- */

/* y = `formula`, in which v is an element of x, and A and B are numbers. */
static void print_function(c_export *e, int layer, const char *formula, float a, float b)
{
    c_print(e, "    for (int i = 0; i < %lld; i++) {\n        const float v = %s;\n        %s = ",
            (long long)e->value[layer].count, c_in_element(e, layer, 0).text, c_out_element(e, layer).text);
    for (const char *at = formula; *at != '\0'; at++) {
        c_name number = c_number(*at == 'A' ? a : b);
        if (*at == 'A' || *at == 'B')
            c_write(e, number.text, strlen(number.text));
        else
            c_write(e, at, 1);
    }
    c_print(e, ";\n    }\n");
}

static void print_activation(c_export *e, int layer)
{
    const model_layer *at = c_at(e, layer);
    const char *type = at->layer.type->name;
    if (strcmp(type, "relu") == 0) print_function(e, layer, "v < 0 ? 0 : v", 0, 0);
    if (strcmp(type, "relu6") == 0) print_function(e, layer, "v < 0 ? 0 : v > 6 ? 6 : v", 0, 0);
    if (strcmp(type, "sigmoid") == 0) print_function(e, layer, "1 / (1 + expf(-v))", 0, 0);
    if (strcmp(type, "tanh") == 0) print_function(e, layer, "tanhf(v)", 0, 0);
}

static void print_clip(c_export *e, int layer)
{
    const sdlf_clip_options *options = c_at(e, layer)->layer.options;
    print_function(e, layer, "v < A ? A : v > B ? B : v", options->low, options->high);
}

static void print_leaky_relu(c_export *e, int layer)
{
    const sdlf_leaky_relu_options *options = c_at(e, layer)->layer.options;
    print_function(e, layer, "v > 0 ? v : A * v", options->slope, 0);
}

static void print_unary(c_export *e, int layer)
{
    static const struct {
        const char *formula;
        float a, b; /* where the options leave them at 0 */
    } functions[SDLF_UNARY_FUNCTION_COUNT] = {
        [SDLF_UNARY_SILU] = {"v / (1 + expf(-v))", 0, 0},
        [SDLF_UNARY_HARD_SWISH] = {"v <= -3 ? 0 : v >= 3 ? v : v * (v / 6 + 0.5f)", 0, 0},
        [SDLF_UNARY_ELU] = {"v > 0 ? v : A * expm1f(v)", 1, 0},
        [SDLF_UNARY_SELU] = {"B * (v > 0 ? v : A * expm1f(v))", 1.67326319217681884765625f, 1.05070102214813232421875f},
        [SDLF_UNARY_CELU] = {"v > 0 ? v : A * expm1f(v / A)", 1, 0},
        [SDLF_UNARY_GELU] = {"0.5f * v * (1 + erff(v * 0.707106781f))", 0, 0},
        [SDLF_UNARY_GELU_TANH] = {"0.5f * v * (1 + tanhf(0.797884561f * (v + 0.044715f * v * v * v)))", 0, 0},
        [SDLF_UNARY_MISH] = {"v * tanhf(v > 20 ? v : log1pf(expf(v)))", 0, 0},
        [SDLF_UNARY_SOFTPLUS] = {"v > 20 ? v : log1pf(expf(v))", 0, 0},
        [SDLF_UNARY_SOFTSIGN] = {"v / (1 + fabsf(v))", 0, 0},
        [SDLF_UNARY_HARD_SIGMOID] = {"A * v + B < 0 ? 0 : A * v + B > 1 ? 1 : A * v + B", 0.2f, 0.5f},
        [SDLF_UNARY_ERF] = {"erff(v)", 0, 0},
        [SDLF_UNARY_SQRT] = {"sqrtf(v)", 0, 0},
        [SDLF_UNARY_EXP] = {"expf(v)", 0, 0},
        [SDLF_UNARY_LOG] = {"logf(v)", 0, 0},
        [SDLF_UNARY_ABS] = {"fabsf(v)", 0, 0},
        [SDLF_UNARY_NEGATE] = {"-v", 0, 0},
        [SDLF_UNARY_RECIPROCAL] = {"1 / v", 0, 0},
        [SDLF_UNARY_FLOOR] = {"floorf(v)", 0, 0},
        [SDLF_UNARY_CEIL] = {"ceilf(v)", 0, 0},
        [SDLF_UNARY_ROUND] = {"rintf(v)", 0, 0},
    };
    const sdlf_unary_options *options = c_at(e, layer)->layer.options;
    print_function(e, layer, functions[options->function].formula,
                   options->alpha != 0 ? options->alpha : functions[options->function].a,
                   options->beta != 0 ? options->beta : functions[options->function].b);
}

static void print_add(c_export *e, int layer)
{
    c_print(e, "    for (int i = 0; i < %lld; i++) %s = %s + %s;\n", (long long)e->value[layer].count,
            c_out_element(e, layer).text, c_in_element(e, layer, 0).text, c_in_element(e, layer, 1).text);
}

static void print_concat(c_export *e, int layer)
{
    int axis = ((const sdlf_concat_options *)c_at(e, layer)->layer.options)->axis;
    sdlf_shape y = c_out_shape(e, layer);
    int64_t at = 0;
    if (axis < 0) axis += y.rank;
    for (int i = 0; i < c_at(e, layer)->input_count; i++) {
        sdlf_shape x = c_in_shape(e, layer, i);
        int64_t length = sdlf_shape_span(x, axis, x.rank);
        c_print(e, "    place(%s, %s + %lld, %lld, %lld, %lld);\n", c_in(e, layer, i).text, c_out(e, layer).text,
                (long long)at, (long long)sdlf_shape_span(x, 0, axis), (long long)length,
                (long long)sdlf_shape_span(y, axis, y.rank));
        at += length;
    }
}

static const c_layer layers[] = {
    {"conv2d", {"window", "conv2d"}, check_sample, print_conv2d, false},
    {"max_pool2d", {"window", "max_pool2d"}, check_sample, print_pool, false},
    {"avg_pool2d", {"window", "avg_pool2d"}, check_sample, print_pool, false},
    {"global_avg_pool2d", {"global_avg_pool2d"}, check_sample, print_global_avg_pool2d, false},
    {"fully_connected", {"fully_connected"}, check_sample, print_fully_connected, false},
    {"batch_norm2d", {"scale_channels"}, check_sample, print_batch_norm, true},
    {"softmax", {"softmax"}, NULL, print_softmax, false},
    {"log_softmax", {"log_softmax"}, NULL, print_softmax, false},
    {"relu", {NULL}, NULL, print_activation, true},
    {"relu6", {NULL}, NULL, print_activation, true},
    {"sigmoid", {NULL}, NULL, print_activation, true},
    {"tanh", {NULL}, NULL, print_activation, true},
    {"clip", {NULL}, NULL, print_clip, true},
    {"leaky_relu", {NULL}, NULL, print_leaky_relu, true},
    {"unary", {NULL}, NULL, print_unary, true},
    {"add", {NULL}, NULL, print_add, true},
    {"concat", {"place"}, NULL, print_concat, false},
    {"flatten", {NULL}, NULL, NULL, false},
    {"reshape", {NULL}, NULL, NULL, false},
    {"dropout", {NULL}, NULL, NULL, false},
};

const c_layer *c_layer_find(const char *type)
{
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        if (strcmp(layers[i].type, type) == 0) return &layers[i];
    return NULL;
}
