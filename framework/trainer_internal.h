/* SPDX-License-Identifier: MIT */
/* The trainer from the inside: trainer.c runs it (trainer_feed.c where the plans draw their own batches),
 * trainer_setup.c makes it, trainer_state.c notes and restores where it stands, trainer_options.c checks and compares
 * what it is asked for, trainer_settings.c writes and reads that. */
#ifndef SDLF_FRAMEWORK_TRAINER_INTERNAL_H
#define SDLF_FRAMEWORK_TRAINER_INTERNAL_H

#include <stdatomic.h>

#include <sdlf/trainer.h>

#include "framework/classifier.h"
#include "framework/evaluator.h"
#include "framework/field.h"

enum { TRAINER_MAX_CALCULATORS = 8, TRAINER_SLICES = 8 };

/* Steps that plans with a feed have queued, in slices with a look at the results behind each (trainer_feed.c). */
typedef struct trainer_slices {
    double (*clock)(void);       /* sdlf_clock; tests have others, so that sizes do not depend on the machine's load */
    int64_t size;                /* steps of the next */
    int64_t queued;              /* steps of the epoch that are queued */
    int64_t end[TRAINER_SLICES]; /* of the slices whose results are not here yet, oldest first */
    int count;
    bool tail;           /* is the shorter batch at the epoch's end queued? */
    sdlf_metrics before; /* the epoch's metrics when it was begun or gone on with */
    int64_t first;       /* the step at which that was */
    double begun;        /* when that was */
} trainer_slices;

/* The best epoch so far (trainer_best.c). */
typedef struct trainer_best {
    int epoch; /* from 1; 0: none */
    double loss, accuracy;
    bool is_new; /* the epoch that was tested last is this one */
    sdlf_training_state state;
    char *values; /* of all parameters and states, owned; NULL: they are not kept */
    int64_t bytes;
} trainer_best;

struct sdlf_trainer {
    sdlf_model *model;
    sdlf_trainer_options options; /* complete; its strings and its placement are not used after creation */
    char *checkpoint;             /* owned; NULL: none wanted */
    char data[256];               /* name of the data set */
    char settings[2048];          /* JSON */
    sdlf_calculator *calculators[TRAINER_MAX_CALCULATORS]; /* owned, each class once */
    int calculator_count;
    sdlf_data_place data_place; /* not SDLF_DATA_LOADED: the plans draw their own batches, and there is no loader */
    bool host_only;             /* do all calculators share the host's memory? */
    sdlf_classifier classifier;
    const char *labels;                /* input of the plans that takes the labels */
    sdlf_dataset train;                /* a view of the caller's, with the model's normalisation */
    sdlf_loader *loader;               /* NULL: the plans draw their own batches */
    sdlf_calculator *sender;           /* that uploads its batches from pinned memory; NULL: none does */
    sdlf_fence *sent;                  /* behind the uploads of the last one */
    float *class_weights;              /* of each class; NULL: all are the same */
    float *rate_scales, *rate_offsets; /* of the model's parameters, see sdlf_plan_options; NULL: all are 1 and 0 */
    float *weight_decays;              /* likewise; NULL: all have the optimizer's */
    bool at_rest;                      /* where the weights are averaged: the model's values are the averages */
    float
        *weights; /* of a batch's samples for their labels and their second ones, scratch space; NULL: they have none */
    bool weights_pinned; /* they are the sender's memory */
    bool mixed;          /* they have second labels */
    float *rates;        /* of an epoch, for plans that draw their own batches */
    trainer_slices slices;
    sdlf_plan *full;         /* for batches of `batch` */
    sdlf_plan *tail;         /* for an epoch's last, smaller batch; NULL: there is none */
    int64_t *test_confusion; /* of labels of pixels; NULL: it is not wanted */
    sdlf_evaluator *test;    /* NULL: no test set */
    int64_t batch;           /* the batch asked for, or the whole data set if that is smaller */
    int64_t tail_share;      /* this rank's samples of that last batch; 0: it takes part with one that counts as none */
    int64_t steps;           /* of an epoch */
    int64_t epoch;           /* epochs done */
    int64_t epoch_step;      /* steps done of the epoch under way */
    int64_t collected;       /* of these, those whose results are in `metrics` */
    sdlf_metrics metrics;    /* of the epoch under way */
    sdlf_loss_scale scale;   /* as it was when the parameters were stored last */
    double seconds;          /* spent on it by this trainer */
    double waited;           /* of these, for batches */
    trainer_best best;
    sdlf_tensor *parts; /* while the model's states are whole: those that plans use; NULL: they are the model's */
    bool unsaved;       /* the last try to write the checkpoint failed */
    atomic_bool stop_requested; /* set by sdlf_trainer_stop */
    bool stop_agreed;           /* with a communicator: on some rank it was, and all know */
};

/* ---- settings ---- */

/* Options that are numbers and flags: those that every checkpoint has, those that came later, and those of
 * augmentation. */
extern const sdlf_field sdlf_trainer_fields[], sdlf_trainer_later_fields[], sdlf_trainer_augment_fields[];

/* Fill defaults in and check ranges. The strings are not touched. Errors: SDLF_ERROR_ARGUMENT names the option. */
sdlf_status sdlf_trainer_complete_options(sdlf_trainer_options *options);

/* The JSON of complete options' optimizer, schedule, clipping, smoothing and augmentation. */
sdlf_status sdlf_trainer_write_settings(const sdlf_trainer_options *options, char *text, size_t size);

/* Are complete options those that a checkpoint was trained with, as far as the weights depend on them? `finished`
 * allows more epochs. Errors: SDLF_ERROR_ARGUMENT names the first option that differs. */
sdlf_status sdlf_trainer_compare_options(const sdlf_trainer_options *found, const sdlf_trainer_options *wanted,
                                         bool finished);

/* ---- feeding ---- */

/* What the plan for full batches draws from, and the one for the last, shorter batch. */
sdlf_feed sdlf_trainer_make_feed(const sdlf_trainer *trainer);
sdlf_feed sdlf_trainer_tail_feed(const sdlf_trainer *trainer, const sdlf_feed *feed);
sdlf_status sdlf_trainer_prepare_feed(sdlf_trainer *trainer);
void sdlf_trainer_release_feed(sdlf_trainer *trainer);

/* How many steps the next slice has, after slices of `before`, where that many steps took that long: what takes a tenth
 * of a second, in whole recordings, but not many times more than before. */
int64_t sdlf_trainer_slice_size(int64_t before, int64_t steps, double seconds);
/* Begin, or go on with, the epoch under way. */
sdlf_status sdlf_trainer_begin_feed_epoch(sdlf_trainer *trainer);
/* Queue steps until results of some are there, or until the whole epoch is queued: then wait for the next results. */
sdlf_status sdlf_trainer_run_slice(sdlf_trainer *trainer);
/* Wait for all that is queued. */
sdlf_status sdlf_trainer_finish_slices(sdlf_trainer *trainer);

/* Errors: SDLF_ERROR_NUMERIC, the sum of losses is not a number: it says in which steps after `collected` that was. */
sdlf_status sdlf_trainer_check_loss(sdlf_trainer *trainer, double loss_sum);
/* Add up what the plan's steps did since the last time, and see that the loss is a number. */
sdlf_status sdlf_trainer_collect(sdlf_trainer *trainer, sdlf_plan *plan);

/* ---- the best epoch ---- */

/* Once the test's evaluator is there. Errors: SDLF_ERROR_ARGUMENT (no test set), SDLF_ERROR_MEMORY. */
sdlf_status sdlf_trainer_prepare_best(sdlf_trainer *trainer);
/* Once all ranks are known to be alike: where training goes on, the best is what it goes on from. Errors: those of a
 * test. */
sdlf_status sdlf_trainer_begin_best(sdlf_trainer *trainer);
void sdlf_trainer_release_best(sdlf_trainer *trainer);
/* After an epoch, with the model's parameters and state noted: is it the best? Then it is kept. */
sdlf_status sdlf_trainer_note_best(sdlf_trainer *trainer, const sdlf_evaluation *test);
/* May training go on? */
bool sdlf_trainer_is_patient(const sdlf_trainer *trainer);
/* The model's parameters and state become the best epoch's. */
sdlf_status sdlf_trainer_take_best(sdlf_trainer *trainer);

/* ---- weights of samples (trainer_weights.c) ---- */

/* What options->class_weights says. Errors: SDLF_ERROR_ARGUMENT names what is wrong, SDLF_ERROR_MEMORY. */
sdlf_status sdlf_trainer_prepare_weights(sdlf_trainer *trainer);
/* Keep them in memory that the sender uploads from without the host's waiting, where it has such. */
void sdlf_trainer_pin_weights(sdlf_trainer *trainer);
void sdlf_trainer_release_weights(sdlf_trainer *trainer);
/* Those of a batch into the plan's input: each class's, divided by their sum. */
sdlf_status sdlf_trainer_write_weights(sdlf_trainer *trainer, sdlf_plan *plan, const sdlf_batch *batch);

/* ---- learning rates of parameters (trainer_rates.c), averages of weights (trainer_average.c) ---- */

/* What options->rate_scales and weight_decays say. Errors: SDLF_ERROR_ARGUMENT, SDLF_ERROR_MEMORY. */
sdlf_status sdlf_trainer_prepare_groups(sdlf_trainer *trainer);

/* Once the plans are there: the average, and the slow weights of Lookahead, begin with the weights. */
sdlf_status sdlf_trainer_prepare_average(sdlf_trainer *trainer);
/* Before training: the model's values, and the plans', are the weights. */
sdlf_status sdlf_trainer_take_weights(sdlf_trainer *trainer);
/* After it: the parameters are stored in the model, and the model's values are the averages. */
sdlf_status sdlf_trainer_rest(sdlf_trainer *trainer);

/* ---- several ranks (trainer_ranks.c); nothing is done where there is one ---- */

/* Before training: is everything the same on all ranks? Errors: SDLF_ERROR_ARGUMENT names the rank and what is not. */
sdlf_status sdlf_trainer_compare_ranks(sdlf_trainer *trainer, const sdlf_dataset *test);
/* Sums of all ranks, and whether one of them was asked to stop. */
sdlf_status sdlf_trainer_sum_metrics(sdlf_trainer *trainer, sdlf_metrics *metrics);
/* Are the model's parameters, which have been stored, the same? What no gradient changes (statistics of batch
 * normalisation) becomes its mean. */
sdlf_status sdlf_trainer_meet(sdlf_trainer *trainer);
/* What rank 0 did for all ended so: every rank gets that status. */
sdlf_status sdlf_trainer_share_status(sdlf_trainer *trainer, sdlf_status status);
/* Is it to stop? */
bool sdlf_trainer_is_stopping(const sdlf_trainer *trainer);
/* Does it write files? */
bool sdlf_trainer_leads(const sdlf_trainer *trainer);

/* ---- states in parts, one on each rank (trainer_shards.c); nothing is done where they are whole ---- */

/* All ranks meet: on rank 0 the model's states become whole, for a checkpoint, until sdlf_trainer_part_states; its own
 * parts stay where plans have them. Errors are all ranks' (memory). */
sdlf_status sdlf_trainer_gather_states(sdlf_trainer *trainer);
void sdlf_trainer_part_states(sdlf_trainer *trainer);

/* ---- state ---- */

/* Leave in the model where training stands. Parameters are stored by the caller. */
void sdlf_trainer_note_state(sdlf_trainer *trainer);

/* Take up training where the model's state says it stood. Errors: SDLF_ERROR_ARGUMENT (no state; other options, another
 * size of the data set), SDLF_ERROR_FORMAT (numbers that cannot be). */
sdlf_status sdlf_trainer_take_state(sdlf_trainer *trainer);

#endif
