/* Every operation of every calculator against `reference`; with --bench, its speed.
 *
 *     test_kernels [--only TEXT] [--calculator NAME] [--math MODE] [--once] [--seconds S] [--bench [TEXT]]
 *
 * For tools that make kernels slow: --calculator leaves the others out, --once runs a case with one thread alone and once
 * off its alignment, --seconds gives each family its share of so much time and leaves the rest of its cases out.
 *
 * Each case runs on every calculator with 1, 2 and 3 threads, with each of its algorithms, and once with operands off
 * their alignment; products also in each math mode that the calculator has. Outputs must be within the case's tolerance of reference's, the same bits at every thread count, and
 * written completely; inputs and the bytes around every operand must stay as they were.
 *
 * An operation that a calculator has not is told in its summary line; for `cpu` it is a failure where the contract asks
 * for it: every kind in float32, and forward kinds in float64, but fusions that are left to their parts. */
#include "kernels.h"

#include "testing.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/clock.h"

enum { THREAD_COUNTS = 3, MAX_MACHINES = 16 };

typedef struct machine {
    const sdlf_calculator_class *type;
    sdlf_math math;
    sdlf_calculator *calculator[THREAD_COUNTS]; /* with 1, 2, 3 threads; one alone in another mode than fp32 */
    int64_t runs, unsupported[SDLF_OPERATION_COUNT], cases[SDLF_OPERATION_COUNT];
} machine;

typedef struct checker {
    kernel_sink sink;
    const char *only, *calculator; /* NULL: all */
    bool one_math;                 /* only in mode `math` */
    sdlf_math math;
    bool once;
    double seconds, deadline; /* of a family; 0: as long as it takes */
    int64_t left_out;
    sdlf_calculator *reference;
    machine machines[MAX_MACHINES];
    int machine_count;
    int64_t cases[SDLF_OPERATION_COUNT], failures[SDLF_OPERATION_COUNT];
} checker;

static checker state; /* the tests below take no arguments */

/* Failures of one kind after which its further cases are left out: one broken kernel should not fill the screen. */
enum { PATIENCE = 20 };

/* ---- one case ---- */

/* How much a factor may change when it is rounded to nearest, relative to its size: half a unit of the last of 10 bits of mantissa
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

/* Operations that another math mode may compute otherwise. */
static bool has_factors(sdlf_operation_kind kind)
{
    switch (kind) {
    case SDLF_GEMM:
    case SDLF_MATMUL:
    case SDLF_GEMM_BACKWARD_SGD:
    case SDLF_CONV2D_FORWARD:
    case SDLF_CONV2D_BACKWARD_INPUT:
    case SDLF_CONV2D_BACKWARD_WEIGHTS:
    case SDLF_CONV2D_RELU_MAX_POOL_FORWARD:
    case SDLF_CONV2D_RELU_MAX_POOL_BACKWARD:
    case SDLF_CONV2D_RELU_MAX_POOL_BACKWARD_SGD: return true;
    default: return false;
    }
}

const sdlf_activation kernel_activation[KERNEL_ACTIVATIONS] = {
    {.function = SDLF_IDENTITY},
    {.function = SDLF_RELU},
    {.function = SDLF_CLIP, .low = -0.3f, .high = 0.4f},
    {.function = SDLF_LEAKY_RELU, .slope = 0.1f},
    {.function = SDLF_SIGMOID},
    {.function = SDLF_TANH},
    {.function = SDLF_SILU},
    {.function = SDLF_HARD_SWISH},
    {.function = SDLF_ELU, .alpha = 1.5f},
    {.function = SDLF_SELU, .alpha = 1.67f, .beta = 1.05f},
    {.function = SDLF_CELU, .alpha = 0.7f},
    {.function = SDLF_GELU},
    {.function = SDLF_GELU_TANH},
    {.function = SDLF_MISH},
    {.function = SDLF_SOFTPLUS},
    {.function = SDLF_SOFTSIGN},
    {.function = SDLF_HARD_SIGMOID, .alpha = 0.8f, .beta = 0.5f},
    {.function = SDLF_ERF},
    {.function = SDLF_SQRT},
    {.function = SDLF_EXP},
    {.function = SDLF_LOG},
    {.function = SDLF_ABS},
    {.function = SDLF_NEGATE},
    {.function = SDLF_RECIPROCAL},
    {.function = SDLF_FLOOR},
    {.function = SDLF_CEIL},
    {.function = SDLF_ROUND},
};
const char *const kernel_activation_name[KERNEL_ACTIVATIONS] = {
    "",      " relu", " clip", " leaky_relu", " sigmoid", " tanh",       " silu",     " hard_swish",   " elu",
    " selu", " celu", " gelu", " gelu_tanh",  " mish",    " softplus",   " softsign", " hard_sigmoid", " erf",
    " sqrt", " exp",  " log",  " abs",        " negate",  " reciprocal", " floor",    " ceil",         " round",
};

sdlf_dtype kernel_dtype(const sdlf_operation *operation)
{
    int first = 0;
    while (first < SDLF_MAX_OUTPUTS - 1 && !sdlf_tensor_present(&operation->out[first])) first++;
    return operation->out[first].dtype;
}

void kernel_emit(kernel_sink *sink, const kernel_case *made, const char *format, ...)
{
    kernel_case named = *made;
    char text[120];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(named.name, sizeof named.name, "%s %s%s %s", sdlf_operation_class_of(made->operation.kind)->name, text,
             made->aliased ? " in place" : "", sdlf_dtype_name(kernel_dtype(&made->operation)));
    sink->take(sink, &named);
}

static bool is_forward(sdlf_operation_kind kind)
{
    const char *name = sdlf_operation_class_of(kind)->name;
    return !strstr(name, "backward") && !strstr(name, "update") && kind != SDLF_CLIP_SCALE;
}

/* Fusions that save nothing on a CPU: the plan then keeps the parts, all of which are there. */
static bool may_stay_in_parts(const sdlf_operation *operation)
{
    switch (operation->kind) {
    case SDLF_CONV2D_RELU_MAX_POOL_BACKWARD_SGD: return true;
    case SDLF_CONV2D_RELU_MAX_POOL_FORWARD: return !sdlf_tensor_present(&operation->out[1]); /* inference: no mask */
    case SDLF_GEMM_BACKWARD_SGD:
        return sdlf_tensor_present(&operation->out[3]) || operation->gemm_backward.activation.function != SDLF_IDENTITY;
    default: return false;
    }
}

/* What cpu may not refuse. Storage types are asked of nobody but copy and fill. */
static bool must_be_supported(const machine *m, const sdlf_operation *operation)
{
    if (strcmp(m->type->name, "cpu") != 0 || may_stay_in_parts(operation)) return false;
    sdlf_dtype t = kernel_dtype(operation);
    if (t == SDLF_FLOAT64) return is_forward(operation->kind);
    return t == SDLF_FLOAT32 || operation->kind == SDLF_COPY || operation->kind == SDLF_FILL;
}

static void check_algorithm(machine *m, const kernel_case *made, const kernel_images *given, int algorithm,
                            const kernel_images *expected)
{
    const char *const *names = m->type->kernel[made->operation.kind].algorithms;
    kernel_images first = {.in = {NULL}}, found;
    char who[120];
    for (int i = 0; i < THREAD_COUNTS && m->calculator[i]; i++) {
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
    snprintf(who, sizeof who, "%s (%s, operands off their alignment%s%s)", m->type->name, sdlf_math_name(m->math),
             names ? ", " : "", names ? names[algorithm] : "");
    kernel_run(&found, made, given, algorithm, m->calculator[m->calculator[1] ? 1 : 0], 1, false, who);
    kernel_compare(made, &found, expected, who);
    kernel_images_free(&found);
    sdlf_operation asked = kernel_bind(made, given);
    asked.algorithm = algorithm;
    if (sdlf_calculator_prepared(m->calculator[0], &asked) == 0) return;
    snprintf(who, sizeof who, "%s (%s, weights made ready%s%s)", m->type->name, sdlf_math_name(m->math),
             names ? ", " : "", names ? names[algorithm] : "");
    kernel_run(&found, made, given, algorithm, m->calculator[0], 0, true, who);
    kernel_compare(made, &found, expected, who);
    kernel_images_free(&found);
}

/* Winograd's transforms (winograd_transform.h) add and subtract numbers of the image before they multiply, so that a rounding
 * error counts for more than in a plain sum. With all signs against it, by the sum over points of |A| |G| |B|, squared for two axes,
 * over the 9 products of the window: 8 8 / 9 = 7 times for tiles of 2x2, 48 48 / 9 = 256 for 4x4. Signs are as good as random,
 * which leaves about the square root. */
static double growth_of(const char *algorithm)
{
    if (strncmp(algorithm, "winograd-2x2", strlen("winograd-2x2")) == 0) return 3;
    if (strcmp(algorithm, "winograd-4x4") == 0 || strcmp(algorithm, "winograd-nonfused") == 0) return 16;
    if (strncmp(algorithm, "fft", 3) == 0)
        return 8; /* each number of the image has a part in each of its tile's outputs */
    return strcmp(algorithm, "winograd") == 0 ? 16 : 1; /* cuDNN does not tell the size of its tiles */
}

static void check_on(machine *m, const kernel_case *described, const kernel_images *given,
                     const kernel_images *expected)
{
    const sdlf_kernel_slot *slot = &m->type->kernel[described->operation.kind];
    if (m->math != SDLF_MATH_FP32 && !has_factors(described->operation.kind)) return;
    kernel_case held = *described, *made = &held;
    if (kernel_dtype(&made->operation) == SDLF_FLOAT32) held.rounding = rounding_of(m->math);
    m->cases[made->operation.kind]++;
    if (!slot->run) return; /* told once, in the summary */
    sdlf_operation asked = kernel_bind(made, given);
    for (int algorithm = 0; algorithm == 0 || (slot->algorithms && slot->algorithms[algorithm]); algorithm++) {
        asked.algorithm = algorithm;
        const char *name = sdlf_calculator_algorithm(m->calculator[0], &asked); /* what auto takes, too */
        held.tolerance = described->tolerance * (name ? growth_of(name) : 1);
        if (sdlf_calculator_supports(m->calculator[0], &asked)) {
            check_algorithm(m, made, given, algorithm, expected);
        } else if (algorithm == 0) {
            m->unsupported[made->operation.kind]++;
            if (must_be_supported(m, &asked)) kernel_fail(made, m->type->name, "not supported");
        }
    }
}

static void check_case(kernel_sink *sink, const kernel_case *made)
{
    checker *c = (checker *)sink;
    if (c->only && !strstr(made->name, c->only)) return;
    if (c->seconds > 0 && sdlf_clock() > c->deadline) {
        c->left_out++;
        return;
    }
    c->cases[made->operation.kind]++;
    if (c->failures[made->operation.kind] >= PATIENCE) return;
    if (!test_check_status(sdlf_operation_check(&made->operation), SDLF_OK, NULL, __FILE__, __LINE__, made->name))
        return;
    int64_t failures = kernel_failures();
    kernel_images given, expected;
    kernel_images_make(&given, made, c->reference);
    kernel_case apart = *made;
    apart.aliased = false; /* what is expected is computed with every operand in a place of its own */
    kernel_run(&expected, &apart, &given, 0, c->reference, 0, false, "reference");
    for (int i = 0; i < c->machine_count; i++) check_on(&c->machines[i], made, &given, &expected);
    kernel_images_free(&expected);
    kernel_images_free(&given);
    if (kernel_failures() == failures) return;
    c->failures[made->operation.kind] += kernel_failures() - failures;
    if (c->failures[made->operation.kind] >= PATIENCE) {
        printf("further cases of %s are left out\n", sdlf_operation_class_of(made->operation.kind)->name);
    }
}

/* ---- all of them ---- */

static const struct family {
    const char *name;
    kernel_generator *cases, *bench;
} families[] = {
    {"memory", memory_cases, memory_bench},
    {"gather_batch", gather_cases, gather_bench},
    {"gemm", gemm_cases, gemm_bench},
    {"elementwise", elementwise_cases, elementwise_bench},
    {"conv2d", conv2d_cases, conv2d_bench},
    {"conv2d_relu_max_pool", conv2d_pool_cases, conv2d_pool_bench},
    {"pool2d", pool2d_cases, pool2d_bench},
    {"batch_norm2d", batch_norm_cases, batch_norm_bench},
    {"softmax", softmax_cases, softmax_bench},
    {"spmm_csr", spmm_cases, spmm_bench},
    {"random", random_cases, random_bench},
    {"update", update_cases, update_bench},
    {"broadcast", broadcast_cases, broadcast_bench},
    {"indexing", indexing_cases, indexing_bench},
    {"rows", rows_cases, rows_bench},
};
enum { FAMILIES = sizeof families / sizeof families[0] };

static const struct family *running;

static void check_family(void)
{
    state.deadline = sdlf_clock() + state.seconds;
    running->cases(&state.sink, SDLF_FLOAT32);
    running->cases(&state.sink, SDLF_FLOAT64);
}

static void every_kind_has_cases(void)
{
    for (int kind = 0; kind < SDLF_OPERATION_COUNT; kind++) {
        if (!CHECK(state.cases[kind] > 0)) printf("no case for kind %d\n", kind);
    }
}

/* One line a calculator: what it has, and what it has not. */
static void summarize(const machine *m)
{
    char missing[1200] = "", refused[1200] = "";
    size_t missing_used = 0, refused_used = 0;
    int present = 0;
    for (int kind = 0; kind < SDLF_OPERATION_COUNT; kind++) {
        const char *name = sdlf_operation_class_of((sdlf_operation_kind)kind)->name;
        if (m->type->kernel[kind].run) {
            present++;
        } else if (missing_used < sizeof missing) {
            missing_used += (size_t)snprintf(missing + missing_used, sizeof missing - missing_used, " %s", name);
        }
        if (m->unsupported[kind] > 0 && refused_used < sizeof refused) {
            refused_used +=
                (size_t)snprintf(refused + refused_used, sizeof refused - refused_used, " %s (%lld of %lld)", name,
                                 (long long)m->unsupported[kind], (long long)m->cases[kind]);
        }
    }
    printf("%s, %s: %d of %d operations, %lld runs; missing:%s; cases not supported:%s\n", m->type->name,
           sdlf_math_name(m->math), present, SDLF_OPERATION_COUNT, (long long)m->runs, *missing ? missing : " none",
           *refused ? refused : " none");
}

static void cpu_has_every_operation(void)
{
    for (int i = 0; i < state.machine_count; i++) {
        const machine *m = &state.machines[i];
        for (int kind = 0; kind < SDLF_OPERATION_COUNT && strcmp(m->type->name, "cpu") == 0; kind++) {
            const sdlf_operation plain = {.kind = (sdlf_operation_kind)kind};
            bool there = m->type->kernel[kind].run != NULL || may_stay_in_parts(&plain);
            if (!CHECK(there)) printf("cpu has no %s\n", sdlf_operation_class_of((sdlf_operation_kind)kind)->name);
        }
    }
}

/* reference takes part too, with one thread: its aliasing, guards and complete writing are held to the same rules. */
static void open_machine(const sdlf_calculator_class *type, sdlf_math math)
{
    machine *m = &state.machines[state.machine_count];
    *m = (machine){.type = type, .math = math};
    bool opened = true, alone = state.once || math != SDLF_MATH_FP32 || strcmp(type->name, "reference") == 0;
    for (int t = 0; t < (alone ? 1 : THREAD_COUNTS) && opened; t++) {
        sdlf_calculator_options options = {.threads = t + 1, .math = math};
        opened = sdlf_calculator_open(&m->calculator[t], type->name, &options) == SDLF_OK;
        if (!opened) printf("%s, %s: not tested: %s\n", type->name, sdlf_math_name(math), sdlf_error_message());
    }
    if (opened) state.machine_count++;
}

static void open_machines(void)
{
    CHECK_OK(sdlf_calculator_open(&state.reference, "reference", NULL));
    for (int i = 0; sdlf_calculator_class_at(i); i++) {
        const sdlf_calculator_class *type = sdlf_calculator_class_at(i);
        if (state.calculator && strcmp(type->name, state.calculator) != 0) continue;
        int before = state.machine_count;
        for (int math = 0; math < (type->has_math ? (int)SDLF_MATH_COUNT : 1); math++) {
            if (state.one_math && math != (int)state.math) continue;
            if (math > 0 && !state.one_math && state.machine_count == before) break; /* not even fp32 */
            if (state.machine_count < MAX_MACHINES) open_machine(type, (sdlf_math)math);
        }
    }
}

static void close_machines(void)
{
    for (int i = 0; i < state.machine_count; i++) {
        for (int t = 0; t < THREAD_COUNTS; t++) sdlf_calculator_close(state.machines[i].calculator[t]);
    }
    sdlf_calculator_close(state.reference);
}

static int bench(const char *filter)
{
    kernel_generator *generators[FAMILIES];
    for (int i = 0; i < FAMILIES; i++) generators[i] = families[i].bench;
    return kernel_bench(
        generators, FAMILIES, filter,
        &(kernel_bench_choice){.calculator = state.calculator, .one_math = state.one_math, .math = state.math});
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bench") == 0) return bench(i + 1 < argc ? argv[i + 1] : NULL);
        if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            state.only = argv[++i];
        } else if (strcmp(argv[i], "--calculator") == 0 && i + 1 < argc) {
            state.calculator = argv[++i];
        } else if (strcmp(argv[i], "--math") == 0 && i + 1 < argc &&
                   sdlf_math_from_name(argv[i + 1]) != SDLF_MATH_COUNT) {
            state.one_math = true;
            state.math = sdlf_math_from_name(argv[++i]);
        } else if (strcmp(argv[i], "--once") == 0) {
            state.once = true;
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc && atof(argv[i + 1]) > 0) {
            state.seconds = atof(argv[++i]) / FAMILIES;
        } else {
            fprintf(
                stderr,
                "usage: %s [--only TEXT] [--calculator NAME] [--math MODE] [--once] [--seconds S] [--bench [TEXT]]\n",
                argv[0]);
            return 2;
        }
    }
    state.sink.take = check_case;
    open_machines();
    if (state.calculator && state.machine_count == 0) {
        printf("nothing is tested: there is no calculator '%s' here\n", state.calculator);
        close_machines();
        return 77;
    }
    for (int i = 0; i < FAMILIES; i++) {
        running = &families[i];
        test_run(running->name, check_family);
    }
    if (!state.only && state.seconds == 0) RUN(every_kind_has_cases);
    RUN(cpu_has_every_operation);
    for (int i = 0; i < state.machine_count; i++) summarize(&state.machines[i]);
    if (state.seconds > 0) {
        int64_t taken = 0;
        for (int kind = 0; kind < SDLF_OPERATION_COUNT; kind++) taken += state.cases[kind];
        printf("%lld of %lld cases in the time that was given\n", (long long)taken,
               (long long)(taken + state.left_out));
    }
    close_machines();
    return test_summary();
}
