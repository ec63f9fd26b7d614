/* SPDX-License-Identifier: MIT */
/* Checking a case on one calculator: with 1, 2 and 3 threads, with each of its algorithms, off its alignment, and with
 * prepacked weights. Also the error bounds for other math modes and for algorithms other than plain sums. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/fusion.h>

#include "calculators/fusions/conv2d_pool.h"
#include "calculators/fusions/gemm_backward_sgd.h"

#include "framework/clock.h"

/* The relative change of an operand when it is rounded to nearest: half a unit in the last place of 10 mantissa bits
 * (tf32, fp16) or 7 (bf16). */
static double rounding_of(sdlf_math math)
{
    switch (math) {
    case SDLF_MATH_TF32:
    case SDLF_MATH_FP16: return 0x1p-11;
    case SDLF_MATH_BF16: return 0x1p-8;
    default: return 0;
    }
}

/* True for operations whose result may depend on the math mode. */
static bool has_operands(sdlf_operation_kind kind)
{
    switch (kind) {
    case SDLF_GEMM:
    case SDLF_MATMUL:
    case SDLF_ATTENTION_FORWARD:
    case SDLF_ATTENTION_BACKWARD:
    case SDLF_LSTM_FORWARD:
    case SDLF_LSTM_BACKWARD:
    case SDLF_GRU_FORWARD:
    case SDLF_GRU_BACKWARD:
    case SDLF_CONV2D_FORWARD:
    case SDLF_CONV2D_BACKWARD_INPUT:
    case SDLF_CONV2D_BACKWARD_WEIGHTS:
    case SDLF_FUSED: return true;
    default: return false;
    }
}

/* Winograd's transforms (winograd_transform.h) add and subtract image elements before multiplying, so that rounding
 * errors are amplified compared with a plain sum. The worst case is the sum over points of |A| |G| |B|, squared for two
 * axes, over the 9 products of the window: 8 8 / 9 = 7 times for tiles of 2x2, 48 48 / 9 = 256 for 4x4. Signs are
 * practically random, which leaves about the square root. cuDNN does not report the size of its tiles: one value in a
 * million was off by 22 times. */
static double growth_of(const char *algorithm)
{
    if (strncmp(algorithm, "winograd-2x2", strlen("winograd-2x2")) == 0) return 3;
    if (strcmp(algorithm, "winograd-4x4") == 0) return 16;
    if (strncmp(algorithm, "fft", 3) == 0) return 8; /* each image element contributes to each output of its tile */
    return strcmp(algorithm, "winograd") == 0 || strcmp(algorithm, "winograd-nonfused") == 0 ? 32 : 1;
}

static bool is_forward(const sdlf_operation *operation)
{
    const char *name = sdlf_operation_type(operation)->name;
    return !strstr(name, "backward") && !strstr(name, "update") && operation->kind != SDLF_CLIP_SCALE;
}

/* cpu fuses updates of GEMMs without bias and activation, and pools after convolutions in training. */
static bool may_stay_unfused(const sdlf_operation *operation)
{
    const sdlf_fusion *fusion = operation->fused.fusion;
    if (fusion == &sdlf_conv2d_pool_backward_fusion) return false;
    if (fusion == &sdlf_conv2d_pool_forward_fusion) return !sdlf_tensor_present(&operation->out[1]); /* no mask */
    return fusion != &sdlf_gemm_backward_sgd_fusion || sdlf_tensor_present(&operation->out[3]) ||
           gemm_backward_sgd_options_of(operation)->activation.function != SDLF_IDENTITY;
}

bool kernel_may_stay_in_parts(const sdlf_operation *operation)
{
    switch (operation->kind) {
    case SDLF_FUSED: return may_stay_unfused(operation);
    case SDLF_MAX_POOL2D_FORWARD: return sdlf_tensor_present(&operation->out[1]);
    case SDLF_MAX_POOL2D_BACKWARD: return sdlf_tensor_present(&operation->in[3]);
    case SDLF_BATCH_NORM2D_FORWARD:
    case SDLF_BATCH_NORM2D_BACKWARD: return sdlf_batch_norm2d_is_fused(operation);
    case SDLF_CONV2D_BACKWARD_INPUT: return sdlf_tensor_present(&operation->in[2]);
    default: return false;
    }
}

/* True for activations in two layouts: only for calculators that support a row-major input, as plans check. */
static bool mixes_layouts(const sdlf_operation *operation)
{
    return operation->kind == SDLF_CONV2D_FORWARD &&
           sdlf_tensor_is_channels_last(&operation->in[0]) != sdlf_tensor_is_channels_last(&operation->out[0]);
}

/* True for operations that cpu must support. Storage types are only required of copy and fill, and gradients of
 * channels-last images are not required. */
static bool must_be_supported(const machine *m, const sdlf_operation *operation)
{
    if (strcmp(m->type->name, "cpu") != 0 || kernel_may_stay_in_parts(operation) || mixes_layouts(operation))
        return false;
    sdlf_dtype t = kernel_dtype(operation);
    bool backward = sdlf_operation_is_channels_last(operation) && !is_forward(operation);
    if (sdlf_operation_storage(operation) != SDLF_NONE || backward) return false;
    if (t == SDLF_FLOAT64) return is_forward(operation);
    return t == SDLF_FLOAT32 || t == SDLF_UINT8 || t == SDLF_INT8 || operation->kind == SDLF_COPY ||
           operation->kind == SDLF_FILL;
}

/* In a row with an infinity, cuDNN gives the finite elements the probability 0, whereas the formula gives NaN for
 * all. */
static bool has_its_own_way(const machine *m, const kernel_case *made)
{
    return strcmp(m->type->name, "cudnn") == 0 && made->operation.kind == SDLF_SOFTMAX_FORWARD && made->infinite;
}

/* True if operands must be aligned to 16 bytes: those of channels-last training and of its fusions. */
static bool begins_aligned(const sdlf_operation *operation)
{
    bool backward = sdlf_operation_is_channels_last(operation) && !is_forward(operation);
    return sdlf_operation_storage(operation) != SDLF_NONE || backward || sdlf_batch_norm2d_is_fused(operation);
}

static void check_algorithm(machine *m, const kernel_case *made, const kernel_images *given, int algorithm,
                            const kernel_images *expected)
{
    const char *const *names = sdlf_calculator_slot(m->calculator[0], &made->operation)->algorithms;
    kernel_images first = {.in = {NULL}}, found;
    char who[120];
    /* The expected result was computed by reference, which need not compute it again. A large case takes as long as a
     * hundred small ones, so only its algorithm "auto" is run more than once. */
    bool done = strcmp(m->type->name, "reference") == 0 && !made->aliased, once = made->fills_device && algorithm > 0;
    for (int i = 0; i < (once ? 1 : THREAD_COUNTS) && m->calculator[i] && !done; i++) {
        snprintf(who, sizeof who, "%s (%s, %d threads%s%s)", m->type->name, sdlf_math_name(m->math), i + 1,
                 names ? ", " : "", names ? names[algorithm] : "");
        kernel_run(&found, made, given, algorithm, m->calculator[i], 0, false, who);
        m->runs++;
        bool right = kernel_compare(made, &found, expected, who);
        if (i == 0) {
            first = found;
        } else {
            if (right) kernel_compare_bits(made, &found, &first, who);
            kernel_images_free(&found);
        }
    }
    kernel_images_free(&first);
    if (!once && !begins_aligned(&made->operation)) {
        snprintf(who, sizeof who, "%s (%s, operands off their alignment%s%s)", m->type->name, sdlf_math_name(m->math),
                 names ? ", " : "", names ? names[algorithm] : "");
        kernel_run(&found, made, given, algorithm, m->calculator[m->calculator[1] ? 1 : 0], 1, false, who);
        m->runs++;
        kernel_compare(made, &found, expected, who);
        kernel_images_free(&found);
    }
    sdlf_operation asked = kernel_bind(made, given);
    asked.algorithm = algorithm;
    if (sdlf_calculator_prepared(m->calculator[0], &asked) == 0) return;
    snprintf(who, sizeof who, "%s (%s, weights prepacked%s%s)", m->type->name, sdlf_math_name(m->math),
             names ? ", " : "", names ? names[algorithm] : "");
    for (int i = 0; i < 2 && m->calculator[i]; i++) {
        kernel_run(&found, made, given, algorithm, m->calculator[i], 0, true, who);
        kernel_compare(made, &found, expected, who);
        kernel_images_free(&found);
    }
}

int kernel_fusion(const sdlf_operation *operation)
{
    int number = operation->kind == SDLF_FUSED ? 0 : -1;
    while (number >= 0 && number < KERNEL_FUSIONS && sdlf_fusion_at(number) != operation->fused.fusion) number++;
    return number < KERNEL_FUSIONS ? number : -1;
}

void kernel_check_on(machine *m, const kernel_case *described, const kernel_images *given,
                     const kernel_images *expected)
{
    const sdlf_kernel_slot *slot = sdlf_calculator_slot(m->calculator[0], &described->operation);
    const sdlf_dtype storage = sdlf_operation_storage(&described->operation);
    bool stored = storage != SDLF_NONE;
    if (m->math != SDLF_MATH_FP32 && !has_operands(described->operation.kind)) return;
    /* a GEMM of float32 weights beside 16 bits rounds them as its mode does; other kinds are independent of modes */
    bool own_mode = storage == (m->math == SDLF_MATH_FP16 ? SDLF_FLOAT16 : SDLF_BFLOAT16);
    bool gemm = described->operation.kind == SDLF_GEMM || described->operation.kind == SDLF_FUSED;
    if (m->math != SDLF_MATH_FP32 && stored && storage != SDLF_FLOAT32 && !(own_mode && gemm)) return;
    if (has_its_own_way(m, described)) return;
    kernel_case held = *described, *made = &held;
    held.one_block = m->one_block;
    if (kernel_dtype(&made->operation) == SDLF_FLOAT32) held.rounding = rounding_of(m->math);
    if (stored && has_operands(described->operation.kind) && described->operation.in[1].dtype == SDLF_FLOAT32)
        held.rounding = rounding_of(storage == SDLF_FLOAT32   ? m->math
                                    : storage == SDLF_FLOAT16 ? SDLF_MATH_FP16
                                                              : SDLF_MATH_BF16);
    const int fusion = kernel_fusion(&made->operation);
    m->cases[made->operation.kind] += !stored;
    if (fusion >= 0) m->tried_fused[fusion] = true;
    if (!slot->run) return; /* reported once, in the summary */
    sdlf_operation asked = given != NULL ? kernel_bind(made, given) : made->operation;
    /* math modes affect float32 operands: for float64 it is enough to check that nothing changes */
    bool indifferent = m->math != SDLF_MATH_FP32 && kernel_dtype(&made->operation) == SDLF_FLOAT64;
    for (int algorithm = 0; algorithm == 0 || (slot->algorithms && slot->algorithms[algorithm]); algorithm++) {
        if (algorithm > 0 && indifferent) break;
        if (m->deadline > 0 && sdlf_clock() > m->deadline) break;
        asked.algorithm = algorithm;
        const char *name = sdlf_calculator_algorithm(m->calculator[0], &asked); /* also chosen by auto */
        held.tolerance = described->tolerance * (name ? growth_of(name) : 1);
        if (sdlf_calculator_supports(m->calculator[0], &asked)) {
            if (given != NULL) check_algorithm(m, made, given, algorithm, expected);
            if (fusion >= 0) m->ran_fused[fusion] = true;
            if (algorithm < KERNEL_ALGORITHMS) m->ran[made->operation.kind][algorithm] = true;
        } else if (algorithm == 0) {
            m->unsupported[made->operation.kind] += !stored;
            if (must_be_supported(m, &asked)) kernel_fail(made, m->type->name, "not supported");
        }
    }
}
