/* SPDX-License-Identifier: MIT */
/* What the files of the layout pass share: the forms that contents exist in, and how steps get them. */
#ifndef SDLF_FRAMEWORK_PLAN_LAYOUTS_LAYOUTS_H
#define SDLF_FRAMEWORK_PLAN_LAYOUTS_LAYOUTS_H

#include "framework/plan/passes.h"

/* The forms that a buffer's content exists in. */
typedef struct layout_forms {
    bool row_major; /* in the buffer itself, in the plan's dtype */
    bool written;   /* there, by a step: its other writers, if there are, write there too */
    /* The buffer that holds it channels last, in the pass's storage type where it has one (16 bits, or float32 in
     * training); its own where both forms are the same; 0: none. */
    int nhwc;
    sdlf_shape shape; /* with `nhwc`: (N,C,H,W) of the whole content */
} layout_forms;

/* What the operations of one calculator prefer: how many of them channels last, and the FLOPs of these and of all that
 * were asked. */
typedef struct layout_votes {
    const sdlf_calculator *calculator; /* NULL: behind the last */
    int preferring;
    double flops_preferring, flops_asked;
    sdlf_dtype storage; /* what it would store activations as; SDLF_NONE: the plan's dtype */
} layout_votes;

/* Does the step's calculator like its operation channels last? */
bool layout_is_preferred(const sdlf_plan *plan, const plan_step *step);
/* A list of them, the caller's to free; empty where the plan keeps its layouts. */
sdlf_status layout_count_votes(const sdlf_plan *plan, layout_votes **votes);
/* Do its operations that prefer channels last get it? Not where there is only one: it would save less than conversions
 * cost. */
bool layout_uses_nhwc(const layout_votes *votes, const sdlf_calculator *calculator);
/* And do all others that can? Where those that prefer it have half of the FLOPs or more, the few others are not worth
 * conversions around each of them. */
bool layout_uses_nhwc_everywhere(const layout_votes *votes, const sdlf_calculator *calculator);
/* The operation as it is with its images stored so; weights that inference keeps are as they were, and prepacked. */
sdlf_operation layout_stored(const sdlf_plan *plan, const sdlf_operation *operation, sdlf_dtype storage);
/* The type in which the steps of these calculators store activations; SDLF_NONE: that of the plan. */
sdlf_dtype layout_storage(const layout_votes *votes);
bool layout_stores(const layout_votes *votes, const sdlf_calculator *calculator, sdlf_dtype storage);

typedef struct layout_pass {
    sdlf_plan *plan;
    plan_step *old; /* the steps as they were; the plan's list is built anew */
    int old_count;
    plan_uses uses;     /* of buffers, by the old steps */
    layout_forms *form; /* of each buffer that they use */
    const layout_votes *votes;
    sdlf_dtype storage; /* of what lies channels last; SDLF_NONE: the plan's dtype */
} layout_pass;

/* (N,C,L) as (N,C,1,L); what else there is stays as it is. */
sdlf_tensor layout_as_image(sdlf_tensor tensor);
/* Dense, of rank 4? */
bool layout_is_image(const sdlf_tensor *tensor);
/* The same part of the content, in the form that is channels last. False, and nothing changed: it is no part that
 * strides can tell, because an axis runs over from one channel or image into the next. */
bool layout_restride(const layout_pass *p, sdlf_tensor *tensor);
/* Where it has been asked before whether it can be done. */
void layout_must_restride(const layout_pass *p, sdlf_tensor *tensor);
/* (N,C,H,W) as (N,H,W,C) */
sdlf_tensor layout_channels_last(sdlf_tensor tensor);
/* Does its content exist channels last? */
bool layout_is_nhwc(const layout_pass *p, const sdlf_tensor *tensor);
/* A buffer for the form of `buffer` that is channels last. */
sdlf_status layout_add_nhwc(layout_pass *p, int buffer, sdlf_shape shape);
/* See to it that the content is there in row-major form. */
sdlf_status layout_need_row_major(layout_pass *p, const plan_step *reader, int buffer);
/* The operand in the form that is channels last, which is made if need be. */
sdlf_status layout_need_nhwc(layout_pass *p, const plan_step *reader, sdlf_tensor *operand);
/* Could layout_need_nhwc make it, without gaps? */
bool layout_can_be_nhwc(const layout_pass *p, const sdlf_tensor *operand);
/* An output that could be made channels last: all of its buffer, and only by this step. */
bool layout_can_be_made(const layout_pass *p, const sdlf_tensor *out);
/* An output that is written channels last; afterwards layout_settle_output. */
sdlf_status layout_make_nhwc(layout_pass *p, sdlf_tensor *operand);
/* What others than this plan's steps read is row-major. */
sdlf_status layout_settle_output(layout_pass *p, const plan_step *step, int buffer);
/* A copy takes what lies channels last as it is, and makes that where nothing else than such copies fills the buffer;
 * where others do it makes what is row-major of it, unless that is there. */
bool layout_follows_copy(const layout_pass *p, const plan_step *step);
sdlf_status layout_convert_copy(layout_pass *p, plan_step *step);
/* A reduction along the pixels or the channels of what lies channels last. */
bool layout_follows_reduce(const layout_pass *p, const plan_step *step);
sdlf_status layout_convert_reduce(layout_pass *p, plan_step *step);

#endif
