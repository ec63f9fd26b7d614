/* SPDX-License-Identifier: MIT */
/* The class of the cpu calculator: opening, memory, dispatch of operations to kernels. See cpu.h for the structure. */
#include "calculators/cpu/cpu.h"
#include "calculators/cpu/conv2d_algorithms.h"
#include "calculators/cpu/threads.h"

#include <stdio.h>
#include <stdlib.h>

#include "calculators/augmentation.h"
#include "calculators/fusions/conv2d_pool.h"
#include "calculators/fusions/gemm_backward_sgd.h"
#include "calculators/fusions/inverted_residual.h"
#include "calculators/host_memory.h"
#include "calculators/shuffle.h"

/* ---- opening ---- */

static sdlf_status open_cpu(sdlf_calculator *calculator, const sdlf_calculator_options *options)
{
    cpu_calculator *cpu = cpu_from(calculator);
    if (options->threads > CPU_MAX_THREADS) {
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "threads is %d, expected at most %d", options->threads, CPU_MAX_THREADS);
    }
    sdlf_status status = cpu_level_choose(&cpu->level, getenv("SDLF_SIMD"));
    if (status != SDLF_OK) return status;
    cpu->wanted = cpu_threads_choose(options->threads);
    status = cpu_threads_create(&cpu->pool, cpu->wanted);
    if (status != SDLF_OK) return status;
    cpu->threads = cpu_threads_count(cpu->pool);
    cpu->library = cpu_gemm_library_of_build();
    calculator->space = SDLF_HOST_SPACE;
    return SDLF_OK;
}

static void close_cpu(sdlf_calculator *calculator)
{
    cpu_threads_free(cpu_from(calculator)->pool);
}

static void describe_cpu(const sdlf_calculator *calculator, char *text, size_t size)
{
    const cpu_calculator *cpu = cpu_from_const(calculator);
    char library[64] = "";
    if (cpu->library) cpu->library->describe(library, sizeof library);
    char fewer[64] = "";
    if (cpu->threads < cpu->wanted) snprintf(fewer, sizeof fewer, " (of %d, the system makes no more)", cpu->wanted);
    snprintf(text, size, "%d thread%s%s, %s, gemm built in%s%s", cpu->threads, cpu->threads == 1 ? "" : "s", fewer,
             cpu->level->name, cpu->library ? " or " : "", library);
}

/* ---- dispatch of an operation to the kernel of its element type ---- */

/* The type that an operation computes in: that of its first float operand; float32 for quantised operations. */
static sdlf_dtype element_type(const sdlf_operation *operation)
{
    if (operation->kind >= SDLF_QUANTIZE && operation->kind <= SDLF_DYNAMIC_QUANTIZE) return SDLF_FLOAT32;
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        if (sdlf_dtype_is_float(operation->in[i].dtype)) return operation->in[i].dtype;
    }
    return operation->out[0].dtype;
}

static const sdlf_kernel_slot *find_kernel(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_level *level = cpu_from_const(calculator)->level;
    const sdlf_dtype type = element_type(operation);
    if (type != SDLF_FLOAT32 && type != SDLF_FLOAT64) return NULL;
    const cpu_instance *instance = type == SDLF_FLOAT32 ? level->float32 : level->float64;
    if (operation->kind != SDLF_FUSED) return &instance->kernel[operation->kind];
    const sdlf_fused_slot *fused = sdlf_fused_slot_in(instance->fusions, operation->fused.fusion);
    return fused != NULL ? &fused->slot : NULL;
}

static sdlf_status run(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return find_kernel(calculator, operation)->run(calculator, operation);
}

static bool supports(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_kernel_slot *kernel = find_kernel(calculator, operation);
    return kernel && kernel->run && (!kernel->supports || kernel->supports(calculator, operation));
}

static int64_t workspace(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_kernel_slot *kernel = find_kernel(calculator, operation);
    return kernel && kernel->workspace ? kernel->workspace(calculator, operation) : 0;
}

static int64_t prepared(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_kernel_slot *kernel = find_kernel(calculator, operation);
    return kernel && kernel->prepared ? kernel->prepared(calculator, operation) : 0;
}

static sdlf_status prepare(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return find_kernel(calculator, operation)->prepare(calculator, operation);
}

/* For convolutions; CPU_CONV2D_AUTO (0) for an unsupported operand type. */
static int automatic(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_kernel_slot *kernel = find_kernel(calculator, operation);
    return kernel ? kernel->automatic(calculator, operation) : CPU_CONV2D_AUTO;
}

/* gather_batch computes in the type of y; rows of integers are moved verbatim. */
static sdlf_status run_gather(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    bool integers = !sdlf_dtype_is_float(operation->out[0].dtype);
    if (sdlf_auto_augment_wanted(&operation->gather.automatic)) {
        const sdlf_operation rest = sdlf_changed_make(operation);
        return run(calculator, &rest);
    }
    return integers ? cpu_gather_integers(calculator, operation) : run(calculator, operation);
}

/* binary of integers needs no instance. */
static sdlf_status run_binary(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    bool floats = sdlf_dtype_is_float(element_type(operation));
    return floats ? run(calculator, operation) : cpu_binary_integers(calculator, operation);
}

/* Nor does a resample that only moves elements. */
static sdlf_status run_resample(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return cpu_resample_moves(operation) ? cpu_resample(calculator, operation) : run(calculator, operation);
}

static int64_t resample_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return cpu_resample_moves(operation) ? 0 : workspace(calculator, operation);
}

static const char *const gemm_algorithms[] = {"auto", "built-in", "library", "tall-skinny", NULL};

/* A library may end the process when memory runs out: a risk taken only on request. */
static const sdlf_algorithm_note gemm_notes[] = {
    {.summary = "the plan's own choice"},
    {.summary = "tiles of c, packed operands"},
    {.summary = "tiles of c, each by a library's GEMM", .on_request = true},
    {.summary = "a tall a and a narrow b, no tiles", .takes = "a that is tall, b that is narrow"},
};

/* Fused blocks are used where vectors of channels pay; pooling gradients follow those of convolutions. */
static bool always(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    (void)operation;
    return true;
}

/* For convolutions. */
static bool prefers_channels_last(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_kernel_slot *kernel = find_kernel(calculator, operation);
    return kernel && kernel->prefers_channels_last(calculator, operation);
}

static const sdlf_fused_slot fusions[] = {
    {&sdlf_inverted_residual_fusion,
     {.run = run,
      .supports = supports,
      .workspace = workspace,
      .channels_last = true,
      .prefers_channels_last = always,
      .prepared = prepared,
      .prepare = prepare}},
    {&sdlf_gemm_backward_sgd_fusion, {.run = run, .supports = supports, .workspace = workspace}},
    {&sdlf_conv2d_pool_forward_fusion, {.run = run, .supports = supports, .workspace = workspace}},
    {&sdlf_conv2d_pool_backward_fusion, {.run = run, .supports = supports, .workspace = workspace}},
    {.fusion = NULL},
};

const sdlf_calculator_class sdlf_cpu_calculator_class =
    {
        .name = "cpu",
        .summary = "vector instructions and threads, in host memory",
        .size = sizeof(cpu_calculator),
        .open = open_cpu,
        .close = close_cpu,
        .describe = describe_cpu,
        .allocate = host_allocate,
        .deallocate = host_deallocate,
        .upload = host_copy,
        .download = host_copy,
        .synchronize = host_synchronize,
        .fusions = fusions,
        .kernel =
            {
                [SDLF_FILL] = {.run = cpu_fill},
                [SDLF_COPY] = {.run = cpu_copy},
                [SDLF_GATHER_BATCH] = {.run = run_gather, .workspace = sdlf_changed_workspace},
                [SDLF_NEXT_BATCH] = {.run = cpu_next_batch},
                [SDLF_SHUFFLE] = {.run = cpu_shuffle, .workspace = sdlf_shuffle_workspace},
                [SDLF_GEMM] = {.run = run,
                               .supports = supports,
                               .workspace = workspace,
                               .algorithms = gemm_algorithms,
                               .notes = gemm_notes,
                               .prepared = prepared,
                               .prepare = prepare},
                [SDLF_SPMM_CSR] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_REDUCE] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_ADD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_CONV2D_FORWARD] = {.run = run,
                                         .supports = supports,
                                         .workspace = workspace,
                                         .algorithms = cpu_conv2d_algorithms,
                                         .notes = cpu_conv2d_notes,
                                         .work = cpu_conv2d_work,
                                         .automatic = automatic,
                                         .channels_last = true,
                                         .mixed = true,
                                         .prefers_channels_last = prefers_channels_last,
                                         .prepared = prepared,
                                         .prepare = prepare},
                [SDLF_CONV2D_BACKWARD_INPUT] = {.run = run,
                                                .supports = supports,
                                                .workspace = workspace,
                                                .algorithms = cpu_conv2d_algorithms,
                                                .notes = cpu_conv2d_notes,
                                                .automatic = automatic,
                                                .channels_last = true,
                                                .prefers_channels_last = prefers_channels_last,
                                                .prepared = prepared,
                                                .prepare = prepare},
                [SDLF_CONV2D_BACKWARD_WEIGHTS] = {.run = run,
                                                  .supports = supports,
                                                  .workspace = workspace,
                                                  .algorithms = cpu_conv2d_algorithms,
                                                  .notes = cpu_conv2d_notes,
                                                  .automatic = automatic,
                                                  .channels_last = true,
                                                  .prefers_channels_last = prefers_channels_last},
                [SDLF_MAX_POOL2D_FORWARD] =
                    {.run = run, .supports = supports, .workspace = workspace, .channels_last = true},
                [SDLF_MAX_POOL2D_BACKWARD] = {.run = run,
                                              .supports = supports,
                                              .workspace = workspace,
                                              .channels_last = true,
                                              .prefers_channels_last = always},
                [SDLF_AVG_POOL2D_FORWARD] =
                    {.run = run, .supports = supports, .workspace = workspace, .channels_last = true},
                [SDLF_AVG_POOL2D_BACKWARD] = {.run = run,
                                              .supports = supports,
                                              .workspace = workspace,
                                              .channels_last = true,
                                              .prefers_channels_last = always},
                [SDLF_GLOBAL_AVG_POOL2D_FORWARD] =
                    {.run = run, .supports = supports, .workspace = workspace, .channels_last = true},
                [SDLF_GLOBAL_AVG_POOL2D_BACKWARD] = {.run = run,
                                                     .supports = supports,
                                                     .workspace = workspace,
                                                     .channels_last = true,
                                                     .prefers_channels_last = always},
                [SDLF_ACTIVATION_FORWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_ACTIVATION_BACKWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_DROPOUT_FORWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_DROPOUT_BACKWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_BATCH_NORM2D_FORWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_BATCH_NORM2D_INFER] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_BATCH_NORM2D_BACKWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_SOFTMAX_FORWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_SOFTMAX_BACKWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_LOG_SOFTMAX_FORWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_LOG_SOFTMAX_BACKWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_SOFTMAX_CROSS_ENTROPY_BACKWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_BINARY] = {.run = run_binary},
                [SDLF_BINARY_BACKWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_SELECT] = {.run = cpu_select},
                [SDLF_ARG_REDUCE] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_GATHER] = {.run = cpu_gather},
                [SDLF_GATHER_BACKWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_TOP_K] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_RESAMPLE] = {.run = run_resample, .workspace = resample_workspace},
                [SDLF_RESAMPLE_BACKWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_MATMUL] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_NORMALIZE_FORWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_NORMALIZE_BACKWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_RANDOM_UNIFORM] = {.run = cpu_random_uniform},
                [SDLF_RANDOM_NORMAL] = {.run = cpu_random_normal},
                [SDLF_QUANTIZE] = {.run = run},
                [SDLF_DEQUANTIZE] = {.run = run},
                [SDLF_QUANTIZED_CONV2D] = {.run = run,
                                           .workspace = workspace,
                                           .channels_last = true,
                                           .mixed = true,
                                           .prefers_channels_last = always,
                                           .prepared = prepared,
                                           .prepare = prepare},
                [SDLF_QUANTIZED_ADD] = {.run = run},
                [SDLF_QUANTIZED_POOL2D] = {.run = run, .channels_last = true},
                [SDLF_INTEGER_MATMUL] = {.run = run, .workspace = workspace, .prepared = prepared, .prepare = prepare},
                [SDLF_DYNAMIC_QUANTIZE] = {.run = run, .workspace = workspace},
                [SDLF_ATTENTION_FORWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_ATTENTION_BACKWARD] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_LSTM_FORWARD] = {.run = run, .workspace = workspace, .prepared = prepared, .prepare = prepare},
                [SDLF_LSTM_BACKWARD] = {.run = run, .workspace = workspace},
                [SDLF_GRU_FORWARD] = {.run = run, .workspace = workspace, .prepared = prepared, .prepare = prepare},
                [SDLF_GRU_BACKWARD] = {.run = run, .workspace = workspace},
                [SDLF_SGD_UPDATE] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_ADAM_UPDATE] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_RMSPROP_UPDATE] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_CLIP_SCALE] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_CHECK_FINITE] = {.run = run, .supports = supports, .workspace = workspace},
                [SDLF_LOSS_SCALE_UPDATE] = {.run = run, .supports = supports, .workspace = workspace},
            },
};
