/* SPDX-License-Identifier: MIT */
/* Coverage: what a run of the kernel tests has exercised on each calculator. */
#include "coverage.h"

#include "testing.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/fusion.h>

void kernel_summarize(const machine *m)
{
    char missing[1200] = "", refused[1200] = "";
    size_t missing_used = 0, refused_used = 0;
    int present = 0;
    for (int kind = 0; kind < SDLF_OPERATION_COUNT; kind++) {
        const char *name = sdlf_operation_class_of((sdlf_operation_kind)kind)->name;
        const bool declares = kind == SDLF_FUSED && m->type->fusions != NULL;
        if (m->type->kernel[kind].run || declares) {
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

/* True if a case ran the algorithm. Kinds may share a list of algorithms, some of which are only for one of them. */
static bool has_run(const machine *m, const char *const *names, int algorithm)
{
    for (int kind = 0; kind < SDLF_OPERATION_COUNT && algorithm < KERNEL_ALGORITHMS; kind++) {
        if (m->type->kernel[kind].algorithms == names && m->ran[kind][algorithm]) return true;
    }
    return false;
}

/* True if the algorithm may be missing: builds may lack a GEMM library for the CPU. */
static bool may_be_missing(const machine *m, const char *algorithm)
{
    return strcmp(m->type->name, "cpu") == 0 && strcmp(algorithm, "library") == 0;
}

void kernel_check_algorithms(const machine *machines, int count, const char *calculator)
{
    const machine *first = NULL;
    bool choice = false;
    for (int i = count - 1; i >= 0; i--)
        if (strcmp(machines[i].type->name, calculator) == 0) first = &machines[i];
    if (first == NULL) {
        test_skip("the calculator is not here");
        return;
    }
    if (!test_runs_all_kernels(first->calculator[0])) {
        test_skip("all algorithms of cuda run on compute capability 9.0 alone");
        return;
    }
    for (int kind = 0; kind < SDLF_OPERATION_COUNT; kind++) {
        const char *const *names = first->cases[kind] > 0 ? first->type->kernel[kind].algorithms : NULL;
        for (int a = 0; names != NULL && names[a] != NULL; a++) {
            bool ran = may_be_missing(first, names[a]);
            for (int i = 0; i < count && !ran; i++) /* one machine per math mode */
                ran = machines[i].type == first->type && has_run(&machines[i], names, a);
            choice = true;
            if (!CHECK(ran))
                printf("no case ran %s of %s\n", names[a], sdlf_operation_class_of((sdlf_operation_kind)kind)->name);
        }
    }
    if (!choice) test_skip("the operations that were tried have no choice of algorithms");
}

/* True for the first machine of its class, which represents those in other math modes. */
static bool is_first_of_class(const machine *machines, int index)
{
    int first = 0;
    while (machines[first].type != machines[index].type) first++;
    return first == index && test_runs_all_kernels(machines[index].calculator[0]);
}

void kernel_check_fusions(const machine *machines, int count)
{
    bool tried = false;
    for (int i = 0; i < count; i++) {
        const sdlf_fusion *fusion;
        for (int f = 0; is_first_of_class(machines, i) && f < KERNEL_FUSIONS && (fusion = sdlf_fusion_at(f)) != NULL;
             f++) {
            if (sdlf_fused_slot_in(machines[i].type->fusions, fusion) == NULL || !machines[i].tried_fused[f]) continue;
            bool ran = false;
            tried = true;
            for (int j = i; j < count; j++)
                ran = ran || (machines[j].type == machines[i].type && machines[j].ran_fused[f]);
            if (!CHECK(ran)) printf("no case ran %s of %s\n", fusion->type.name, machines[i].type->name);
        }
    }
    if (!tried) test_skip("no case was of an operation that a calculator here fuses");
}
