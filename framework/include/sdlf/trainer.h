/* SPDX-License-Identifier: MIT */
/* Trainer: epochs over a data set, with metrics, callbacks, stopping and resuming.
 *
 * Threads: one thread at a time uses a trainer; it has threads of its own, for batches and for saving, none of which
 * calls back. Callbacks come from the thread that calls sdlf_trainer_run.
 * Ownership: a trainer is the caller's (sdlf_trainer_free); model, data sets and options are borrowed for its life.
 * Errors: a status with a message (status.h). */
#ifndef SDLF_TRAINER_H
#define SDLF_TRAINER_H

#include <sdlf/communicator.h>
#include <sdlf/dataset.h>
#include <sdlf/formats.h>
#include <sdlf/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_trainer sdlf_trainer;

/* What happened, told to the callback: a step, or an epoch with its test, is done; or the checkpoint of the epoch that
 * was told of last could not be written (sdlf_error_message says why), and training goes on with the earlier one as it
 * was. Epochs count from 1. Numbers that are not known yet are NaN. */
typedef struct sdlf_progress {
    enum { SDLF_PROGRESS_STEP, SDLF_PROGRESS_EPOCH, SDLF_PROGRESS_UNSAVED } event;
    int epoch, epochs;
    int64_t step, steps; /* within the epoch */
    int64_t samples;     /* of this epoch, so far */
    double loss,
        accuracy; /* means over this epoch so far; accuracy in [0, 1], NaN of losses that have none: mse, mae, huber */
    double test_loss, test_accuracy; /* after an epoch, if there is a test set: see sdlf_evaluation_accuracy */
    double test_error;   /* likewise, of mse, mae and huber: the root of the mean squared difference; else NaN */
    double waited;       /* seconds of `seconds` in which training waited for its data; NaN: a device draws its own */
    double seconds;      /* training time of this epoch so far, testing left out */
    double test_iou;     /* likewise, of labels of pixels: the mean intersection over union; else NaN */
    double test_seconds; /* of that test, and of bringing the weights to it */
    float learning_rate;
    uint32_t weights;      /* sdlf_model_hash, after an epoch */
    double loss_scale;     /* after an epoch, with loss scaling; else 0 */
    int64_t skipped_steps; /* likewise: of the whole training */
    bool best;             /* after an epoch, where epochs are compared (keep, patience): it has the best test so far */
    void *reserved[4];     /* zero: room for members to come */
} sdlf_progress;

typedef void sdlf_progress_callback(const sdlf_progress *progress, void *user);

/* Other calculators for one layer, by name; NULL members leave the trainer's. */
typedef struct sdlf_trainer_placement {
    const char *layer;
    const char *forward, *backward;
} sdlf_trainer_placement;

/* What a training leaves: the last epoch, or the one whose test was best, by accuracy (of equals, by loss; where a
 * loss has no accuracy, only by loss) or by loss. */
typedef enum sdlf_keep { SDLF_KEEP_LAST = 0, SDLF_KEEP_BEST_ACCURACY, SDLF_KEEP_BEST_LOSS, SDLF_KEEP_COUNT } sdlf_keep;

typedef struct sdlf_trainer_options {
    int64_t batch; /* default 64 */
    int epochs;    /* default 1 */
    uint64_t seed; /* shuffling, dropout, augmentation, and the parameters of a model that has none yet; default 1 */
    sdlf_optimizer optimizer;
    sdlf_schedule schedule;
    float label_smoothing;
    sdlf_loss loss; /* of networks without a loss layer of their own; what the data's labels must be, see dataset.h */
    /* Of huber: the difference from which on it is linear; default 1. Networks with a loss layer have it there. */
    float huber_delta;
    /* Cross-entropy: weight of each class's samples: "1,2,0.5" or "balanced": (samples) / (classes times samples of the
     * class); the mean over a batch is over these weights. Empty: all count the same. */
    char class_weights[400];
    float clip_norm;
    /* The factor of the loss's gradient, so that small gradients do not vanish in float16 (see sdlf_plan_options): a
     * fixed number, or SDLF_LOSS_SCALE_DYNAMIC. 1: no loss scaling. 0: dynamic where math is fp16, else 1. */
    float loss_scale;
    /* In [0, 1); above 0: a moving average of the weights, average = ema average + (1 - ema) weight after each step,
     * from the first ones on. It is what is tested, told apart, hashed and saved as the weights, and what the model has
     * between runs; the weights themselves lie beside it, as the optimizer's last state. */
    float ema;
    /* Above 0: Lookahead around the optimizer: after every `lookahead` steps the slow weights move by lookahead_share
     * towards the weights, which begin there anew; see sdlf_plan_options. An optimizer's states, the average and these
     * are three at most. */
    int lookahead;
    float lookahead_share; /* default 0.5 */
    /* Batches of a step, whose gradients' mean it takes (see sdlf_plan_accumulate); the last steps of an epoch may be
     * of fewer; default 1. */
    int accumulate;
    /* "trunk=0.1,conv2d.*=0.5": what the learning rate of parameters is multiplied by: see
     * sdlf_model_parameter_matches; the first that matches counts. Empty: 1. "head=2@0.5": along a line of its own,
     * which comes to 0 after half of the training; only where `schedule` is linear, to 0, without warm-up. */
    char rate_scales[400];
    /* "head=1e-4,norm*=0", likewise: weight decay of parameters, in place of the optimizer's. */
    char weight_decays[400];
    sdlf_augmentation augment;
    sdlf_auto_augment automatic; /* as of sdlf_loader_options */
    /* The loss is shared between the labels; what training says of loss and accuracy is only by the larger share's. */
    sdlf_mixing mixing;
    const char *forward;                     /* calculator's name; default "cpu" */
    const char *backward;                    /* default: `forward` */
    const sdlf_trainer_placement *placement; /* borrowed until sdlf_trainer_create returns */
    int placement_count;
    int threads;    /* default: all */
    int device;     /* of calculators that have several; see sdlf_calculator_options */
    sdlf_math math; /* of calculators that have a choice; default fp32 */
    bool no_fusion;
    int64_t device_data; /* bytes of training data that a device may hold; 0: as many as it has room for. A larger
                                   data set is copied to it batch by batch while it computes */
    const char *conv_algorithm; /* as in sdlf_plan_options */
    sdlf_choices *choices;      /* likewise: added to by sdlf_trainer_create */
    const char *data;           /* noted in checkpoints: what to open the data set with; default: its name */
    const char *checkpoint;     /* save here after each epoch and when stopped; NULL: never */
    sdlf_keep
        keep; /* best: the checkpoint is written only after epochs that are better than all before, and in the end the
                       model has that epoch's parameters and training state. Needs a test set */
    int patience; /* end after that many epochs without a better test; 0: never. Needs a test set */
    bool resume;  /* go on from the training state found in the model: see sdlf_trainer_create */
    sdlf_progress_callback *callback;
    void *user;
    /* Training on several ranks, each with a trainer of the same network, data and options (which is checked): `batch`
     * is that of all ranks together, at least one sample for each, and each computes its part. It is the training of
     * one rank, to rounding, except for batch normalisation: each rank has statistics of its own, which are averaged
     * after each epoch; with `sync_batch_norm` they are those of the whole batch. Rank 0 writes the checkpoint. Every
     * rank's callback is called, with sums over all ranks. sdlf_trainer_create waits for the other ranks
     * (sdlf_communicator_agree) even if it fails. Borrowed for the trainer's life; NULL: this process trains alone. */
    sdlf_communicator *communicator;
    bool sync_batch_norm;
    sdlf_dtype gradient_dtype; /* as in sdlf_plan_options */
    /* likewise: between creation and sdlf_trainer_free the model's states are this rank's parts. Checkpoints are
     * whole. */
    bool shard_states;
    void *reserved[4]; /* zero: room for members to come */
} sdlf_trainer_options;

/* How a built-in network is best trained, of MNIST's pictures at least: sets batch, optimizer, schedule,
 * label_smoothing and augment to what is known to suit it, and leaves the rest. False, and nothing set, for networks of
 * which nothing better than the defaults is known, and for those that are not built in. With these, fast_cnn reaches
 * 99% of MNIST's test half in one epoch. */
bool sdlf_network_builtin_training(sdlf_trainer_options *options, const char *name);

/* Make everything ready: plans for full and for last batches, an inference plan for testing, loaders. All memory that
 * training will use is allocated here. `test` may be NULL; `options` may be NULL: all defaults. Model and data sets are
 * borrowed; a model has one trainer at a time.
 *
 * A model that is not built is built from `seed`. One whose normalisation is not known takes that of `train`; samples
 * are normalised as the model says. Optimizer states and the training state of an earlier training are dropped, unless
 * `resume` is set: then training goes on where the model's training state says, and ends with the weights, bit for bit,
 * of training that was never interrupted, at any number of threads, on the same build, calculators (of cpu: with the
 * same vector instructions), placement and plan options. For that to hold, batch, seed, optimizer, schedule,
 * label_smoothing, clip_norm, augment and math must be those of the state (sdlf_trainer_restore_options); another value
 * is an error that names it. `epochs` may differ where the schedule does not depend on it (constant and step, without
 * warm-up), and may grow once all epochs are done: the schedule is then that of the longer training. Where the best
 * epoch was kept, training goes on from that one.
 *
 * Errors: options out of range, shapes that disagree with the data (samples' shape, number of classes), a training
 * state that is missing or does not fit, a checkpoint that cannot be written there, memory. */
sdlf_status sdlf_trainer_create(sdlf_trainer **trainer, sdlf_model *model, const sdlf_dataset *train,
                                const sdlf_dataset *test, const sdlf_trainer_options *options);
void sdlf_trainer_free(sdlf_trainer *trainer);

/* Train to the end, or to the end of the patience. A checkpoint that cannot be written is tried again, at once and
 * after each epoch; SDLF_ERROR_IO: the last one could not be written. The model has it all, and calling
 * sdlf_trainer_run again tries once more. SDLF_ERROR_NUMERIC: the loss became NaN or infinite (the message says at
 * which step; the model keeps the parameters of that step, or, where a device holds them, those of the last epoch's
 * end, and no training state; an earlier checkpoint is left as it is). SDLF_ERROR_INTERRUPTED: sdlf_trainer_stop was
 * called; the training state is in the model and in the checkpoint, if one is wanted, and calling sdlf_trainer_run
 * again continues. */
sdlf_status sdlf_trainer_run(sdlf_trainer *trainer);

/* The epoch, from 1, whose test was best so far, and that test (NULL: not wanted); 0: there is none, or epochs are not
 * compared. */
int sdlf_trainer_best_epoch(const sdlf_trainer *trainer, double *test_loss, double *test_accuracy);

/* Ask a running trainer to stop after the current step, or, where a device draws its own batches, after those that are
 * queued (less than a second of them, once the trainer knows how long steps take). Safe from a signal handler and from
 * other threads. */
void sdlf_trainer_stop(sdlf_trainer *trainer);

/* Set batch, epochs, seed, optimizer, schedule, label_smoothing, clip_norm, augment, math, keep and patience to what a
 * checkpoint was trained with; the other members are left as they are. A program that resumes starts from these, and changes what its
 * user asks for. Errors: SDLF_ERROR_ARGUMENT (there is no state), SDLF_ERROR_FORMAT (settings that cannot be read). */
sdlf_status sdlf_trainer_restore_options(sdlf_trainer_options *options, const sdlf_training_state *state);

/* Bytes that the trainer holds: parameters, optimizer states, the arenas of all its plans, and the loaders' batches.
 * The data sets are not counted. */
int64_t sdlf_trainer_memory(const sdlf_trainer *trainer);

/* Where the plans take the training data from: batches that a loader makes in the host's memory, or, where the forward
 * pass runs on a device, the data set as it is in the device's memory, or batches of it that are brought there ahead of
 * time. `space`, unless NULL, becomes the name of the memory that the forward pass works in, which is the trainer's. */
typedef enum sdlf_data_place { SDLF_DATA_LOADED = 0, SDLF_DATA_RESIDENT, SDLF_DATA_STAGED } sdlf_data_place;
sdlf_data_place sdlf_trainer_data_place(const sdlf_trainer *trainer, const char **space);

/* The plan that full batches train with, for listings. */
const sdlf_plan *sdlf_trainer_plan(const sdlf_trainer *trainer);

/* ---- evaluation ---- */

/* How one of several float targets is met. */
typedef struct sdlf_target_figures {
    double absolute, squared;                       /* sums over the samples of |x - t| and (x - t)^2 */
    double sum, sum_squares;                        /* of the targets: what a constant could do */
    int64_t hits, false_alarms, misses, rejections; /* of bce_with_logits: x > 0 and t > 1/2, and so on */
} sdlf_target_figures;

typedef struct sdlf_evaluation {
    int class_count;              /* classes, or targets of a sample */
    sdlf_loss kind;               /* what the loss is: sdlf_model_loss */
    double huber_delta;           /* of huber */
    bool of_pixels;               /* samples and correct are of pixels, those that count */
    int64_t samples, correct;     /* correct: of the right class; of bce_with_logits, all labels right; else 0 */
    double loss;                  /* mean */
    double seconds;               /* of computing, loading included */
    int64_t *confusion;           /* of classes: [class_count * true + predicted]; owned: sdlf_evaluation_release */
    sdlf_target_figures *targets; /* of float targets: class_count, owned likewise */
    void *reserved[4];            /* zero: room for members to come */
} sdlf_evaluation;

/* Of classes, the share of samples that are right; of bce_with_logits, the share of labels; of other losses NaN. */
double sdlf_evaluation_accuracy(const sdlf_evaluation *evaluation);
/* Of classes: the mean over those that occur, as labels or predictions, of (right) / (labels + predictions - right),
 * intersection over union. NaN: there is no confusion matrix. */
double sdlf_evaluation_mean_iou(const sdlf_evaluation *evaluation);
/* Of one class; NaN where it does not occur. */
double sdlf_evaluation_iou(const sdlf_evaluation *evaluation, int class_index);
/* The mean absolute difference and the root of the mean squared one, over all targets. NaN: there are none. */
double sdlf_evaluation_mae(const sdlf_evaluation *evaluation);
double sdlf_evaluation_rmse(const sdlf_evaluation *evaluation);
/* bce_with_logits: 2 hits / (2 hits + false alarms + misses), the mean over the labels; a label that is neither there
 * nor seen counts as 0. NaN: there are no labels. */
double sdlf_evaluation_f1(const sdlf_evaluation *evaluation);

/* Run the model over a data set, with its first output that is no loss: of float targets the values themselves (logits,
 * of bce_with_logits); else probabilities after softmax, logarithms of them after log_softmax, logits otherwise; the
 * largest, the first of equals, is the prediction. Samples are normalised as the model says, where it knows, else as
 * the data set does. `batch` 0 picks one. Values that have been left in a file are taken from there (see
 * sdlf_model_open_to_take). Release with sdlf_evaluation_release. Errors: shapes that disagree with the data, those of
 * sdlf_plan_create; there is nothing to release then. */
sdlf_status sdlf_evaluate(sdlf_evaluation *evaluation, sdlf_model *model, const sdlf_dataset *dataset,
                          sdlf_calculator *calculator, int64_t batch);
/* The same for as long as `go_on` says: it is asked after each batch; after false the figures are those of the samples
 * seen so far, evaluation->samples of them. NULL: to the end. */
sdlf_status sdlf_evaluate_while(sdlf_evaluation *evaluation, sdlf_model *model, const sdlf_dataset *dataset,
                                sdlf_calculator *calculator, int64_t batch, sdlf_go_on *go_on, void *user);
/* Views of each sample whose scores are averaged, test-time augmentation: only the sample; and its mirror image; or
 * half these two, half the same moved by a pixel up and to the left, and down and to the right, with the mirror image
 * beyond the edges. */
typedef enum sdlf_views { SDLF_VIEWS_ONE = 0, SDLF_VIEWS_FLIP, SDLF_VIEWS_SHIFT, SDLF_VIEWS_COUNT } sdlf_views;

typedef struct sdlf_evaluation_options {
    int64_t batch;    /* 0 picks one */
    sdlf_views views; /* of samples (C,H,W), 2x2 pixels or more */
    sdlf_go_on *go_on;
    void *user;
    /* All ranks evaluate the same data, each a part, and have the figures of all; NULL: this one does all. */
    sdlf_communicator *communicator;
    void *reserved[3]; /* zero: room for members to come */
} sdlf_evaluation_options;

/* sdlf_evaluate_while with options; NULL: none. */
sdlf_status sdlf_evaluate_with(sdlf_evaluation *evaluation, sdlf_model *model, const sdlf_dataset *dataset,
                               sdlf_calculator *calculator, const sdlf_evaluation_options *options);
void sdlf_evaluation_release(sdlf_evaluation *evaluation);

#ifdef __cplusplus
}
#endif
#endif
