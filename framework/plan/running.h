/* SPDX-License-Identifier: MIT */
/* Running a bound plan: graph capture and replay, marks, pinned memory, transfers. */
#ifndef SDLF_FRAMEWORK_PLAN_RUNNING_H
#define SDLF_FRAMEWORK_PLAN_RUNNING_H

#include <sdlf/plan.h>

struct plan_step;

/* Scalars that the host sets before a run. */
typedef enum plan_control { CONTROL_STEP, CONTROL_RATE, CONTROL_ONE, CONTROL_SHARE, CONTROL_COUNT } plan_control;

/* The steps of a pass as one unit that the calculator replays (see calculator.h). A pass runs once step by step, so
 * that libraries finish their lazy initialisation; then it is recorded. */
typedef struct plan_recording {
    sdlf_calculator *calculator; /* NULL: the pass cannot be recorded */
    int repeats;                 /* how many runs of the pass it contains */
    bool warm;                   /* the pass has run once */
    void *recording;
} plan_recording;

/* Pending reads of the metrics, oldest first. */
typedef struct plan_marks {
    sdlf_calculator *calculator; /* whose queue carries them; NULL: they are read immediately */
    double (*sums)[3];           /* in host memory of that queue */
    sdlf_fence *fence[SDLF_PLAN_MARKS];
    sdlf_metrics taken[SDLF_PLAN_MARKS]; /* without queues */
    int first, count;
} plan_marks;

/* Host memory pinned for a device's asynchronous transfers. */
typedef struct plan_pin {
    sdlf_calculator *calculator;
    void *memory;
} plan_pin;

sdlf_status plan_run_step(sdlf_plan *plan, const struct plan_step *step);
/* Pins the memory that copies between host and devices use, where the devices support it; affects only speed. */
sdlf_status plan_pin_memory(sdlf_plan *plan);
void plan_unpin_memory(sdlf_plan *plan);
/* Waits until queued copies have read host memory. */
sdlf_status plan_settle_uploads(sdlf_plan *plan);
sdlf_status plan_run_steps(sdlf_plan *plan, int first, int last);
/* The number of steps at the start of [first, last) that are offered to their calculator at once while training, for
 * fusion into one launch: at most PLAN_MAX_FUSED, or PLAN_MAX_FUSED_ALIKE of one kind, with no copy between spaces. 0 if the
 * calculator fuses none. */
int plan_count_offered(const struct sdlf_plan *plan, int first, int last);
void plan_prepare_recordings(sdlf_plan *plan);
void plan_discard_recordings(sdlf_plan *plan);
/* Runs steps [0, count): the first time one by one, then as a recording where possible. */
sdlf_status plan_run_pass(sdlf_plan *plan, plan_recording *kept, int count);
/* Records the training steps now, after one step has run. */
sdlf_status plan_record_early(sdlf_plan *plan);
sdlf_status plan_warm_up(sdlf_plan *plan);
/* Copies the parameters and states that this plan uses, its own and those it shares, from the model (load) or back to
 * it. */
sdlf_status plan_move_parameters(sdlf_plan *plan, bool load);
/* Draws the initial values of an unbuilt model's parameters where the plan keeps them. `keep` also stores them in the
 * model, unless they are its values already. */
sdlf_status plan_draw_parameters(sdlf_plan *plan, bool keep);
/* Computes what an inference plan derives from its parameters, once these are loaded. */
sdlf_status plan_prepare_parameters(sdlf_plan *plan);
/* For a plan with a feed: runs `done` training steps, 1 to `most`, in as few calls of the calculator as possible. */
sdlf_status plan_run_some(sdlf_plan *plan, int64_t most, int64_t *done);
sdlf_status plan_prepare_marks(sdlf_plan *plan);
void plan_release_marks(sdlf_plan *plan);
/* Stores the median time of a step, run `together` times in a row, in step->seconds. times has space for all runs. */
sdlf_status plan_time_row(sdlf_plan *plan, struct plan_step *step, int together, double *times,
                          const sdlf_timing *timing);
sdlf_status plan_time_in_rows(sdlf_plan *plan, const sdlf_timing *timing); /* the same for all steps */
bool plan_times_on(const sdlf_timing *timing);                             /* the result of go_on */
sdlf_status plan_upload(sdlf_plan *plan, int buffer, int64_t offset, const void *host, int64_t bytes);
sdlf_status plan_download(sdlf_plan *plan, int buffer, int64_t offset, void *host, int64_t bytes);
/* All elements of a bound operand, row-major on the host's side; gaps are supported only where the operand is in host
 * memory too. */
sdlf_status plan_upload_tensor(sdlf_plan *plan, const sdlf_tensor *tensor, const void *host);
sdlf_status plan_download_tensor(sdlf_plan *plan, const sdlf_tensor *tensor, void *host);
/* Sets a control in every space. */
sdlf_status plan_set_control(sdlf_plan *plan, plan_control control, double value);
/* Tells bound inference steps which step follows, and whether the preceding one matters (step_hints.c). */
void plan_give_step_hints(struct sdlf_plan *plan);
/* The tensor with its address in its (bound) buffer. */
sdlf_tensor plan_bound(const sdlf_plan *plan, sdlf_tensor tensor);

#endif
