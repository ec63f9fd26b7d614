/* SPDX-License-Identifier: MIT */
#include "framework/calculator_inherit.h"

#include <sdlf/fusion.h>

#include <stdlib.h>
#include <string.h>

/* ---- slots that forward to the inherited calculator's slot for the operation's kind ---- */

static const sdlf_kernel_slot *slot_of(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return sdlf_calculator_slot(calculator->inherited, operation);
}

static sdlf_status run(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return slot_of(calculator, operation)->run(calculator->inherited, operation);
}

static bool supports(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return slot_of(calculator, operation)->supports(calculator->inherited, operation);
}

static int64_t workspace(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return slot_of(calculator, operation)->workspace(calculator->inherited, operation);
}

static sdlf_cost work(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return slot_of(calculator, operation)->work(calculator->inherited, operation);
}

static int automatic(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return slot_of(calculator, operation)->automatic(calculator->inherited, operation);
}

static bool prefers_channels_last(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return slot_of(calculator, operation)->prefers_channels_last(calculator->inherited, operation);
}

static int64_t prepared(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return slot_of(calculator, operation)->prepared(calculator->inherited, operation);
}

static sdlf_status prepare(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return slot_of(calculator, operation)->prepare(calculator->inherited, operation);
}

/* A slot whose functions, where present, forward to the inherited ones. Names and flags are the same. */
static sdlf_kernel_slot passed_on(const sdlf_kernel_slot *slot)
{
    sdlf_kernel_slot made = *slot;
    made.run = run;
    if (slot->supports != NULL) made.supports = supports;
    if (slot->workspace != NULL) made.workspace = workspace;
    if (slot->work != NULL) made.work = work;
    if (slot->automatic != NULL) made.automatic = automatic;
    if (slot->prefers_channels_last != NULL) made.prefers_channels_last = prefers_channels_last;
    if (slot->prepared != NULL) made.prepared = prepared;
    if (slot->prepare != NULL) made.prepare = prepare;
    return made;
}

/* ---- the rest of the table ---- */

static sdlf_status open_nothing(sdlf_calculator *calculator, const sdlf_calculator_options *options)
{
    (void)calculator, (void)options;
    return SDLF_OK;
}

static void close_nothing(sdlf_calculator *calculator)
{
    (void)calculator;
}

static void describe(const sdlf_calculator *calculator, char *text, size_t size)
{
    calculator->inherited->type->describe(calculator->inherited, text, size);
}

static sdlf_status allocate(sdlf_calculator *calculator, int64_t bytes, void **memory)
{
    return calculator->inherited->type->allocate(calculator->inherited, bytes, memory);
}

static void deallocate(sdlf_calculator *calculator, void *memory)
{
    calculator->inherited->type->deallocate(calculator->inherited, memory);
}

static sdlf_status upload(sdlf_calculator *calculator, void *to, const void *host, int64_t bytes)
{
    return calculator->inherited->type->upload(calculator->inherited, to, host, bytes);
}

static sdlf_status download(sdlf_calculator *calculator, void *host, const void *from, int64_t bytes)
{
    return calculator->inherited->type->download(calculator->inherited, host, from, bytes);
}

static sdlf_status synchronize(sdlf_calculator *calculator)
{
    return calculator->inherited->type->synchronize(calculator->inherited);
}

static void fill(sdlf_calculator_class *table, const sdlf_calculator_class *from)
{
    if (table->open == NULL) table->open = open_nothing;
    if (table->close == NULL) table->close = close_nothing;
    if (table->describe == NULL) table->describe = describe;
    if (table->allocate == NULL) table->allocate = allocate;
    if (table->deallocate == NULL) table->deallocate = deallocate;
    if (table->upload == NULL) table->upload = upload;
    if (table->download == NULL) table->download = download;
    if (table->synchronize == NULL) table->synchronize = synchronize;
    for (int kind = 0; kind < SDLF_OPERATION_COUNT; kind++)
        if (table->kernel[kind].run == NULL && from->kernel[kind].run != NULL)
            table->kernel[kind] = passed_on(&from->kernel[kind]);
}

/* True if the class has its own kernel for a member of the fusion other than a copy, which must then run. */
static bool replaces_member(const sdlf_calculator_class *type, const sdlf_fusion *fusion)
{
    for (int i = 0; i < fusion->members; i++)
        if (fusion->member[i] != SDLF_COPY && type->kernel[fusion->member[i]].run != NULL) return true;
    return false;
}

/* The class's own fusions, then those that only the inherited class declares, forwarded. NULL: none or, if *enough is
 * false, out of memory. */
static sdlf_fused_slot *merged(const sdlf_calculator_class *type, const sdlf_fused_slot *from, bool *enough)
{
    const sdlf_fused_slot *own = type->fusions;
    size_t count = 0;
    for (const sdlf_fused_slot *s = own; s != NULL && s->fusion != NULL; s++) count++;
    for (const sdlf_fused_slot *s = from; s != NULL && s->fusion != NULL; s++) count++;
    sdlf_fused_slot *list = count > 0 ? calloc(count + 1, sizeof *list) : NULL, *next = list;
    *enough = count == 0 || list != NULL;
    if (list == NULL) return NULL;
    for (; own != NULL && own->fusion != NULL; own++) *next++ = *own;
    for (; from != NULL && from->fusion != NULL; from++) {
        if (sdlf_fused_slot_in(list, from->fusion) != NULL || replaces_member(type, from->fusion)) continue;
        *next++ = (sdlf_fused_slot){from->fusion, from->slot.run != NULL ? passed_on(&from->slot) : from->slot};
    }
    return list;
}

sdlf_status calculator_inherit(sdlf_calculator *calculator, const sdlf_calculator_class *type,
                               const sdlf_calculator_options *options)
{
    sdlf_status status = sdlf_calculator_open(&calculator->inherited, type->inherits, options);
    if (status != SDLF_OK) return status;
    sdlf_calculator_class *table = malloc(sizeof *table);
    bool enough = false;
    sdlf_fused_slot *fusions = table != NULL ? merged(type, calculator->inherited->type->fusions, &enough) : NULL;
    if (!enough) {
        free(table);
        sdlf_calculator_close(calculator->inherited);
        calculator->inherited = NULL;
        return sdlf_fail(SDLF_ERROR_MEMORY, "no memory for a table of %zu bytes", sizeof *table);
    }
    *table = *type;
    table->fusions = fusions;
    fill(table, calculator->inherited->type);
    calculator->type = table;
    calculator->space = calculator->inherited->space;
    return SDLF_OK;
}

sdlf_status calculator_check_inherited(const sdlf_calculator *calculator)
{
    if (calculator->inherited == NULL || sdlf_calculator_shares_memory(calculator, calculator->inherited))
        return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "it inherits from '%s', which computes in '%s', but it has chosen '%s'",
                     calculator->inherited->type->name, calculator->inherited->space, calculator->space);
}

void calculator_disinherit(sdlf_calculator *calculator)
{
    if (calculator->inherited == NULL) return;
    sdlf_calculator_close(calculator->inherited);
    free((void *)calculator->type->fusions);
    free((void *)calculator->type);
}
