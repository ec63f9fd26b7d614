/* SPDX-License-Identifier: MIT */
/* Internals of the trainer: trainer.c runs it (trainer_feed.c if the plans draw their own batches), trainer_setup.c
 * creates it, trainer_state.c records and restores its state, trainer_options.c checks and compares options,
 * trainer_settings.c writes and reads them. */
#ifndef SDLF_FRAMEWORK_TRAINER_INTERNAL_H
#define SDLF_FRAMEWORK_TRAINER_INTERNAL_H

#include <stdatomic.h>

#include <sdlf/trainer.h>

#include "framework/classifier.h"
#include "framework/evaluator.h"
#include "framework/field.h"

enum { TRAINER_MAX_CALCULATORS = 8, TRAINER_SLICES = 8 };

/* Steps that plans with a feed have queued, in slices, with a mark for the results after each (trainer_feed.c). */
typedef struct trainer_slices {
    double (*clock)(void);       /* sdlf_clock; tests replace it, so that sizes do not depend on the machine's load */
    int64_t size;                /* steps of the next slice */
    int64_t queued;              /* steps of the epoch that are queued */
    int64_t end[TRAINER_SLICES]; /* end steps of the slices whose results are pending, oldest first */
    int count;
    bool tail;           /* the shorter batch at the epoch's end is queued */
    sdlf_metrics before; /* the epoch's metrics when it was begun or resumed */
    int64_t first;       /* the step at which it was */
    double begun;        /* the time at which it was */
} trainer_slices;

/* The best epoch so far (trainer_best.c). */
typedef struct trainer_best {
    int epoch; /* from 1; 0: none */
    double loss, accuracy;
    bool is_new; /* the epoch that was tested last is this one */
    sdlf_training_state state;
    char *values; /* of all parameters and states, owned; NULL: not kept */
    int64_t bytes;
} trainer_best;

struct sdlf_trainer {
    sdlf_model *model;
    sdlf_trainer_options options; /* complete; its strings and placement are not used after creation */
    char *checkpoint;             /* owned; NULL: none */
    char data[256];               /* name of the data set */
    char settings[2048];          /* JSON */
    sdlf_calculator *calculators[TRAINER_MAX_CALCULATORS]; /* owned, one per class */
    int calculator_count;
    sdlf_data_place data_place; /* not SDLF_DATA_LOADED: the plans draw their own batches, without a loader */
    bool host_only;             /* all calculators share the host's memory */
    sdlf_classifier classifier;
    const char *labels;                /* the plans' input for the labels */
    sdlf_dataset train;                /* a view of the caller's, with the model's normalisation */
    sdlf_loader *loader;               /* NULL: the plans draw their own batches */
    sdlf_calculator *sender;           /* uploads its batches from pinned memory; NULL: none */
    sdlf_fence *sent;                  /* after the uploads of the last batch */
    float *class_weights;              /* of each class; NULL: equal weights */
    float *rate_scales, *rate_offsets; /* of the model's parameters, see sdlf_plan_options; NULL: 1 and 0 */
    float *weight_decays;              /* likewise; NULL: the optimizer's for all */
    bool at_rest;                      /* with averaged weights: the model's values are the averages */
    float *weights;      /* of a batch's samples for their first and second labels, scratch space; NULL: no weights */
    bool weights_pinned; /* `weights` is the sender's memory */
    bool mixed;          /* samples have second labels */
    float *rates;        /* of an epoch, for plans that draw their own batches */
    trainer_slices slices;
    sdlf_plan *full;         /* for batches of `batch` */
    sdlf_plan *tail;         /* for an epoch's last, smaller batch; NULL: none */
    int64_t *test_confusion; /* of labels of pixels; NULL: not needed */
    sdlf_evaluator *test;    /* NULL: no test set */
    int64_t batch;           /* the requested batch, or the whole data set if that is smaller */
    int64_t tail_share;      /* this rank's samples of the last batch; 0: it joins with one of weight 0 */
    int64_t steps;           /* per epoch */
    int64_t epoch;           /* epochs done */
    int64_t epoch_step;      /* steps done of the current epoch */
    int64_t collected;       /* of these, those whose results are in `metrics` */
    sdlf_metrics metrics;    /* of the current epoch */
    sdlf_loss_scale scale;   /* as of the last time the parameters were stored */
    double seconds;          /* spent on the current epoch by this trainer */
    double waited;           /* of these, waiting for batches */
    trainer_best best;
    sdlf_tensor *parts;         /* while the model's states are whole: those that plans use; NULL: the model has them */
    bool unsaved;               /* the last attempt to write the checkpoint failed */
    atomic_bool stop_requested; /* set by sdlf_trainer_stop */
    bool stop_agreed;           /* with a communicator: some rank was stopped, and all know */
};

/* ---- settings ---- */

/* Numeric and boolean options: those in every checkpoint, those that were added later, and those of
 * augmentation. */
extern const sdlf_field sdlf_trainer_fields[], sdlf_trainer_later_fields[], sdlf_trainer_augment_fields[];

/* Fills in defaults and checks ranges. Ignores the strings. Errors: SDLF_ERROR_ARGUMENT names the option. */
sdlf_status sdlf_trainer_complete_options(sdlf_trainer_options *options);

/* Writes complete options' optimizer, schedule, clipping, smoothing and augmentation as JSON. */
sdlf_status sdlf_trainer_write_settings(const sdlf_trainer_options *options, char *text, size_t size);

/* Checks that complete options equal those that a checkpoint was trained with, as far as the weights depend on them.
 * `finished` allows more epochs. Errors: SDLF_ERROR_ARGUMENT names the first option that differs. */
sdlf_status sdlf_trainer_compare_options(const sdlf_trainer_options *found, const sdlf_trainer_options *wanted,
                                         bool finished);

/* ---- feeding ---- */

/* The feeds of the plan for full batches, and of the one for the last, shorter batch. */
sdlf_feed sdlf_trainer_make_feed(const sdlf_trainer *trainer);
sdlf_feed sdlf_trainer_tail_feed(const sdlf_trainer *trainer, const sdlf_feed *feed);
sdlf_status sdlf_trainer_prepare_feed(sdlf_trainer *trainer);
void sdlf_trainer_release_feed(sdlf_trainer *trainer);

/* The number of steps of the next slice, after slices of `before` steps, given that `steps` took `seconds`: as many as
 * take a tenth of a second, in whole recordings, but not many times more than before. */
int64_t sdlf_trainer_slice_size(int64_t before, int64_t steps, double seconds);
/* Begins, or resumes, the current epoch. */
sdlf_status sdlf_trainer_begin_feed_epoch(sdlf_trainer *trainer);
/* Queues steps until results of some are available or the whole epoch is queued; then waits for the next results. */
sdlf_status sdlf_trainer_run_slice(sdlf_trainer *trainer);
/* Waits for everything that is queued. */
sdlf_status sdlf_trainer_finish_slices(sdlf_trainer *trainer);

/* Errors: SDLF_ERROR_NUMERIC if the sum of losses is not finite; names the range of steps after `collected`. */
sdlf_status sdlf_trainer_check_loss(sdlf_trainer *trainer, double loss_sum);
/* Adds the results of the plan's steps since the last call, and checks that the loss is finite. */
sdlf_status sdlf_trainer_collect(sdlf_trainer *trainer, sdlf_plan *plan);

/* ---- the best epoch ---- */

/* Call when the test's evaluator exists. Errors: SDLF_ERROR_ARGUMENT (no test set), SDLF_ERROR_MEMORY. */
sdlf_status sdlf_trainer_prepare_best(sdlf_trainer *trainer);
/* Call when all ranks are known to agree. If training resumes, the best epoch is initially the one that it resumes
 * from. Errors: those of a test. */
sdlf_status sdlf_trainer_begin_best(sdlf_trainer *trainer);
void sdlf_trainer_release_best(sdlf_trainer *trainer);
/* After an epoch, with the model's parameters and state recorded: keeps them if the epoch is the best. */
sdlf_status sdlf_trainer_note_best(sdlf_trainer *trainer, const sdlf_evaluation *test);
/* True if patience allows training to continue. */
bool sdlf_trainer_is_patient(const sdlf_trainer *trainer);
/* Sets the model's parameters and state to the best epoch's. */
sdlf_status sdlf_trainer_take_best(sdlf_trainer *trainer);

/* ---- weights of samples (trainer_weights.c) ---- */

/* Parses options->class_weights. Errors: SDLF_ERROR_ARGUMENT names what is wrong, SDLF_ERROR_MEMORY. */
sdlf_status sdlf_trainer_prepare_weights(sdlf_trainer *trainer);
/* Moves them to memory from which the sender uploads asynchronously, if it has such memory. */
void sdlf_trainer_pin_weights(sdlf_trainer *trainer);
void sdlf_trainer_release_weights(sdlf_trainer *trainer);
/* Writes those of a batch to the plan's input: each sample's class weight, divided by their sum. */
sdlf_status sdlf_trainer_write_weights(sdlf_trainer *trainer, sdlf_plan *plan, const sdlf_batch *batch);

/* ---- learning rates of parameters (trainer_rates.c), averages of weights (trainer_average.c) ---- */

/* Parses options->rate_scales and weight_decays. Errors: SDLF_ERROR_ARGUMENT, SDLF_ERROR_MEMORY. */
sdlf_status sdlf_trainer_prepare_groups(sdlf_trainer *trainer);

/* Call when the plans exist: initialises the average, and the slow weights of Lookahead, with the weights. */
sdlf_status sdlf_trainer_prepare_average(sdlf_trainer *trainer);
/* Before training: sets the model's values, and the plans', to the weights. */
sdlf_status sdlf_trainer_take_weights(sdlf_trainer *trainer);
/* After training: stores the parameters in the model, and sets the model's values to the averages. */
sdlf_status sdlf_trainer_rest(sdlf_trainer *trainer);

/* ---- several ranks (trainer_ranks.c); these do nothing with one rank ---- */

/* Before training: checks that all ranks agree. Errors: SDLF_ERROR_ARGUMENT names the rank and the difference. */
sdlf_status sdlf_trainer_compare_ranks(sdlf_trainer *trainer, const sdlf_dataset *test);
/* Sums the metrics of all ranks, and determines whether one of them was asked to stop. */
sdlf_status sdlf_trainer_sum_metrics(sdlf_trainer *trainer, sdlf_metrics *metrics);
/* Checks that the model's stored parameters agree on all ranks. Those without a gradient (statistics of batch
 * normalisation) are set to their mean. */
sdlf_status sdlf_trainer_meet(sdlf_trainer *trainer);
/* Gives every rank the status of what rank 0 did for all. */
sdlf_status sdlf_trainer_share_status(sdlf_trainer *trainer, sdlf_status status);
/* True if training is to stop. */
bool sdlf_trainer_is_stopping(const sdlf_trainer *trainer);
/* True if this rank writes files. */
bool sdlf_trainer_leads(const sdlf_trainer *trainer);

/* ---- states in parts, one on each rank (trainer_shards.c); these do nothing with whole states ---- */

/* Collective: makes the model's states whole on rank 0, for a checkpoint, until sdlf_trainer_part_states; its own parts
 * stay where plans use them. All ranks get the same error (memory). */
sdlf_status sdlf_trainer_gather_states(sdlf_trainer *trainer);
void sdlf_trainer_part_states(sdlf_trainer *trainer);

/* ---- state ---- */

/* Records the state of the training in the model. The caller stores the parameters. */
void sdlf_trainer_note_state(sdlf_trainer *trainer);

/* Resumes training from the state in the model. Errors: SDLF_ERROR_ARGUMENT (no state; other options, another size of
 * the data set), SDLF_ERROR_FORMAT (impossible values). */
sdlf_status sdlf_trainer_take_state(sdlf_trainer *trainer);

#endif
