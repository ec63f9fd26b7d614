/* SPDX-License-Identifier: MIT */
/* The pass plan_store_rows in two parts: row_storage.c chooses the steps that are stored, row_storage_steps.c rebuilds
 * the list of steps, with conversions. */
#ifndef SDLF_FRAMEWORK_PLAN_LAYOUTS_ROW_STORAGE_H
#define SDLF_FRAMEWORK_PLAN_LAYOUTS_ROW_STORAGE_H

#include "framework/operand.h"
#include "framework/plan/layouts/layouts.h"

/* Who writes a buffer: no step yet, copies, one other step that could write the storage type, any others. */
typedef enum content_writers { NO_WRITER, COPIES, ONE_STORABLE, OTHERS } content_writers;

/* The forms of a buffer's content. */
typedef struct stored_content {
    int stored_buffer;     /* the buffer that holds it in the storage type; 0: none */
    bool float32;          /* it exists in float32 */
    bool stored;           /* a stored step reads or writes it */
    bool read_by_storable; /* a step that could be stored reads it */
    bool feeds_gemm;       /* a GEMM reads it, directly or through kinds that could store their results */
    bool converted;        /* a step that is not stored reads or writes it */
    bool gradient;         /* of a parameter, or a part of one */
    content_writers writers;
} stored_content;

typedef struct storage_pass {
    sdlf_plan *plan;
    plan_step *old; /* the original steps; the plan's list is rebuilt */
    int old_count;
    stored_content *content; /* of each buffer */
    bool *storable, *stored; /* per original step: could it be stored, and will it be? */
    sdlf_dtype storage;
} storage_pass;

static inline bool is_output(int i)
{
    return i >= SDLF_MAX_INPUTS;
}

/* Updates and sums over ranks keep float32. */
static inline bool is_forward_or_backward(const plan_step *step)
{
    return step->phase == SDLF_PHASE_FORWARD || step->phase == SDLF_PHASE_BACKWARD;
}

static inline bool is_copy(const plan_step *step)
{
    const sdlf_operation *op = &step->operation;
    return op->kind == SDLF_COPY && is_forward_or_backward(step) && op->in[0].buffer != op->out[0].buffer;
}

/* The operands that a stored step has in the storage type, as bits of a class. Those that may be float32 beside them
 * are, except inputs that can be written in the storage type, and outputs that a GEMM reads or that a residual is added
 * to. */
unsigned storage_operands(const storage_pass *pass, const sdlf_operation *operation);

/* Appends all steps, those that are stored with their operands in the storage type, to the plan's new list. */
sdlf_status storage_append_steps(storage_pass *pass);

#endif
