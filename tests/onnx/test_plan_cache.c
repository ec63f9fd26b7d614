/* SPDX-License-Identifier: MIT */
/* Plans of one ONNX file for many sizes: created once per size, cached, and evicted least recently used first. */
#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "onnx/fixtures.h"

static sdlf_calculator *calculator;

/* x is (batch,1,height,width), m (batch,2,height,1). */
static sdlf_status get(sdlf_plan_cache *plans, int64_t batch, int64_t height, int64_t width, sdlf_plan **plan)
{
    const sdlf_onnx_shape shapes[] = {{"m", sdlf_shape(batch, 2, height, 1)},
                                      {"x", sdlf_shape(batch, 1, height, width)}};
    return sdlf_plan_cache_get(plans, shapes, 2, plan);
}

static void sizes_are_kept(void)
{
    sdlf_plan_cache *plans = NULL;
    sdlf_plan *first = NULL, *second = NULL, *again = NULL;
    CHECK_OK(sdlf_plan_cache_create(&plans, onnx_fixture("open", "model.onnx"),
                                    &(sdlf_plan_cache_options){.calculator = calculator, .most = 2}));
    CHECK_OK(get(plans, 2, 7, 5, &first));
    CHECK_OK(get(plans, 1, 4, 4, &second));
    CHECK_OK(get(plans, 2, 7, 5, &again));
    CHECK(first == again && first != second);
    CHECK_EQUAL(sdlf_plan_cache_made(plans), 2);
    CHECK_OK(get(plans, 1, 3, 9, &again)); /* replaces the second */
    CHECK_EQUAL(sdlf_plan_cache_made(plans), 3);
    CHECK_OK(get(plans, 2, 7, 5, &again));
    CHECK(first == again);
    CHECK_EQUAL(sdlf_plan_cache_made(plans), 3);
    CHECK_OK(get(plans, 1, 4, 4, &again));
    CHECK_EQUAL(sdlf_plan_cache_made(plans), 4);
    sdlf_plan_cache_free(plans);
}

/* The results are those of onnxruntime. */
static void a_kept_plan_runs(void)
{
    sdlf_plan_cache *plans = NULL;
    sdlf_plan *plan = NULL;
    sdlf_tensor x, m, y;
    float found[2 * 2 * 7 * 5];
    CHECK_OK(sdlf_tensor_read_file(&x, onnx_fixture("open", "input_0.pb")));
    CHECK_OK(sdlf_tensor_read_file(&m, onnx_fixture("open", "input_1.pb")));
    CHECK_OK(sdlf_tensor_read_file(&y, onnx_fixture("open", "output_0.pb")));
    CHECK_OK(sdlf_plan_cache_create(&plans, onnx_fixture("open", "model.onnx"),
                                    &(sdlf_plan_cache_options){.calculator = calculator}));
    for (int run = 0; run < 3; run++) {
        CHECK_OK(get(plans, 1, 7 + run, 5, &plan));
        if (!CHECK_OK(get(plans, 2, 7, 5, &plan))) break;
        CHECK_OK(sdlf_plan_write(plan, "x", x.data, SDLF_FLOAT32, sdlf_tensor_bytes(&x)));
        CHECK_OK(sdlf_plan_write(plan, "m", m.data, SDLF_FLOAT32, sdlf_tensor_bytes(&m)));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(sdlf_plan_read(plan, "y", found, SDLF_FLOAT32, sizeof found));
        for (int i = 0; i < 2 * 2 * 7 * 5; i++) CHECK_CLOSE((double)found[i], (double)((float *)y.data)[i], 1e-5);
    }
    CHECK_EQUAL(sdlf_plan_cache_made(plans), 4);
    sdlf_plan_cache_free(plans);
    sdlf_tensor_release(&x, NULL);
    sdlf_tensor_release(&m, NULL);
    sdlf_tensor_release(&y, NULL);
}

static void what_does_not_fit_is_refused(void)
{
    sdlf_plan_cache *plans = NULL;
    sdlf_plan *plan = NULL, *kept = NULL;
    const char *path = onnx_fixture("open", "model.onnx");
    CHECK_FAILS(sdlf_plan_cache_create(&plans, path, &(sdlf_plan_cache_options){.calculator = calculator, .most = -1}),
                SDLF_ERROR_ARGUMENT, "expected 1 to 4096 plans, found -1");
    CHECK_FAILS(sdlf_plan_cache_create(&plans, path, &(sdlf_plan_cache_options){.most = 1}), SDLF_ERROR_ARGUMENT, "");
    CHECK_OK(sdlf_plan_cache_create(&plans, path, &(sdlf_plan_cache_options){.calculator = calculator, .most = 3}));
    CHECK_OK(get(plans, 2, 3, 4, &kept));
    const sdlf_onnx_shape one[] = {{"x", sdlf_shape(2, 1, 3, 4)}, {"x", sdlf_shape(2, 1, 3, 4)}},
                          differ[] = {{"x", sdlf_shape(2, 1, 3, 4)}, {"m", sdlf_shape(3, 2, 3, 1)}},
                          fixed[] = {{"x", sdlf_shape(2, 2, 3, 4)}, {"m", sdlf_shape(2, 2, 3, 1)}};
    CHECK_FAILS(sdlf_plan_cache_get(plans, one, 2, &plan), SDLF_ERROR_ARGUMENT,
                "shape 1 has no name, or that of another");
    CHECK_FAILS(sdlf_plan_cache_get(plans, differ, 2, &plan), SDLF_ERROR_SHAPE,
                "input 'm' is 3x2x3x1, in a batch of 2");
    CHECK_FAILS(sdlf_plan_cache_get(plans, fixed, 2, &plan), SDLF_ERROR_SHAPE, "input 'x' is 2x1x3x4, but 2x2x3x4 was");
    CHECK_OK(get(plans, 2, 3, 4, &plan));
    CHECK(plan == kept);
    CHECK_EQUAL(sdlf_plan_cache_made(plans), 1);
    sdlf_plan_cache_free(plans);
    CHECK_EQUAL(sdlf_plan_cache_made(NULL), 0);
}

/* Creates a plan, and frees it. */
static sdlf_status make_one(void *context)
{
    const sdlf_onnx_shape shapes[] = {{"m", sdlf_shape(1, 2, 3, 1)}, {"x", sdlf_shape(1, 1, 3, 4)}};
    sdlf_plan_cache *plans = NULL;
    sdlf_plan *plan = NULL;
    sdlf_status status =
        sdlf_plan_cache_create(&plans, context, &(sdlf_plan_cache_options){.calculator = calculator, .most = 1});
    if (status == SDLF_OK) status = sdlf_plan_cache_get(plans, shapes, 2, &plan);
    sdlf_plan_cache_free(plans);
    return status;
}

static void memory_runs_out(void)
{
    char path[600];
    snprintf(path, sizeof path, "%s", onnx_fixture("open", "model.onnx"));
    test_every_allocation("a sized plan", make_one, path);
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    CHECK_OK(sdlf_calculator_open(&calculator, "cpu", NULL));
    RUN(sizes_are_kept);
    RUN(a_kept_plan_runs);
    RUN(what_does_not_fit_is_refused);
    RUN(memory_runs_out);
    sdlf_calculator_close(calculator);
    return test_summary();
}
