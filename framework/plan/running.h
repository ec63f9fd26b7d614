/* SPDX-License-Identifier: MIT */
/* Running a bound plan: recordings, marks, pinned memory, transfers. */
#ifndef SDLF_FRAMEWORK_PLAN_RUNNING_H
#define SDLF_FRAMEWORK_PLAN_RUNNING_H

#include <sdlf/plan.h>

struct plan_step;

/* Numbers that the host sets before a run. */
typedef enum plan_control { CONTROL_STEP, CONTROL_RATE, CONTROL_ONE, CONTROL_SHARE, CONTROL_COUNT } plan_control;

/* The steps of a pass as one unit that the calculator replays (see calculator.h). A pass runs once step by step, so
 * that whatever libraries set up lazily is there; then it is recorded. */
typedef struct plan_recording {
    sdlf_calculator *calculator; /* NULL: the pass cannot be recorded */
    int repeats;                 /* the pass that many times over */
    bool warm;                   /* it has run once */
    void *recording;
} plan_recording;

/* Looks at the metrics that are under way, oldest first. */
typedef struct plan_marks {
    sdlf_calculator *calculator; /* whose queue carries them; NULL: they are taken at once */
    double (*sums)[3];           /* in host memory of that queue */
    sdlf_fence *fence[SDLF_PLAN_MARKS];
    sdlf_metrics taken[SDLF_PLAN_MARKS]; /* without queues */
    int first, count;
} plan_marks;

/* Host memory that a device's transfers may use while the host goes on. */
typedef struct plan_pin {
    sdlf_calculator *calculator;
    void *memory;
} plan_pin;

sdlf_status plan_run_step(sdlf_plan *plan, const struct plan_step *step);
/* Pin what copies between host and devices use, where the devices can; nothing but speed depends on it. */
sdlf_status plan_pin_memory(sdlf_plan *plan);
void plan_unpin_memory(sdlf_plan *plan);
/* Wait until queued copies have read the host's memory. */
sdlf_status plan_settle_uploads(sdlf_plan *plan);
sdlf_status plan_run_steps(sdlf_plan *plan, int first, int last);
/* How many of the steps [first, last), from the first on, their calculator is offered at once while training, to
 * compute together what it can: PLAN_JOINED at most, or PLAN_ALIKE of one kind, none of them a copy between spaces. 0:
 * it puts none together. */
int plan_count_offered(const struct sdlf_plan *plan, int first, int last);
void plan_prepare_recordings(sdlf_plan *plan);
void plan_discard_recordings(sdlf_plan *plan);
/* Run steps [0, count): the first time one by one, then as a recording where that can be. */
sdlf_status plan_run_pass(sdlf_plan *plan, plan_recording *kept, int count);
/* Make the recordings of training steps now. One step has run. */
sdlf_status plan_record_early(sdlf_plan *plan);
sdlf_status plan_warm_up(sdlf_plan *plan);
/* Bring the parameters and states that this plan uses, its own and those it shares, to the model, or back from
 * there. */
sdlf_status plan_move_parameters(sdlf_plan *plan, bool load);
/* Draw the starting values of a model that nobody has built, where the plan keeps them; the model's own become them too
 * (keep), or are them already. */
sdlf_status plan_draw_parameters(sdlf_plan *plan, bool keep);
/* What a plan for inference works out from the parameters that it holds, once these are there. */
sdlf_status plan_prepare_parameters(sdlf_plan *plan);
/* Of a plan with a feed: run `done` training steps, 1 to `most`, as few calls of the calculator do it. */
sdlf_status plan_run_some(sdlf_plan *plan, int64_t most, int64_t *done);
sdlf_status plan_prepare_marks(sdlf_plan *plan);
void plan_release_marks(sdlf_plan *plan);
/* The median time of a step, in a row of that many, into step->seconds. times has room for all repeats. */
sdlf_status plan_time_row(sdlf_plan *plan, struct plan_step *step, int together, double *times,
                          const sdlf_timing *timing);
sdlf_status plan_time_in_rows(sdlf_plan *plan, const sdlf_timing *timing); /* all steps, by that */
bool plan_times_on(const sdlf_timing *timing);                             /* what go_on says */
sdlf_status plan_upload(sdlf_plan *plan, int buffer, int64_t offset, const void *host, int64_t bytes);
sdlf_status plan_download(sdlf_plan *plan, int buffer, int64_t offset, void *host, int64_t bytes);
/* All elements of a bound operand, row-major on the host's side; with gaps only where the operand is in the host's
 * memory, too. */
sdlf_status plan_upload_tensor(sdlf_plan *plan, const sdlf_tensor *tensor, const void *host);
sdlf_status plan_download_tensor(sdlf_plan *plan, const sdlf_tensor *tensor, void *host);
/* Set a control in every space. */
sdlf_status plan_set_control(sdlf_plan *plan, plan_control control, double value);
/* Tell bound steps of inference what follows them, and whether the one before matters to them (step_hints.c). */
void plan_give_step_hints(struct sdlf_plan *plan);
/* Address of a tensor in its (bound) buffer. */
sdlf_tensor plan_bound(const sdlf_plan *plan, sdlf_tensor tensor);

#endif
