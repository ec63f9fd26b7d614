/* SPDX-License-Identifier: MIT */
/* Shared by the files of the layout pass: the forms in which contents exist, and how steps obtain them. */
#ifndef SDLF_FRAMEWORK_PLAN_LAYOUTS_LAYOUTS_H
#define SDLF_FRAMEWORK_PLAN_LAYOUTS_LAYOUTS_H

#include "framework/plan/passes.h"

/* The forms in which a buffer's content exists. */
typedef struct layout_forms {
    bool row_major; /* in the buffer itself, in the plan's dtype */
    bool written;   /* written there by a step; its other writers, if any, write there too */
    /* The buffer that holds it channels last, in the pass's storage type if it has one (16 bits, or float32 in
     * training); its own index if both forms are the same; 0: none. */
    int nhwc;
    sdlf_shape shape; /* with `nhwc`: (N,C,H,W) of the whole content */
} layout_forms;

/* The preferences of one calculator's operations: how many prefer channels last, and the FLOPs of these and of all that
 * were asked. */
typedef struct layout_votes {
    const sdlf_calculator *calculator; /* NULL: end of the list */
    int preferring;
    bool repaying; /* one of them saves more than converting its own images costs */
    double flops_preferring, flops_asked;
    sdlf_dtype storage; /* the type in which it would store activations; SDLF_NONE: the plan's dtype */
} layout_votes;

/* True if the step's calculator prefers its operation channels last. */
bool layout_is_preferred(const sdlf_plan *plan, const plan_step *step);
/* Collects the votes, one entry per calculator; the caller frees them. Empty if the plan keeps its layouts. */
sdlf_status layout_count_votes(const sdlf_plan *plan, layout_votes **votes);
/* True if the calculator's operations that prefer channels last get it: several of them, or in
 * inference in the plan's dtype one that repays the conversions of its input and output. */
bool layout_uses_nhwc(const layout_votes *votes, const sdlf_calculator *calculator);
/* True if all other operations that support channels last get it too. If those that prefer it have at least half of the
 * FLOPs, the few others are not worth conversions around each of them. */
bool layout_uses_nhwc_everywhere(const layout_votes *votes, const sdlf_calculator *calculator);
/* The operation with its images stored channels last; weights that inference keeps are unchanged, and prepacked. */
sdlf_operation layout_stored(const sdlf_plan *plan, const sdlf_operation *operation, sdlf_dtype storage);
/* The type in which the steps of these calculators store activations; SDLF_NONE: the plan's dtype. */
sdlf_dtype layout_storage(const layout_votes *votes);
bool layout_stores(const layout_votes *votes, const sdlf_calculator *calculator, sdlf_dtype storage);

typedef struct layout_pass {
    sdlf_plan *plan;
    plan_step *old; /* the original steps; the plan's list is rebuilt */
    int old_count;
    plan_uses uses;     /* of buffers, by the original steps */
    layout_forms *form; /* of each buffer that they use */
    const layout_votes *votes;
    sdlf_dtype storage; /* of channels-last contents; SDLF_NONE: the plan's dtype */
} layout_pass;

/* (N,C,L) as (N,C,1,L); other tensors are unchanged. */
sdlf_tensor layout_as_image(sdlf_tensor tensor);
/* True if dense and of rank 4. */
bool layout_is_image(const sdlf_tensor *tensor);
/* Changes the tensor to the same part of the content in channels-last form. False, with nothing changed, if strides
 * cannot describe that part because an axis runs on from one channel or image into the next. */
bool layout_restride(const layout_pass *p, sdlf_tensor *tensor);
/* The same where it is already known to be possible. */
void layout_must_restride(const layout_pass *p, sdlf_tensor *tensor);
/* (N,C,H,W) as (N,H,W,C) */
sdlf_tensor layout_channels_last(sdlf_tensor tensor);
/* True if its content exists channels last. */
bool layout_is_nhwc(const layout_pass *p, const sdlf_tensor *tensor);
/* Adds a buffer for the channels-last form of `buffer`. */
sdlf_status layout_add_nhwc(layout_pass *p, int buffer, sdlf_shape shape);
/* Ensures that the content exists in row-major form. */
sdlf_status layout_need_row_major(layout_pass *p, const plan_step *reader, int buffer);
/* Changes the operand to its channels-last form, which is created if necessary. */
sdlf_status layout_need_nhwc(layout_pass *p, const plan_step *reader, sdlf_tensor *operand);
/* True if layout_need_nhwc could create a dense channels-last form. */
bool layout_can_be_nhwc(const layout_pass *p, const sdlf_tensor *operand);
/* True if an output could be produced channels last: it is all of its buffer, and only this step writes it. */
bool layout_can_be_made(const layout_pass *p, const sdlf_tensor *out);
/* Makes a step write this output channels last; layout_settle_output must follow. */
sdlf_status layout_make_nhwc(layout_pass *p, sdlf_tensor *operand);
/* Converts an output to row-major form if anything outside this plan's steps reads it. */
sdlf_status layout_settle_output(layout_pass *p, const plan_step *step, int buffer);
/* A copy reads channels-last contents directly and writes channels last if only such copies fill the buffer; otherwise
 * it converts to row-major form, unless the source exists in that form. */
bool layout_follows_copy(const layout_pass *p, const plan_step *step);
sdlf_status layout_convert_copy(layout_pass *p, plan_step *step);
/* A reduction along the pixels or the channels of channels-last contents. */
bool layout_follows_reduce(const layout_pass *p, const plan_step *step);
sdlf_status layout_convert_reduce(layout_pass *p, plan_step *step);

#endif
