/* SPDX-License-Identifier: MIT */
/* The measured peak rates of a calculator. */
#include "apps/timing/ceilings.h"

#include <math.h>

#include "framework/clock.h"

enum { SIDE_FIRST = 128, SIDE_LAST = 8192, SAMPLES = 5, MOST_RUNS = 20 }; /* the fastest: the machine may be shared */
static const double sample_seconds = 0.002;
static const double long_enough = 0.05; /* minimum seconds of a matrix product to be timed */

static sdlf_status make_filled(sdlf_calculator *calculator, sdlf_tensor *tensor, sdlf_dtype dtype, sdlf_shape shape)
{
    sdlf_status status = sdlf_tensor_create(tensor, calculator, dtype, shape);
    if (status != SDLF_OK) return status;
    sdlf_operation fill = {.kind = SDLF_FILL, .out = {*tensor}, .fill = {.value = 0.5}};
    return sdlf_calculator_run(calculator, &fill);
}

/* Seconds of `operation` in the fastest sample. A sample combines several short runs, so that the launch, and the final
 * wait for a device, are a small part of it. */
static sdlf_status time_best(sdlf_calculator *calculator, const sdlf_operation *operation, int samples, double *seconds)
{
    int runs = 1;
    *seconds = INFINITY;
    for (int i = 0; i < samples; i++) {
        sdlf_status status = SDLF_OK;
        double start = sdlf_clock();
        for (int run = 0; run < runs && status == SDLF_OK; run++) status = sdlf_calculator_run(calculator, operation);
        if (status == SDLF_OK) status = calculator->type->synchronize(calculator);
        if (status != SDLF_OK) return status;
        *seconds = fmin(*seconds, (sdlf_clock() - start) / runs);
        runs = *seconds * MOST_RUNS < sample_seconds ? MOST_RUNS : 1 + (int)(sample_seconds / *seconds);
    }
    return SDLF_OK;
}

static sdlf_status measure_product(ceilings *c, sdlf_calculator *calculator, sdlf_dtype dtype, int64_t side,
                                   double *seconds)
{
    sdlf_tensor a = {0}, b = {0}, product = {0};
    sdlf_status status = make_filled(calculator, &a, dtype, sdlf_shape(side, side));
    if (status == SDLF_OK) status = make_filled(calculator, &b, dtype, sdlf_shape(side, side));
    if (status == SDLF_OK) status = make_filled(calculator, &product, dtype, sdlf_shape(side, side));
    if (status == SDLF_OK) {
        sdlf_operation gemm = {.kind = SDLF_GEMM, .in = {a, b}, .out = {product}, .gemm = {.alpha = 1}};
        status = time_best(calculator, &gemm, SAMPLES, seconds);
    }
    if (status == SDLF_OK) {
        double flops = 2.0 * (double)side * (double)side * (double)side / *seconds;
        if (flops > c->flops) {
            c->flops = flops;
            c->side = side;
        }
    }
    sdlf_tensor_release(&a, calculator);
    sdlf_tensor_release(&b, calculator);
    sdlf_tensor_release(&product, calculator);
    return status;
}

static sdlf_status measure_copy(ceilings *c, sdlf_calculator *calculator, int64_t bytes)
{
    sdlf_tensor from = {0}, to = {0};
    double seconds = INFINITY;
    sdlf_status status = make_filled(calculator, &from, SDLF_FLOAT32, sdlf_shape(bytes / 4));
    if (status == SDLF_OK) status = make_filled(calculator, &to, SDLF_FLOAT32, sdlf_shape(bytes / 4));
    if (status == SDLF_OK) {
        sdlf_operation copy = {.kind = SDLF_COPY, .in = {from}, .out = {to}};
        status = time_best(calculator, &copy, SAMPLES, &seconds);
    }
    c->bytes = 2.0 * (double)bytes / seconds;
    c->copy_bytes = bytes;
    sdlf_tensor_release(&from, calculator);
    sdlf_tensor_release(&to, calculator);
    return status;
}

sdlf_status ceilings_measure(ceilings *c, sdlf_calculator *calculator, sdlf_dtype dtype, int64_t copy_bytes)
{
    *c = (ceilings){.calculator = calculator->type->name};
    sdlf_status status = SDLF_OK;
    double seconds = 0;
    for (int64_t side = SIDE_FIRST; side <= SIDE_LAST && seconds < long_enough && status == SDLF_OK; side *= 2) {
        status = measure_product(c, calculator, dtype, side, &seconds);
    }
    if (status == SDLF_OK) status = measure_copy(c, calculator, copy_bytes);
    return sdlf_fail_context(status, "measuring the limits of %s", c->calculator);
}

double ceilings_floor(const ceilings *c, sdlf_cost cost)
{
    return fmax((double)cost.flops / c->flops, (double)cost.bytes / c->bytes);
}
