/* SPDX-License-Identifier: MIT */
/* Every operation of every calculator against `reference`; with --bench, its speed. options.h has the command line.
 *
 * There are many cases; ctest runs several processes of this program in parallel, each with its own families (--family)
 * and one with all remaining ones (--but); cuDNN's part of the largest family also has its own process.
 *
 * Each case runs on every calculator with each of its algorithms: on the host with 1, 2 and 3 threads, on a device
 * twice; then once with misaligned operands, and once with prepacked weights if the kernel supports them. In the other
 * math modes of a calculator, matrix products run in one opening, and those in float64 only with auto. Large cases are
 * for devices; of their algorithms, only auto runs more than once. Reference, which computes the expected results, runs
 * again with misaligned and with aliased operands. Outputs must be within the case's tolerance of reference's, bitwise
 * equal at every thread count, and written completely; inputs and the bytes around every operand must be unchanged. A
 * kernel that two calculators share is tested on the first of them.
 *
 * The summary line of a calculator lists unsupported operations. For `cpu` they are failures if the contract requires
 * them: every kind in float32, and forward kinds in float64, except fusions that are left to their parts. */
#include "check.h"
#include "coverage.h"
#include "families.h"
#include "options.h"
#include "sample.h"

#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/fusion.h>

enum { MAX_MACHINES = 16 };

typedef struct checker {
    kernel_sink sink;
    kernel_options asked;
    sample turn;   /* with --seconds or --parts: which cases are due */
    int64_t taken; /* cases run */
    sdlf_calculator *reference;
    machine machines[MAX_MACHINES];
    int machine_count;
    int64_t cases[SDLF_OPERATION_COUNT], failures[SDLF_OPERATION_COUNT];
} checker;

static checker state; /* the tests below take no arguments */

/* After so many failures of one kind its further cases are skipped: one broken kernel should not flood the output. */
enum { PATIENCE = 20 };

/* ---- one case ---- */

/* True if another machine has the same kernel, which is then tested there: most of cudnn's are cuda's. */
static bool is_another_machines(const checker *c, const machine *m, const sdlf_operation *operation)
{
    const sdlf_kernel_slot *slot = sdlf_calculator_slot(m->calculator[0], operation);
    for (const machine *other = c->machines; other < m && slot->run; other++) {
        const sdlf_kernel_slot *its = sdlf_calculator_slot(other->calculator[0], operation);
        if (other->math == m->math && its->run == slot->run && its->supports == slot->supports) return true;
    }
    return false;
}

/* True if the case is for this machine. */
static bool is_for(const checker *c, const machine *m, const kernel_case *made)
{
    if (is_another_machines(c, m, &made->operation)) return false;
    return !made->fills_device || !sdlf_calculator_shares_memory(m->calculator[0], c->reference);
}

static bool is_for_any(const checker *c, const kernel_case *made)
{
    for (int i = 0; i < c->machine_count; i++) {
        if (is_for(c, &c->machines[i], made)) return true;
    }
    return false;
}

static void check_one(kernel_sink *sink, const kernel_case *made)
{
    checker *c = (checker *)sink;
    int64_t number = c->turn.emitted++;
    if ((c->asked.only && !strstr(made->name, c->asked.only)) || !is_for_any(c, made)) return;
    if (!sample_takes(&c->turn, number)) return;
    c->taken++;
    c->cases[made->operation.kind]++;
    if (c->failures[made->operation.kind] >= PATIENCE) return;
    if (!test_check_status(sdlf_operation_check(&made->operation), SDLF_OK, NULL, __FILE__, __LINE__, made->name))
        return;
    if (c->asked.dry) {
        for (int i = 0; i < c->machine_count; i++)
            if (is_for(c, &c->machines[i], made)) kernel_check_on(&c->machines[i], made, NULL, NULL);
        return;
    }
    int64_t failures = kernel_failures();
    kernel_images given, expected;
    kernel_images_make(&given, made, c->reference);
    kernel_case apart = *made;
    apart.aliased = false; /* the expected result is computed without aliasing */
    kernel_run(&expected, &apart, &given, 0, c->reference, 0, false, "reference");
    for (int i = 0; i < c->machine_count; i++) {
        if (is_for(c, &c->machines[i], made)) kernel_check_on(&c->machines[i], made, &given, &expected);
    }
    sample_took(&c->turn);
    kernel_images_free(&expected);
    kernel_images_free(&given);
    if (kernel_failures() == failures) return;
    c->failures[made->operation.kind] += kernel_failures() - failures;
    if (c->failures[made->operation.kind] >= PATIENCE) {
        printf("further cases of %s are left out\n", sdlf_operation_type(&made->operation)->name);
    }
}

/* True if a calculator other than reference supports the operation. */
static bool is_taken(const checker *c, const sdlf_operation *operation)
{
    for (int i = 0; i < c->machine_count; i++) {
        const machine *m = &c->machines[i];
        if (strcmp(m->type->name, "reference") != 0 && sdlf_calculator_supports(m->calculator[0], operation))
            return true;
    }
    return false;
}

/* Check a stored case with operands in float32 that may be so beside others: inputs, the output, or both. */
static void check_beside_float32(kernel_sink *sink, const kernel_case *made, const kernel_case *stored, size_t length)
{
    static const char *const which[] = {"", " beside float32", " to float32", " beside float32 to float32"};
    const unsigned beside = sdlf_operation_type(&made->operation)->float32_beside;
    const bool inputs = (beside & ((1u << SDLF_MAX_INPUTS) - 2)) != 0, output = beside >> SDLF_MAX_INPUTS != 0;
    for (int variant = 1; variant < 4; variant++) {
        kernel_case mixed = *stored;
        if ((variant & 1 && !inputs) || (variant & 2 && (!output || sdlf_tensor_present(&made->operation.in[3]))))
            continue;
        for (int j = 1; j < SDLF_MAX_INPUTS && variant & 1; j++) {
            if (beside >> j & 1) mixed.operation.in[j] = made->operation.in[j];
        }
        if (variant & 2) mixed.operation.out[0] = made->operation.out[0];
        if (!is_taken((const checker *)sink, &mixed.operation)) continue;
        snprintf(mixed.name + length, sizeof mixed.name - length, " %s%s",
                 sdlf_dtype_name(stored->operation.in[0].dtype), which[variant]);
        check_one(sink, &mixed);
    }
}

/* Check a case, and, if a calculator supports it, the same in training's storage: channels last, in 16 bits or with
 * weights in the images' type. */
static void check_case(kernel_sink *sink, const kernel_case *made)
{
    static const sdlf_dtype storage[] = {SDLF_BFLOAT16, SDLF_FLOAT16, SDLF_FLOAT32};
    const checker *c = (const checker *)sink;
    const sdlf_operation *operation = &made->operation;
    const sdlf_operation_class *type = sdlf_operation_type(operation);
    check_one(sink, made);
    int count = type->channels_last != 0 ? 3 : 2; /* for other kinds float32 is the case itself */
    for (int i = 0; i < count && type->storage != 0; i++) {
        kernel_case stored = *made;
        if (kernel_dtype(operation) != SDLF_FLOAT32 || sdlf_operation_is_channels_last(operation)) return;
        if (made->tolerance == 0 && operation->kind != SDLF_MAX_POOL2D_FORWARD)
            stored.tolerance = 1; /* rounded twice */
        stored.operation = sdlf_operation_stored(operation, storage[i]);
        size_t length = strlen(made->name);
        bool taken = is_taken(c, &stored.operation);
        snprintf(stored.name + length, sizeof stored.name - length, " %s nhwc", sdlf_dtype_name(storage[i]));
        if (taken) check_one(sink, &stored);
        if (storage[i] != SDLF_FLOAT32) check_beside_float32(sink, made, &stored, length);
    }
}

/* ---- all of them ---- */

static const kernel_family *running;

static bool family_is_asked(const kernel_family *family)
{
    return (!state.asked.family || kernel_is_listed(state.asked.family, family->name)) &&
           !kernel_is_listed(state.asked.but, family->name);
}

static void check_family(void)
{
    int64_t before = state.taken;
    running->cases(&state.sink, SDLF_FLOAT32);
    running->cases(&state.sink, SDLF_FLOAT64);
    if (state.taken == before) test_skip("none of its cases was asked for");
}

/* With --seconds: pass over all families repeatedly, each time with a part of all cases. With --parts: one pass. */
static void some_of_the_cases(void)
{
    if (state.asked.parts > 0)
        sample_begin_parts(&state.turn, state.asked.parts, state.asked.seed);
    else
        sample_begin(&state.turn, state.asked.seconds, state.asked.seed);
    for (int i = 0; i < state.machine_count; i++) state.machines[i].deadline = state.turn.deadline;
    do {
        for (int i = 0; i < KERNEL_FAMILIES; i++) {
            if (!family_is_asked(&kernel_families[i])) continue;
            kernel_families[i].cases(&state.sink, SDLF_FLOAT32);
            kernel_families[i].cases(&state.sink, SDLF_FLOAT64);
        }
    } while (sample_next(&state.turn));
    if (state.taken == 0) test_skip("no case was asked for, or there was no time");
}

/* A sink that only counts the cases that every machine can run, not those for devices only. */
typedef struct counter {
    kernel_sink sink;
    int64_t cases[SDLF_OPERATION_COUNT], fused[KERNEL_FUSIONS];
} counter;

static void count_case(kernel_sink *sink, const kernel_case *made)
{
    counter *all = (counter *)sink;
    const int fusion = kernel_fusion(&made->operation);
    if (made->fills_device) return;
    all->cases[made->operation.kind]++;
    if (fusion >= 0) all->fused[fusion]++;
}

/* Including fusions, whose expected results are computed by their member operations on reference. */
static void every_kind_has_cases(void)
{
    counter all = {.sink.take = count_case};
    for (int i = 0; i < KERNEL_FAMILIES; i++) {
        kernel_families[i].cases(&all.sink, SDLF_FLOAT32);
        kernel_families[i].cases(&all.sink, SDLF_FLOAT64);
    }
    for (int kind = 0; kind < SDLF_OPERATION_COUNT; kind++) {
        if (!CHECK(all.cases[kind] > 0))
            printf("no case on the host for %s\n", sdlf_operation_class_of((sdlf_operation_kind)kind)->name);
    }
    for (int i = 0; sdlf_fusion_at(i) != NULL; i++) {
        bool known = CHECK(i < KERNEL_FUSIONS);
        if (known && !CHECK(all.fused[i] > 0)) printf("no case on the host for %s\n", sdlf_fusion_at(i)->type.name);
    }
}

static void cpu_has_every_operation(void)
{
    for (int i = 0; i < state.machine_count; i++) {
        const machine *m = &state.machines[i];
        for (int kind = 0; kind < SDLF_OPERATION_COUNT && strcmp(m->type->name, "cpu") == 0; kind++) {
            const sdlf_operation plain = {.kind = (sdlf_operation_kind)kind};
            bool there = m->type->kernel[kind].run != NULL || kernel_may_stay_in_parts(&plain);
            if (!CHECK(there)) printf("cpu has no %s\n", sdlf_operation_class_of((sdlf_operation_kind)kind)->name);
        }
    }
}

/* An algorithm that accepts none of the cases would not be tested at all. */
static void every_algorithm_of_cpu_ran(void)
{
    kernel_check_algorithms(state.machines, state.machine_count, "cpu");
}

static void every_declared_fusion_ran(void)
{
    kernel_check_fusions(state.machines, state.machine_count);
}

static void every_algorithm_of_cuda_ran(void)
{
    kernel_check_algorithms(state.machines, state.machine_count, "cuda");
}

/* The number of thread counts that it is opened with. reference is included, with one: the same rules apply to its
 * aliasing, guards and complete writing. A device has no thread count: a second run must give the same bits. */
static int openings(const machine *m)
{
    if (state.asked.once || m->math != SDLF_MATH_FP32 || strcmp(m->type->name, "reference") == 0) return 1;
    return sdlf_calculator_shares_memory(m->calculator[0], state.reference) ? THREAD_COUNTS : 2;
}

static void open_machine(const sdlf_calculator_class *type, sdlf_math math)
{
    machine *m = &state.machines[state.machine_count];
    *m = (machine){.type = type, .math = math};
    bool opened = true;
    for (int t = 0; opened && (t == 0 || t < openings(m)); t++) {
        sdlf_calculator_options options = {.threads = t + 1, .math = math};
        sdlf_status status = sdlf_calculator_open(&m->calculator[t], type->name, &options);
        opened = status == SDLF_OK;
        if (opened) continue;
        printf("%s, %s: not tested: %s\n", type->name, sdlf_math_name(math), sdlf_error_message());
        CHECK(status == SDLF_ERROR_DEVICE || status == SDLF_ERROR_UNSUPPORTED); /* its device or library is missing */
    }
    m->one_block = opened && !state.asked.once && !sdlf_calculator_shares_memory(m->calculator[0], state.reference);
    if (opened) state.machine_count++;
}

static void open_machines(void)
{
    CHECK_OK(sdlf_calculator_open(&state.reference, "reference", NULL));
    for (int i = 0; sdlf_calculator_class_at(i); i++) {
        const sdlf_calculator_class *type = sdlf_calculator_class_at(i);
        if (state.asked.calculator && strcmp(type->name, state.asked.calculator) != 0) continue;
        if (kernel_is_listed(state.asked.without, type->name)) continue;
        int before = state.machine_count;
        for (int math = 0; math < (type->has_math ? (int)SDLF_MATH_COUNT : 1); math++) {
            if (state.asked.one_math && math != (int)state.asked.math) continue;
            if (math > 0 && !state.asked.one_math && state.machine_count == before) break; /* not even fp32 */
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

static int bench(const kernel_options *asked)
{
    kernel_generator *generators[KERNEL_FAMILIES];
    for (int i = 0; i < KERNEL_FAMILIES; i++) generators[i] = kernel_families[i].bench;
    return kernel_bench(
        generators, KERNEL_FAMILIES, asked->bench_only,
        &(kernel_bench_choice){.calculator = asked->calculator, .one_math = asked->one_math, .math = asked->math});
}

int main(int argc, char **argv)
{
    if (!kernel_options_read(&state.asked, argc, argv)) return 2;
    if (state.asked.bench) return bench(&state.asked);
    state.sink.take = check_case;
    open_machines();
    if (state.asked.calculator && state.machine_count == 0) {
        printf("nothing is tested: there is no calculator '%s' here\n", state.asked.calculator);
        close_machines();
        return 77;
    }
    bool sampled = state.asked.seconds > 0 || state.asked.parts > 0, all = !state.asked.only && !sampled;
    for (int i = 0; i < KERNEL_FAMILIES; i++) {
        running = &kernel_families[i];
        if (family_is_asked(running) && !sampled) test_run(running->name, check_family);
    }
    if (sampled) RUN(some_of_the_cases);
    if (all) RUN(every_kind_has_cases);
    if (!state.asked.calculator || strcmp(state.asked.calculator, "cpu") == 0) RUN(cpu_has_every_operation);
    if (all && !state.asked.calculator) RUN(every_algorithm_of_cpu_ran);
    if (all && !state.asked.one_math) RUN(every_declared_fusion_ran);
    if (all && !state.asked.one_math && (!state.asked.calculator || strcmp(state.asked.calculator, "cuda") == 0))
        RUN(every_algorithm_of_cuda_ran);
    for (int i = 0; i < state.machine_count; i++) kernel_summarize(&state.machines[i]);
    if (sampled) sample_print(&state.turn);
    close_machines();
    return test_summary();
}
