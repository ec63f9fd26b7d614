/* SPDX-License-Identifier: MIT */
/* Trainer: epochs over a data set, with metrics, callbacks, stopping and resuming.
 *
 * Threads: one thread at a time may use a trainer. It has threads of its own, for batches and for saving, which never
 * call back: callbacks are made by the thread that calls sdlf_trainer_run.
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

/* An event, passed to the callback: a step is done; an epoch, with its test, is done; or the checkpoint of the epoch
 * reported last could not be written (sdlf_error_message says why), in which case training continues and the previous
 * checkpoint is unchanged. Epochs count from 1. Values that are not known yet are NaN. */
typedef struct sdlf_progress {
    enum { SDLF_PROGRESS_STEP, SDLF_PROGRESS_EPOCH, SDLF_PROGRESS_UNSAVED } event;
    int epoch, epochs;
    int64_t step, steps; /* within the epoch */
    int64_t samples;     /* of this epoch, so far */
    double loss,
        accuracy; /* means over this epoch so far; accuracy in [0, 1]; NaN for losses without one: mse, mae, huber */
    double test_loss, test_accuracy; /* after an epoch, if there is a test set; see sdlf_evaluation_accuracy */
    double test_error;               /* likewise, for mse, mae and huber: the root mean squared error; else NaN */
    double waited;                   /* the part of `seconds` spent waiting for data; NaN: a device draws its own */
    double seconds;                  /* training time of this epoch so far, without testing */
    double test_iou;                 /* likewise, for labels of pixels: the mean intersection over union; else NaN */
    double test_seconds;             /* of that test, including the transfer of the weights to it */
    float learning_rate;
    uint32_t weights;      /* sdlf_model_hash, after an epoch */
    double loss_scale;     /* after an epoch, with loss scaling; else 0 */
    int64_t skipped_steps; /* likewise: of the whole training */
    bool best;             /* after an epoch, if epochs are compared (keep, patience): it has the best test so far */
    void *reserved[4];     /* zero; reserved for new members */
} sdlf_progress;

typedef void sdlf_progress_callback(const sdlf_progress *progress, void *user);

/* Overrides the calculators of one layer, by name; NULL members keep the trainer's. */
typedef struct sdlf_trainer_placement {
    const char *layer;
    const char *forward, *backward;
} sdlf_trainer_placement;

/* Which epoch's weights training keeps: the last, or those with the best test, by accuracy (ties by loss; by loss only
 * if the loss has no accuracy) or by loss. */
typedef enum sdlf_keep { SDLF_KEEP_LAST = 0, SDLF_KEEP_BEST_ACCURACY, SDLF_KEEP_BEST_LOSS, SDLF_KEEP_COUNT } sdlf_keep;

typedef struct sdlf_trainer_options {
    int64_t batch; /* default 64 */
    int epochs;    /* default 1 */
    uint64_t seed; /* for shuffling, dropout, augmentation, and parameters of a model that is not built; default 1 */
    sdlf_optimizer optimizer;
    sdlf_schedule schedule;
    float label_smoothing;
    sdlf_loss loss; /* of networks without a loss layer; see dataset.h for the labels that it requires */
    /* huber: the difference at which it becomes linear; default 1. A loss layer has its own. */
    float huber_delta;
    /* Cross-entropy: the weight of each class's samples: "1,2,0.5" or "balanced": (samples) / (classes times samples of
     * the class). The mean over a batch is weighted by them. Empty: equal weights. */
    char class_weights[400];
    float clip_norm;
    /* The factor of the loss's gradient, which keeps small gradients from vanishing in float16 (see sdlf_plan_options):
     * a fixed number, or SDLF_LOSS_SCALE_DYNAMIC. 1: no loss scaling. 0: dynamic if math is fp16, else 1. */
    float loss_scale;
    /* In [0, 1); above 0: a moving average of the weights, average = ema average + (1 - ema) weight after each step,
     * starting at the first weights. The average is tested, compared, hashed and saved as the weights, and the model
     * holds it between runs; the weights themselves are stored beside it, as the optimizer's last state. */
    float ema;
    /* Above 0: Lookahead around the optimizer: after every `lookahead` steps the slow weights move by lookahead_share
     * towards the weights, which restart from them; see sdlf_plan_options. A parameter has at most three state tensors:
     * the optimizer's, the average and the slow weights. */
    int lookahead;
    float lookahead_share; /* default 0.5 */
    /* The number of batches per step, which uses the mean of their gradients (see sdlf_plan_accumulate); the last step
     * of an epoch may have fewer; default 1. */
    int accumulate;
    /* "trunk=0.1,conv2d.*=0.5": factors of the learning rate for groups of parameters (sdlf_model_parameter_matches);
     * the first match counts. Empty: 1. "head=2@0.5": a linear decay of its own, to 0 after half of the training; only
     * if `schedule` is linear, to 0, without warm-up. */
    char rate_scales[400];
    /* "head=1e-4,norm*=0", likewise: weight decay of groups of parameters, instead of the optimizer's. */
    char weight_decays[400];
    sdlf_augmentation augment;
    sdlf_auto_augment automatic; /* as in sdlf_loader_options */
    /* Splits the loss between two labels; training loss and accuracy refer to the label with the larger share. */
    sdlf_mixing mixing;
    const char *forward;                     /* the calculator's name; default "cpu" */
    const char *backward;                    /* default: `forward` */
    const sdlf_trainer_placement *placement; /* borrowed until sdlf_trainer_create returns */
    int placement_count;
    int threads;    /* default: all */
    int device;     /* for calculators with several; see sdlf_calculator_options */
    sdlf_math math; /* for calculators with a choice; default fp32 */
    bool no_fusion;
    int64_t device_data; /* bytes of training data that a device may hold; 0: as many as fit. A larger data set is
                                   copied to it batch by batch while it computes */
    const char *conv_algorithm; /* as in sdlf_plan_options */
    sdlf_choices *choices;      /* likewise; extended by sdlf_trainer_create */
    const char *data;           /* recorded in checkpoints: how to open the data set; default: its name */
    const char *checkpoint;     /* file to save to after each epoch and when stopped; NULL: none */
    sdlf_keep
        keep; /* best: the checkpoint is written only after an epoch that is better than all before, and the model ends
                       with that epoch's parameters and training state. Requires a test set */
    int patience; /* end after this many epochs without a better test; 0: never. Requires a test set */
    bool resume;  /* continue from the training state found in the model, see sdlf_trainer_create */
    sdlf_progress_callback *callback;
    void *user;
    /* Training on several ranks, each with a trainer of the same network, data and options (which is checked): `batch`
     * is that of all ranks together, at least one sample for each, and each rank computes its part. The result is that
     * of one rank, up to rounding, except for batch normalisation: each rank has its own statistics, which are averaged
     * after each epoch; with `sync_batch_norm` they are those of the whole batch. Rank 0 writes the checkpoint. Every
     * rank's callback is called, with sums over all ranks. sdlf_trainer_create waits for the other ranks
     * (sdlf_communicator_agree) even if it fails. Borrowed for the trainer's life; NULL: this process trains alone. */
    sdlf_communicator *communicator;
    bool sync_batch_norm;
    sdlf_dtype gradient_dtype; /* as in sdlf_plan_options */
    /* As in sdlf_plan_options: from creation to sdlf_trainer_free the model's states are this rank's parts. Checkpoints
     * contain the whole states. */
    bool shard_states;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_trainer_options;

/* Recommended training options of the built-in networks (on MNIST, or CIFAR-10 for cifar_fast): sets batch, optimizer,
 * schedule, label_smoothing, augment, rate_scales, weight_decays and, where the recipe fixes it, epochs. Returns false
 * and sets nothing for networks with no better options than the defaults, and for those that are not built in. With
 * these options, fast_cnn reaches 99% on MNIST's test set in one epoch. */
bool sdlf_network_builtin_training(sdlf_trainer_options *options, const char *name);

/* Creates a trainer: plans for full and for last batches, an inference plan for testing, and loaders. All memory that
 * training will use is allocated here. `test` may be NULL; `options` may be NULL for all defaults. Model and data sets
 * are borrowed; a model has one trainer at a time.
 *
 * A model that is not built is built from `seed`. If its normalisation is not known, it becomes that of `train`;
 * samples are normalised as the model specifies. Optimizer states and the training state of an earlier training are
 * discarded, unless `resume` is set: training then continues from the model's training state, and ends with the same
 * weights, bit for bit, as training without interruption, with any number of threads, on the same build, calculators
 * (for cpu: with the same vector instructions), placement and plan options. This requires that batch, seed, optimizer,
 * schedule, label_smoothing, clip_norm, augment and math equal those of the state (sdlf_trainer_restore_options); a
 * different value is an error that names it. `epochs` may differ if the schedule does not depend on it (constant and
 * step, without warm-up), and may grow once all epochs are done: the schedule is then that of the longer training. If
 * the best epoch was kept, training continues from that epoch.
 *
 * Errors: options out of range, shapes that disagree with the data (samples' shape, number of classes), a training
 * state that is missing or does not fit, a checkpoint path that cannot be written, memory. */
sdlf_status sdlf_trainer_create(sdlf_trainer **trainer, sdlf_model *model, const sdlf_dataset *train,
                                const sdlf_dataset *test, const sdlf_trainer_options *options);
void sdlf_trainer_free(sdlf_trainer *trainer);

/* Trains to the last epoch, or until patience runs out. A checkpoint that cannot be written is tried again, immediately
 * and after each epoch; SDLF_ERROR_IO: the last one could not be written. The model then has the complete result, and
 * calling sdlf_trainer_run again tries once more. SDLF_ERROR_NUMERIC: the loss became NaN or infinite (the message
 * names the step; the model keeps the parameters of that step or, if a device holds them, those at the end of the last
 * epoch, and has no training state; an earlier checkpoint is unchanged). SDLF_ERROR_INTERRUPTED: sdlf_trainer_stop was
 * called; the training state is in the model and in the checkpoint, if there is one, and calling sdlf_trainer_run again
 * continues. */
sdlf_status sdlf_trainer_run(sdlf_trainer *trainer);

/* The epoch, from 1, with the best test so far, and the results of that test (each may be NULL); 0 if there is none, or
 * epochs are not compared. */
int sdlf_trainer_best_epoch(const sdlf_trainer *trainer, double *test_loss, double *test_accuracy);

/* Asks a running trainer to stop after the current step or, if a device draws its own batches, after those that are
 * queued (less than a second of them, once the trainer knows how long steps take). Safe to call from a signal handler
 * and from other threads. */
void sdlf_trainer_stop(sdlf_trainer *trainer);

/* Sets batch, epochs, seed, optimizer, schedule, label_smoothing, clip_norm, augment, math, keep and patience to those
 * of a checkpoint's training, and no other member. A program that resumes starts from these, then applies its user's
 * options. Errors: SDLF_ERROR_ARGUMENT (there is no state), SDLF_ERROR_FORMAT (settings that cannot be read). */
sdlf_status sdlf_trainer_restore_options(sdlf_trainer_options *options, const sdlf_training_state *state);

/* The bytes that the trainer holds: parameters, optimizer states, the arenas of all its plans, and the loaders'
 * batches, without the data sets. */
int64_t sdlf_trainer_memory(const sdlf_trainer *trainer);

/* Where the plans get their training data: batches that a loader prepares in the host's memory; or, if the forward pass
 * runs on a device, the whole data set in its memory, or batches uploaded to it in advance. `space`, unless NULL,
 * receives the name (owned by the trainer) of the memory in which the forward pass works. */
typedef enum sdlf_data_place { SDLF_DATA_LOADED = 0, SDLF_DATA_RESIDENT, SDLF_DATA_STAGED } sdlf_data_place;
sdlf_data_place sdlf_trainer_data_place(const sdlf_trainer *trainer, const char **space);

/* The plan for full batches, for listings. */
const sdlf_plan *sdlf_trainer_plan(const sdlf_trainer *trainer);

/* ---- evaluation ---- */

/* How well one of several float targets is predicted. */
typedef struct sdlf_target_figures {
    double absolute, squared;                       /* sums over the samples of |x - t| and (x - t)^2 */
    double sum, sum_squares;                        /* of the targets: the error of a constant follows from them */
    int64_t hits, false_alarms, misses, rejections; /* for bce_with_logits: x > 0 and t > 1/2, and so on */
} sdlf_target_figures;

typedef struct sdlf_evaluation {
    int class_count;              /* classes, or targets per sample */
    sdlf_loss kind;               /* the loss that was computed, see sdlf_model_loss */
    double huber_delta;           /* for huber */
    bool of_pixels;               /* samples and correct count pixels, those that are not ignored */
    int64_t samples, correct;     /* correct: predicted class right; bce_with_logits: all labels right; else 0 */
    double loss;                  /* mean */
    double seconds;               /* of computation, including loading */
    int64_t *confusion;           /* for classes: [class_count * true + predicted]; freed by sdlf_evaluation_release */
    sdlf_target_figures *targets; /* for float targets: class_count, freed likewise */
    void *reserved[4];            /* zero; reserved for new members */
} sdlf_evaluation;

/* For classes, the fraction of samples that are right; for bce_with_logits, of labels; for other losses NaN. */
double sdlf_evaluation_accuracy(const sdlf_evaluation *evaluation);
/* For classes: the mean intersection over union, (right) / (labels + predictions - right), over the classes that occur
 * as labels or predictions. NaN if there is no confusion matrix. */
double sdlf_evaluation_mean_iou(const sdlf_evaluation *evaluation);
/* For one class; NaN if it does not occur. */
double sdlf_evaluation_iou(const sdlf_evaluation *evaluation, int class_index);
/* The mean absolute error and the root mean squared error, over all targets. NaN if there are none. */
double sdlf_evaluation_mae(const sdlf_evaluation *evaluation);
double sdlf_evaluation_rmse(const sdlf_evaluation *evaluation);
/* For bce_with_logits: 2 hits / (2 hits + false alarms + misses), averaged over the labels; a label that neither occurs
 * nor is predicted counts as 0. NaN if there are no labels. */
double sdlf_evaluation_f1(const sdlf_evaluation *evaluation);

/* Runs the model over a data set and evaluates its first output that is not a loss: for float targets the values
 * themselves (logits, for bce_with_logits); otherwise probabilities after softmax, their logarithms after log_softmax,
 * else logits, and the largest, the first among equals, is the prediction. Samples are normalised as the model
 * specifies, or else as the data set does. `batch` 0 chooses one. Values left in a file are read from it (see
 * sdlf_model_open_to_take). Release with sdlf_evaluation_release. Errors: shapes that disagree with the data, those of
 * sdlf_plan_create; nothing must be released then. */
sdlf_status sdlf_evaluate(sdlf_evaluation *evaluation, sdlf_model *model, const sdlf_dataset *dataset,
                          sdlf_calculator *calculator, int64_t batch);
/* The same with a way to stop: `go_on` is called after each batch; after false the figures are those of the samples so
 * far, evaluation->samples in number. NULL: to the end. */
sdlf_status sdlf_evaluate_while(sdlf_evaluation *evaluation, sdlf_model *model, const sdlf_dataset *dataset,
                                sdlf_calculator *calculator, int64_t batch, sdlf_go_on *go_on, void *user);
/* Test-time augmentation: the views of each sample over which scores are averaged. ONE: the sample only; FLIP: also its
 * mirror image; SHIFT: half the weight on these two, half on both moved by one pixel up and left, and down and right,
 * with reflection at the edges. */
typedef enum sdlf_views { SDLF_VIEWS_ONE = 0, SDLF_VIEWS_FLIP, SDLF_VIEWS_SHIFT, SDLF_VIEWS_COUNT } sdlf_views;

typedef struct sdlf_evaluation_options {
    int64_t batch;    /* 0 chooses one */
    sdlf_views views; /* for samples (C,H,W) of at least 2x2 pixels */
    sdlf_go_on *go_on;
    void *user;
    /* All ranks evaluate parts of the same data, and all get the total figures; NULL: this process evaluates all. */
    sdlf_communicator *communicator;
    void *reserved[3]; /* zero; reserved for new members */
} sdlf_evaluation_options;

/* sdlf_evaluate_while with options; NULL: defaults. */
sdlf_status sdlf_evaluate_with(sdlf_evaluation *evaluation, sdlf_model *model, const sdlf_dataset *dataset,
                               sdlf_calculator *calculator, const sdlf_evaluation_options *options);
void sdlf_evaluation_release(sdlf_evaluation *evaluation);

#ifdef __cplusplus
}
#endif
#endif
