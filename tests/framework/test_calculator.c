/* SPDX-License-Identifier: MIT */
/* Calculators: the registry, and memory of every class. */
#include "testing.h"

#include <sdlf/calculator.h>
#include <sdlf/fusion.h>

#include <stdio.h>
#include <string.h>

static void classes_are_listed(void)
{
    CHECK(sdlf_calculator_class_at(-1) == NULL);
    bool reference = false;
    int count = 0;
    while (sdlf_calculator_class_at(count)) count++;
    for (int i = 0; i < count; i++) {
        const sdlf_calculator_class *type = sdlf_calculator_class_at(i);
        CHECK(type->name && type->summary && type->size >= sizeof(sdlf_calculator));
        for (int j = 0; j < i; j++) CHECK(strcmp(type->name, sdlf_calculator_class_at(j)->name) != 0);
        if (strcmp(type->name, "reference") == 0) reference = true;
    }
    CHECK(reference);
}

static bool declares_packed(const sdlf_kernel_slot *slot, const sdlf_operation_class *type)
{
    return (slot->prepared == NULL || type->packed != 0) && (type->unread & ~type->packed) == 0;
}

/* Only operands that a kind's class, or a fusion's, names by `packed` are ever prepacked. */
static void what_is_prepacked_is_declared(void)
{
    for (int i = 0; sdlf_calculator_class_at(i) != NULL; i++) {
        const sdlf_calculator_class *type = sdlf_calculator_class_at(i);
        for (int kind = 0; kind < SDLF_OPERATION_COUNT; kind++) {
            const sdlf_operation_class *of = sdlf_operation_class_of(kind);
            if (!CHECK(declares_packed(&type->kernel[kind], of))) printf("%s, %s\n", type->name, of->name);
        }
        for (const sdlf_fused_slot *f = type->fusions; f != NULL && f->fusion != NULL; f++)
            if (!CHECK(declares_packed(&f->slot, &f->fusion->type)))
                printf("%s, %s\n", type->name, f->fusion->type.name);
    }
}

static void the_usual_one_is_on_the_host(void)
{
    sdlf_calculator *usual = NULL;
    const sdlf_calculator_class *type = sdlf_calculator_class_default();
    bool listed = false;
    for (int i = 0; sdlf_calculator_class_at(i) != NULL; i++) listed = listed || sdlf_calculator_class_at(i) == type;
    CHECK(listed);
    CHECK_OK(sdlf_calculator_open(&usual, type->name, NULL));
    CHECK(sdlf_calculator_is_on_host(usual));
    sdlf_calculator elsewhere = {.type = type, .space = "cuda:0"};
    CHECK(!sdlf_calculator_is_on_host(&elsewhere));
    sdlf_calculator_close(usual);
}

static void unknown_names_are_answered_with_the_known(void)
{
    sdlf_calculator *calculator = NULL;
    CHECK_FAILS(sdlf_calculator_open(&calculator, "abacus", NULL), SDLF_ERROR_ARGUMENT, "abacus");
    CHECK(strstr(sdlf_error_message(), "reference"));
    CHECK(calculator == NULL);
    const char *name, *reason;
    for (int i = 0; (name = sdlf_calculator_unavailable(i, &reason)); i++) {
        CHECK_FAILS(sdlf_calculator_open(&calculator, name, NULL), SDLF_ERROR_UNSUPPORTED, reason);
        CHECK(calculator == NULL);
        for (int j = 0; sdlf_calculator_class_at(j); j++) CHECK(strcmp(sdlf_calculator_class_at(j)->name, name) != 0);
    }
    CHECK_FAILS(sdlf_calculator_open(&calculator, "reference", &(sdlf_calculator_options){.threads = -1}),
                SDLF_ERROR_ARGUMENT, "threads is -1");
    CHECK_FAILS(sdlf_calculator_open(&calculator, "reference", &(sdlf_calculator_options){.device = -2}),
                SDLF_ERROR_ARGUMENT, "device is -2");
    CHECK_FAILS(sdlf_calculator_open(&calculator, "reference", &(sdlf_calculator_options){.math = SDLF_MATH_COUNT}),
                SDLF_ERROR_ARGUMENT, "no math mode 4");
    sdlf_calculator_close(NULL);
}

static void memory_of(const char *name)
{
    sdlf_calculator *calculator = NULL;
    if (!CHECK_OK(sdlf_calculator_open(&calculator, name, NULL))) return;
    const sdlf_calculator_class *type = calculator->type;
    char text[128] = "";
    type->describe(calculator, text, sizeof text);
    CHECK(strlen(text) > 0);
    CHECK(calculator->space != NULL);

    unsigned char sent[1000], received[1000] = {0};
    for (int i = 0; i < 1000; i++) sent[i] = (unsigned char)(i * 31);
    void *memory = NULL, *nothing = NULL;
    CHECK_OK(type->allocate(calculator, sizeof sent, &memory));
    CHECK_EQUAL((int64_t)((uintptr_t)memory % 64), 0);
    CHECK_OK(type->upload(calculator, memory, sent, sizeof sent));
    CHECK_OK(type->download(calculator, received, memory, sizeof received));
    CHECK_OK(type->synchronize(calculator));
    CHECK(memcmp(sent, received, sizeof sent) == 0);
    CHECK_OK(type->upload(calculator, memory, sent, 0));
    CHECK_OK(type->download(calculator, received, memory, 0));
    CHECK_OK(type->allocate(calculator, 0, &nothing));
    type->deallocate(calculator, nothing);
    type->deallocate(calculator, memory);
    CHECK_FAILS(type->allocate(calculator, INT64_MAX, &memory), SDLF_ERROR_MEMORY, "");
    sdlf_calculator_close(calculator);
}

static void every_class_moves_memory(void)
{
    int64_t live = test_live_allocations();
    for (int i = 0; test_calculator_class_at(i); i++) memory_of(test_calculator_class_at(i)->name);
    CHECK_EQUAL(test_live_allocations(), live);
}

static sdlf_status open_and_close(void *name)
{
    sdlf_calculator *calculator = NULL;
    sdlf_status status = sdlf_calculator_open(&calculator, name, &(sdlf_calculator_options){.threads = 2});
    sdlf_calculator_close(calculator);
    return status;
}

static void opening_survives_failing_allocations(void)
{
    for (int i = 0; test_calculator_class_at(i); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s", test_calculator_class_at(i)->name);
        test_every_allocation(name, open_and_close, name);
    }
}

static void one_space_is_shared(void)
{
    sdlf_calculator *a = NULL, *b = NULL;
    CHECK_OK(sdlf_calculator_open(&a, "reference", NULL));
    CHECK_OK(sdlf_calculator_open(&b, "reference", NULL));
    sdlf_calculator elsewhere = {.type = a->type, .space = "moon:0"};
    CHECK(sdlf_calculator_shares_memory(a, b));
    CHECK(sdlf_calculator_shares_memory(a, a));
    CHECK(!sdlf_calculator_shares_memory(a, &elsewhere));
    sdlf_calculator_close(a);
    sdlf_calculator_close(b);
}

int main(void)
{
    RUN(classes_are_listed);
    RUN(what_is_prepacked_is_declared);
    RUN(the_usual_one_is_on_the_host);
    RUN(unknown_names_are_answered_with_the_known);
    RUN(every_class_moves_memory);
    RUN(opening_survives_failing_allocations);
    RUN(one_space_is_shared);
    return test_summary();
}
