/* SPDX-License-Identifier: MIT */
/* Cases of gemm and gemm_backward_sgd.
 *
 * Tolerance: a dot product of k terms up to 1 is off by at most about k rounding errors in any order of summation; 8
 * more for the epilogue, or 16 if it contains an exponential. */
#include "kernels.h"

#include "calculators/fusions/gemm_backward_sgd.h"

typedef struct gemm_size {
    int64_t m, n, k;
} gemm_size;

static kernel_case gemm(sdlf_dtype t, gemm_size size, bool transpose_a, bool transpose_b)
{
    int64_t m = size.m, n = size.n, k = size.k;
    kernel_case made = {.operation = {.kind = SDLF_GEMM, .gemm = {transpose_a, transpose_b, .alpha = 1}}};
    made.operation.in[0] = kernel_tensor(t, transpose_a ? sdlf_shape(k, m) : sdlf_shape(m, k));
    made.operation.in[1] = kernel_tensor(t, transpose_b ? sdlf_shape(n, k) : sdlf_shape(k, n));
    made.operation.out[0] = kernel_tensor(t, sdlf_shape(m, n));
    made.tolerance = (double)k + 8;
    return made;
}

static void emit_gemm(kernel_sink *sink, const kernel_case *made, gemm_size size)
{
    const sdlf_operation *o = &made->operation;
    kernel_emit(sink, made, "%dx%dx%d%s%s%s%s alpha %g%s", (int)size.m, (int)size.n, (int)size.k,
                o->gemm.transpose_a ? " a'" : "", o->gemm.transpose_b ? " b'" : "",
                sdlf_tensor_present(&o->in[2]) ? " bias" : "", sdlf_tensor_present(&o->in[3]) ? " residual" : "",
                (double)o->gemm.alpha, kernel_activation_name[o->gemm.activation.function]);
}

static void add_epilogue(kernel_case *made, bool bias, bool residual, int activation)
{
    const sdlf_tensor *c = &made->operation.out[0];
    if (bias) made->operation.in[2] = kernel_tensor(c->dtype, sdlf_shape(c->shape.dim[1]));
    if (residual) made->operation.in[3] = *c;
    made->operation.gemm.activation = kernel_activation[activation];
    if (activation) made->tolerance += 16;
}

static void gemm_epilogues(kernel_sink *sink, sdlf_dtype t, gemm_size size)
{
    for (int combination = 0; combination < 4 * KERNEL_EPILOGUES; combination++) {
        kernel_case made = gemm(t, size, false, true);
        add_epilogue(&made, combination & 1, combination & 2, combination / 4);
        made.operation.gemm.alpha = combination % 3 == 0 ? 1 : 0.25f;
        emit_gemm(sink, &made, size);
        if (!(combination & 2)) continue;
        made.aliased = true;
        made.alias = 3;
        emit_gemm(sink, &made, size);
    }
}

enum {
    MOMENTUM = 1,
    DX = 2,
    DECAY = 4,
    NESTEROV = 8,
    BIAS = 16,
    SGD_COMBINATIONS = 32,
    STILL = 32
}; /* v for momentum 0 */

static void gemm_backward_sgd(kernel_sink *sink, sdlf_dtype t, gemm_size size, int combination, int activation)
{
    int64_t rows = size.m, units = size.n, inputs = size.k, longest = rows > units ? rows : units;
    bool momentum = combination & MOMENTUM, decay = combination & DECAY;
    kernel_case made = {.operation = {.kind = SDLF_FUSED, .fused = {.fusion = &sdlf_gemm_backward_sgd_fusion}}};
    sdlf_operation *o = &made.operation;
    gemm_backward_sgd_options *options = gemm_backward_sgd_options_in(o);
    o->in[0] = kernel_tensor(t, sdlf_shape(rows, inputs));
    o->in[1] = kernel_tensor(t, sdlf_shape(rows, units));
    o->in[2] = kernel_tensor(t, sdlf_shape(1));
    o->out[0] = kernel_tensor(t, sdlf_shape(units, inputs));
    if (momentum) o->out[1] = o->out[0];
    if (combination & DX) o->out[2] = o->in[0];
    if (combination & BIAS) o->out[3] = kernel_tensor(t, sdlf_shape(units));
    if (combination & BIAS && momentum) o->out[4] = o->out[3];
    options->sgd.momentum = momentum && !(combination & STILL) ? 0.9f : 0;
    options->sgd.decay = decay ? 0.01f : 0;
    options->sgd.bias_decay = decay ? 0.03f : 0;
    options->sgd.nesterov = combination & NESTEROV;
    options->activation = kernel_activation[activation];
    made.in[2].values = VALUES_POSITIVE;
    made.tolerance = (double)longest * 2 + 16; /* twice: nesterov adds g and momentum g; the slopes add little */
    const char *velocity = combination & STILL ? " momentum 0" : momentum ? " momentum" : "";
    kernel_emit(sink, &made, "%dx%dx%d%s%s%s%s%s%s", (int)rows, (int)units, (int)inputs, velocity,
                combination & DX ? " dx" : "", decay ? " decay" : "", combination & NESTEROV ? " nesterov" : "",
                combination & BIAS ? " bias" : "", kernel_activation_name[activation]);
}

/* Every combination without an activation, and every activation with dx, both with and without all other options. */
static void gemm_backward_sgd_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const gemm_size layers[] = {{1, 1, 1},    {3, 5, 7},     {16, 10, 100}, {5, 67, 131},
                                       {33, 17, 65}, {64, 128, 32}, {1, 10, 300},  {130, 9, 21}};
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        for (int combination = 0; combination < SGD_COMBINATIONS; combination++)
            gemm_backward_sgd(sink, t, layers[i], combination, SDLF_IDENTITY);
        gemm_backward_sgd(sink, t, layers[i], STILL | MOMENTUM | DX, SDLF_IDENTITY);
        gemm_backward_sgd(sink, t, layers[i], STILL | MOMENTUM | DX | BIAS, SDLF_IDENTITY);
        for (int activation = SDLF_RELU; activation < KERNEL_EPILOGUES; activation++) {
            if (sdlf_activation_reads_input((sdlf_activation_function)activation)) continue;
            gemm_backward_sgd(sink, t, layers[i], DX, activation);
            gemm_backward_sgd(sink, t, layers[i], DX | MOMENTUM | DECAY | BIAS, activation);
        }
    }
    /* more rows, for which a device may use separate GEMMs */
    static const gemm_size products[] = {{131, 35, 43}, {160, 40, 56}, {70, 300, 200}, {1100, 25, 60}, {1100, 136, 40}};
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        gemm_backward_sgd(sink, t, products[i], MOMENTUM, SDLF_IDENTITY);
        gemm_backward_sgd(sink, t, products[i], DX, SDLF_IDENTITY);
        gemm_backward_sgd(sink, t, products[i], MOMENTUM | DX | DECAY | NESTEROV, SDLF_IDENTITY);
        gemm_backward_sgd(sink, t, products[i], MOMENTUM | DX | DECAY | BIAS, SDLF_RELU);
    }
    /* few rows and many weights, which a device may split into narrow or wide strips, and units among several blocks */
    static const gemm_size updates[] = {{9, 36, 40},      {100, 68, 76},  {7, 36, 5324},   {50, 20, 5332},
                                        {128, 40, 5300},  {20, 300, 100}, {16, 264, 1604}, {50, 200, 900},
                                        {100, 264, 1000}, {33, 260, 5300}};
    for (size_t i = 0; i < sizeof updates / sizeof updates[0]; i++) {
        gemm_backward_sgd(sink, t, updates[i], MOMENTUM, SDLF_IDENTITY);
        gemm_backward_sgd(sink, t, updates[i], MOMENTUM | DX | DECAY | BIAS, SDLF_RELU);
    }
}

void gemm_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const gemm_size sizes[] = {{1, 1, 1},     {1, 10, 300},   {3, 5, 7},     {16, 16, 16},  {17, 33, 65},
                                      {65, 1, 9},    {64, 10, 97},   {5, 6, 0},     {100, 31, 37}, {1, 257, 129},
                                      {70, 130, 50}, {130, 66, 300}, {140, 200, 72}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int transposed = 0; transposed < 4; transposed++) {
            kernel_case made = gemm(t, sizes[i], transposed & 1, transposed & 2);
            emit_gemm(sink, &made, sizes[i]);
            add_epilogue(&made, true, false, SDLF_RELU);
            emit_gemm(sink, &made, sizes[i]);
        }
    }
    /* few rows, large k */
    static const gemm_size layers[] = {{9, 68, 260},  {40, 130, 1000}, {128, 65, 2052}, {1, 200, 512},
                                       {2, 37, 301},  {3, 9, 90},      {4, 18, 129},    {5, 23, 77},
                                       {6, 33, 1025}, {33, 132, 1004}, {70, 68, 2052}};
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        kernel_case made = gemm(t, layers[i], false, true);
        emit_gemm(sink, &made, layers[i]);
        add_epilogue(&made, true, true, SDLF_RELU);
        made.operation.gemm.alpha = 0.5f;
        emit_gemm(sink, &made, layers[i]);
    }
    /* many rows, few columns: less than a vector, whole vectors, more than a panel */
    static const gemm_size tall[] = {{1300, 1, 3},   {1500, 7, 33},   {2600, 16, 128}, {1999, 50, 40},
                                     {3001, 32, 1},  {4100, 16, 700}, {601, 10, 260},  {1501, 7, 100},
                                     {1203, 10, 32}, {905, 3, 60},    {777, 13, 96},   {9001, 9, 34}};
    for (size_t i = 0; i < sizeof tall / sizeof tall[0]; i++) {
        for (int transposed = 0; transposed < 2; transposed++) {
            kernel_case made = gemm(t, tall[i], false, transposed);
            emit_gemm(sink, &made, tall[i]);
            add_epilogue(&made, true, false, SDLF_TANH);
            made.operation.gemm.alpha = 0.5f;
            emit_gemm(sink, &made, tall[i]);
        }
    }
    /* so large that a device, such as one with 132 multiprocessors, may compute the first rows separately */
    if (t == SDLF_FLOAT32) {
        const gemm_size large = {4300, 1000, 512};
        kernel_case made = gemm(t, large, false, true);
        made.fills_device = true;
        add_epilogue(&made, true, true, SDLF_RELU);
        emit_gemm(sink, &made, large);
    }
    gemm_epilogues(sink, t, (gemm_size){7, 19, 33});
    gemm_epilogues(sink, t, (gemm_size){6, 5, 0});
    /* empty: no rows, no columns, k = 0, and combinations */
    static const gemm_size empty[] = {{0, 5, 7}, {6, 0, 7}, {0, 0, 7}, {1, 1, 0}, {0, 5, 0}, {0, 0, 0}};
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        kernel_case made = gemm(t, empty[i], false, true);
        emit_gemm(sink, &made, empty[i]);
        add_epilogue(&made, true, true, SDLF_RELU);
        emit_gemm(sink, &made, empty[i]);
    }
    gemm_backward_sgd_cases(sink, t);
}

/* The fully connected layers of simple_cnn, batches 16, 64 and 1024: forward, dx, dw; the tall-skinny GEMM of a graph
 * convolution. */
void gemm_bench(kernel_sink *sink, sdlf_dtype t)
{
    static const int64_t batches[] = {16, 64, 1024};
    for (int i = 0; i < 3; i++) {
        gemm_size forward = {batches[i], 1024, 6272}, dx = {batches[i], 6272, 1024}, dw = {1024, 6272, batches[i]};
        kernel_case made = gemm(t, forward, false, true);
        add_epilogue(&made, true, false, SDLF_RELU);
        emit_gemm(sink, &made, forward);
        made = gemm(t, dx, false, false);
        emit_gemm(sink, &made, dx);
        made = gemm(t, dw, true, false);
        emit_gemm(sink, &made, dw);
        gemm_size last = {batches[i], 10, 1024};
        gemm_backward_sgd(sink, t, forward, MOMENTUM | DX, SDLF_IDENTITY);
        gemm_backward_sgd(sink, t, forward, MOMENTUM | DX | BIAS, SDLF_IDENTITY);
        gemm_backward_sgd(sink, t, last, MOMENTUM | DX | BIAS, SDLF_RELU);
    }
    gemm_size tall = {281903, 16, 128};
    for (int wide = 0; wide < 2; wide++) {
        kernel_case made = gemm(wide ? SDLF_FLOAT64 : t, tall, false, false);
        emit_gemm(sink, &made, tall);
    }
    static const gemm_size others[] = {{64, 10, 1024},   {512, 512, 512},  {1024, 1024, 1024}, {2048, 2048, 2048},
                                       {65536, 64, 576}, {65536, 256, 64}, {12544, 256, 256},  {256, 256, 65536}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        kernel_case made = gemm(t, others[i], false, true);
        emit_gemm(sink, &made, others[i]);
    }
}
