/* SPDX-License-Identifier: MIT */
/* Convolutions over the positions of a growing state: their weights are prepacked once, for images of any length. */
#include "testing.h"

#include <string.h>

#include <sdlf/layers.h>
#include <sdlf/sdlf.h>

enum { STEPS = 14 };

typedef struct net {
    int channels, filters, second; /* of the image, of two convolutions; second 0: there is one */
    bool transposed;               /* then an image of twice the length */
    bool multiplied;               /* multiply its output by the number of positions */
} net;

/* Positions (L, C), the past and one more, as an image of one row per channel. Parameters from a fixed seed. */
static sdlf_status make(void *user, int64_t length, bool weights, sdlf_model **made)
{
    const net *of = user;
    sdlf_model *model = *made = sdlf_model_create("line");
    const sdlf_node both[2] = {sdlf_input(model, "past", SDLF_FLOAT32, sdlf_shape(length, of->channels)),
                               sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(1, of->channels))};
    const sdlf_node present = sdlf_concat(model, both, 2, &(sdlf_concat_options){.axis = 1});
    sdlf_node y = sdlf_transpose(model, present, &(sdlf_transpose_options){.order = sdlf_shape(0, 2, 1)});
    y = sdlf_reshape(model, y, &(sdlf_reshape_options){.shape = sdlf_shape(of->channels, 1, length + 1)});
    y = sdlf_conv2d(model, y, &(sdlf_conv2d_options){.filters = of->filters, .kernel = {1, 3}, .padding = {0, 1}});
    if (of->multiplied) {
        const sdlf_value_options positions = {.name = "positions", .shape = sdlf_shape(of->filters, 1, 1)};
        y = sdlf_binary(model, (sdlf_node[]){y, sdlf_value(model, &positions)}, 2,
                        &(sdlf_binary_layer_options){.function = SDLF_LAYER_MULTIPLY});
    }
    if (of->second > 0)
        y = sdlf_conv2d(model, sdlf_relu(model, y),
                        &(sdlf_conv2d_options){.filters = of->second, .kernel = {1, 5}, .padding = {0, 2}});
    if (of->transposed)
        y = sdlf_conv_transpose2d(model, y,
                                  &(sdlf_conv_transpose2d_options){
                                      .filters = 5, .kernel = {1, 4}, .stride = {1, 2}, .padding_extra = {0, 1}});
    sdlf_output(model, "present", present);
    sdlf_output(model, "y", sdlf_global_avg_pool2d(model, y));
    (void)weights;
    sdlf_status status = sdlf_model_build(model, 1);
    for (int i = 0; i < sdlf_model_parameter_count(model) && status == SDLF_OK; i++) {
        sdlf_parameter *parameter = sdlf_model_parameter(model, i);
        for (int f = 0; f < of->filters && strstr(parameter->name, "positions") != NULL; f++)
            ((float *)parameter->value.data)[f] = (float)(length + 1);
    }
    return status;
}

/* The outputs of each step, at most 5 values, for random x. */
static bool run(const char *name, const net *of, float (*y)[5], int count)
{
    const sdlf_state state = {"past", "present", 0};
    sdlf_calculator *calculator = test_open(name);
    sdlf_stateful *line = NULL;
    sdlf_plan *plan;
    bool ran = CHECK_OK(sdlf_stateful_create_with(
        &line, make, (void *)of,
        &(sdlf_stateful_options){.calculator = calculator, .states = &state, .state_count = 1, .capacity = 40}));
    for (int i = 0; ran && i < STEPS; i++) {
        float x[8];
        for (int c = 0; c < of->channels; c++)
            x[c] = (float)sdlf_philox4x32(5, (uint64_t)(8 * i + c), 0, 0).word[0] * 0x1p-32f - 0.5f;
        ran = CHECK_OK(sdlf_stateful_prepare(line, &plan)) &&
              CHECK_OK(sdlf_plan_write(plan, "x", x, SDLF_FLOAT32, of->channels * (int64_t)sizeof *x)) &&
              CHECK_OK(sdlf_stateful_run(line)) &&
              CHECK_OK(sdlf_plan_read(plan, "y", y[i], SDLF_FLOAT32, count * (int64_t)sizeof(float)));
    }
    sdlf_stateful_free(line);
    sdlf_calculator_close(calculator);
    return ran;
}

static void weights_serve_every_length(void)
{
    static const net nets[] = {{4, 4, 0, false, false}, {4, 4, 4, false, false},  {3, 3, 3, false, false},
                               {1, 4, 4, false, false}, {8, 16, 16, true, false}, {8, 32, 32, true, false}};
    for (size_t n = 0; n < sizeof nets / sizeof nets[0]; n++) {
        float found[STEPS][5], expected[STEPS][5];
        const int filters = nets[n].transposed ? 5 : nets[n].second > 0 ? nets[n].second : nets[n].filters;
        if (!run("cpu", &nets[n], found, filters) || !run("reference", &nets[n], expected, filters)) continue;
        for (int i = 0; i < STEPS; i++) {
            for (int f = 0; f < filters; f++) CHECK_CLOSE((double)found[i][f], (double)expected[i][f], 1e-5);
        }
    }
}

/* A scale after a convolution that depends on the length is not folded into its weights. */
static void scales_follow_the_length(void)
{
    static const char *const names[] = {"cpu", "reference"};
    for (int c = 0; c < 2; c++) {
        const net plain = {4, 4, 0, false, false}, multiplied = {4, 4, 0, false, true};
        float found[STEPS][5], expected[STEPS][5];
        if (!run(names[c], &multiplied, found, 4) || !run("reference", &plain, expected, 4)) continue;
        for (int i = 0; i < STEPS; i++) {
            for (int f = 0; f < 4; f++) CHECK_CLOSE((double)found[i][f], (double)expected[i][f] * (i + 1), 1e-5);
        }
    }
}

int main(void)
{
    RUN(scales_follow_the_length);
    RUN(weights_serve_every_length);
    return test_summary();
}
