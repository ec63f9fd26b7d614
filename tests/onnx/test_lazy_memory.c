/* SPDX-License-Identifier: MIT */
/* Weights that are left in their ONNX file until a plan reads them: a device's weights are never in host memory, and of
 * those that the host converts to another form, only one at a time exists twice. */
#include "onnx/fixtures.h"

#include <stdio.h>

#include <sdlf/sdlf.h>

#include "onnx/products.h"

/* Convolutions whose weights the cpu calculator prepacks. */
static const char *write_convolutions(const char *name)
{
    enum { CHANNELS = 192 };
    const char *path = test_path(name);
    sdlf_model *net = sdlf_model_create("convolutions");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(CHANNELS, 5, 5));
    for (int i = 0; i < LAYERS; i++)
        x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = CHANNELS, .kernel = {3, 3}, .padding = {1, 1}});
    sdlf_output(net, "y", x);
    CHECK_OK(sdlf_model_build(net, 1));
    CHECK_OK(sdlf_model_to_onnx(net, path, NULL, NULL));
    sdlf_model_free(net);
    return path;
}

/* The peak host memory of a plan with its model, and the memory in use at the end. */
static sdlf_memory_info measure(const char *name, const char *path, bool leave, bool take, int64_t *most, int64_t *end)
{
    sdlf_calculator *calculator = test_open(name);
    sdlf_memory_info memory = {0};
    sdlf_model *model = NULL;
    sdlf_plan *plan = NULL;
    test_reset_peak();
    int64_t before = test_live_bytes();
    CHECK_OK(sdlf_model_from_onnx(&model, path, leave ? &leaving : NULL));
    CHECK_OK(sdlf_plan_create(&plan, model,
                              &(sdlf_plan_options){.batch = 1, .forward = calculator, .consume_parameters = take}));
    *most = test_peak_bytes() - before;
    *end = test_live_bytes() - before;
    if (plan != NULL) memory = sdlf_plan_memory(plan);
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
    return memory;
}

static void weights_of_a_device_leave_the_host(void)
{
    enum { LITTLE = 3 << 20 };
    const char *path = write_products("products.onnx", false);
    int64_t most, end;
    measure("guarded", path, false, false, &most, &end);
    CHECK(end > WEIGHTS);
    measure("guarded", path, false, true, &most, &end);
    if (!CHECK(most < WEIGHTS + LITTLE && end < LITTLE)) printf("    %lld, %lld\n", (long long)most, (long long)end);
    measure("guarded", path, true, true, &most, &end);
    if (!CHECK(most < LITTLE && end < LITTLE)) printf("    %lld, %lld\n", (long long)most, (long long)end);
}

/* On the host, a weight that is only needed prepacked is read right before it is prepacked: only that one exists
 * twice. */
static void weights_are_read_one_by_one(void)
{
    enum { LITTLE = 1 << 20 };
    const char *path = write_convolutions("convolutions.onnx");
    int64_t most, end;
    sdlf_memory_info memory = measure("cpu", path, true, true, &most, &end);
    CHECK(memory.arena > memory.parameters); /* all weights, in their new form */
    if (!CHECK(most < memory.arena + memory.parameters / LAYERS + LITTLE && end < memory.arena + LITTLE / 4))
        printf("    %lld, %lld, arena %lld\n", (long long)most, (long long)end, (long long)memory.arena);
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(weights_of_a_device_leave_the_host);
    RUN(weights_are_read_one_by_one);
    return test_summary();
}
