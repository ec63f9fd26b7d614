/* SPDX-License-Identifier: MIT */
/* Plan: a model prepared to run.
 *
 * Making a plan infers every shape for one batch size and mode, gives each layer's forward and each layer's backward a
 * calculator, fuses what the calculators can fuse, inserts copies between memory spaces, lays all tensors out in one
 * arena per space by lifetime, and allocates it. Running a plan allocates nothing.
 *
 * A plan borrows its model and its calculators, which must outlive it; while it exists, the model takes no layers and
 * no new parameters. Where a calculator shares the host's memory, the
 * model's parameters are used in place; elsewhere the plan holds copies (see sdlf_plan_store_parameters).
 *
 * Threads: one thread at a time uses a plan, or any of the plans that have a calculator in common with it. Plans of
 * different models on calculators of their own may be made and run in different threads; plans of one model, if all are
 * for inference, may run in different threads.
 * Ownership: a plan is the caller's (sdlf_plan_free). Options are read before sdlf_plan_create returns, except for what is
 * said to be borrowed for longer. Bindings and texts are the plan's.
 * Errors: a status with a message (status.h) that names the layer and the operation. */
#ifndef SDLF_PLAN_H
#define SDLF_PLAN_H

#include <sdlf/calculator.h>
#include <sdlf/communicator.h>
#include <sdlf/model.h>
#include <sdlf/optimizer.h>
#include <sdlf/plan_info.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_plan sdlf_plan;

typedef enum sdlf_mode { SDLF_INFER = 0, SDLF_TRAIN } sdlf_mode;

/* Another calculator for one layer; NULL members leave the plan's. */
typedef struct sdlf_placement {
    const char *layer; /* its name */
    sdlf_calculator *forward, *backward;
} sdlf_placement;

/* A data set that a training plan draws its own batches from, instead of being written to before each step. It lives
 * where the forward pass runs: a device holds a copy, as it is (uint8, say), and batches are gathered, normalised and
 * augmented there, so that steps follow each other without the host. Names are those of the model's inputs. */
typedef struct sdlf_feed {
    const char *samples, *labels;
    sdlf_tensor sample_data; /* (M, ...) uint8 or the plan's dtype, host memory; borrowed for the plan's life */
    sdlf_tensor label_data;  /* (M) int32, likewise */
    float mean, scale;       /* where channels.count is 0 */
    sdlf_channel_normalization channels;
    sdlf_augmentation augment;
    uint64_t seed; /* of the orders that the plan makes itself: see sdlf_epoch */
    int64_t skip;  /* samples at their beginning that are another plan's */
    /* 0: a device holds all data. Else it holds this many batches, up to SDLF_MAX_STAGED, and the host brings the next
     * ones while it computes. Where the plan computes in the host's memory, no data are moved. */
    int staged;
    void *reserved[2];           /* zero: room for members to come */
    sdlf_auto_augment automatic; /* before `augment`, with its seed; its magnitude may not be 0 */
} sdlf_feed;
enum { SDLF_MAX_STAGED = 8 };

/* An input that is the same in every run, by its name: the plan reads it where it lies, and puts a copy on each device
 * that reads it, once. `tensor` is host memory of the input's shape and of the plan's dtype, borrowed for the plan's
 * life. Sparse inputs must be constant; sdlf_csr_check says whether a matrix is sound. */
typedef struct sdlf_plan_constant {
    const char *input;
    sdlf_tensor tensor;
} sdlf_plan_constant;

/* Algorithms chosen by measurement. Where a calculator offers several for an operation, a plan that is given choices
 * takes the one that they name for this device, operation and size; what they do not name yet is raced when the plan is
 * made (also when it is only measured), every algorithm for a tenth of a second at most, in memory of its own, and
 * added. With the same choices, plans are the same. Files of them: sdlf_choices_read and _write in formats.h. */
typedef struct sdlf_choices sdlf_choices;
sdlf_choices *sdlf_choices_create(void); /* empty; NULL when memory is out; the caller's */
void sdlf_choices_free(sdlf_choices *choices);
int sdlf_choices_count(const sdlf_choices *choices);
/* Has anything been added since they were made, read or written? */
bool sdlf_choices_changed(const sdlf_choices *choices);

/* What a run leaves for the next one: an output that is the next run's input. Where the output is a Concat of the input
 * and of something new behind it (the keys or values of a decoder), both lie in one piece of memory with room for
 * `capacity` along that axis: the new part is written behind the old one, and nothing is copied. Else both have the
 * same shape, and the output is copied to the input. */
typedef struct sdlf_state {
    const char *input, *output;
    int64_t capacity; /* of the axis along which it grows; not looked at where it does not */
} sdlf_state;

#define SDLF_LOSS_SCALE_DYNAMIC (-1.0f)

typedef struct sdlf_plan_options {
    int64_t batch; /* required, at least 1 */
    sdlf_mode mode;
    sdlf_dtype dtype;          /* float32 (default) or float64: the type of every floating tensor */
    sdlf_calculator *forward;  /* required */
    sdlf_calculator *backward; /* training: default `forward`; it also updates the parameters */
    const sdlf_placement *placement;
    int placement_count;
    bool no_fusion;        /* one operation for each that the layers describe */
    bool no_recording;     /* call every operation every time, even where a calculator could replay them as a unit */
    bool keep_activations; /* every layer's output and gradient stays readable after a run (no reuse, no fusion) */
    bool gradients_only;   /* training: compute gradients, update nothing */
    bool eval_mode; /* training with gradients_only: layers compute as in inference (batch normalisation by its running
                       statistics, no dropout), so that the gradients are those of what the network answers */
    sdlf_optimizer optimizer; /* training: zeroed means plain sgd */
    float clip_norm; /* training: scale the gradients to at most this total norm for the update; 0: do not. With
                                 gradients_only there is no update: the gradients stay as they are */
    /* Training: a moving average of the weights, beside them: average = ema average + (1 - ema) weight after each
     * update, in the state behind the optimizer's own (sdlf_parameter.state), where the caller puts its first value; 0:
     * there is none. */
    double ema;
    /* Training: Lookahead (https://arxiv.org/abs/1907.08610): slow weights beside the weights. After each update whose
     * number, from 1, is a multiple of
     * `lookahead`, slow = slow + lookahead_share (weight - slow) and weight = slow. They are the state behind the
     * average, where the caller puts their first values, the weights'; 0: there are none. */
    int lookahead;
    double lookahead_share; /* default 0.5 */
    const float
        *rate_scales; /* training: what the learning rate of each of the model's parameters is multiplied by, above 0;
                                 borrowed until sdlf_plan_create returns; NULL: 1 */
    const float *rate_offsets; /* training: what is taken from that product, which stays at 0 or above; NULL: 0 */
    const float
        *weight_decays; /* training: the optimizer's weight_decay for each parameter, whatever decay_all says; below 0:
                                    the optimizer's own; NULL: of all */
    bool accumulate;    /* training: see sdlf_plan_accumulate; not with a feed */
    /* Training: loss scaling. The gradient of the loss is multiplied by a scale, which begins with this one; updates (and
     * clip_norm) divide by it. A step with a gradient that is infinite or NaN is skipped: parameters and optimizer states
     * stay as they are, and Adam does not count it; averages go on. The scale changes by the rule, whose growth (0: 2) and
     * backoff (0: 0.5) have defaults, and whose interval 0 is a fixed scale. SDLF_LOSS_SCALE_DYNAMIC: 65536, with an
     * interval of 2000. 0: there is no loss scaling. Not with gradients_only. See sdlf_plan_loss_scale. */
    float loss_scale;
    sdlf_loss_scale_rule loss_scale_rule;
    float label_smoothing; /* training: of the loss that the plan adds itself, see sdlf_plan_create */
    sdlf_loss loss;        /* training: likewise */
    bool weighted;         /* training: likewise */
    bool mixed;            /* training: likewise */
    /* Dropout; and, of a model that is not built yet, the parameters' starting values (0: 1), which the plan's
     * calculators then draw where they keep them: as sdlf_model_build makes them, bit for bit. */
    uint64_t seed;
    const sdlf_feed *feed; /* training: borrowed until sdlf_plan_create returns; NULL: inputs are written */
    const sdlf_plan_constant *constants; /* the list is borrowed until sdlf_plan_create returns */
    int constant_count;
    /* A plan of the same model: use its copies of the parameters (in spaces other than the host's) instead of new ones;
     * it must outlive this plan, and use the same calculators in these spaces (nothing would order what two calculators
     * of one device do), which is checked. */
    sdlf_plan *reuse;
    /* Inference, by the only plan that the model will ever have: values of its parameters that the plan keeps in
     * another form, or on a device, are freed one by one as these are made, so that they are not there twice; those of
     * them are absent then (sdlf_parameter.value). A model whose weights have been left in a file (leave_weights in
     * formats.h) never has them all. Once the plan is made, the model serves only it, even where nothing had to be
     * freed: sdlf_model_status, and with it other plans, saving and exporting, are SDLF_ERROR_ARGUMENT. Where it cannot
     * be made, that is so only if values of a model that was built before are lost by then; else the model is as it
     * was. */
    bool take_parameters;
    /* The convolution algorithm, instead of the calculators' own choice. "direct": every convolution that it can
     * compute uses it; the calculator of the forward pass must have it. "cuda:direct": the same for that calculator
     * only. Fused convolutions have no choice. */
    const char *conv_algorithm;
    /* The same for dense products. "gemv": every gemm uses it; its calculator must have it, and it must be able to
     * compute each one. "cuda:gemv": the same for that calculator only. Products that training fuses with their
     * update have no choice.
     *
     * Both: an unknown algorithm is SDLF_ERROR_ARGUMENT, even where no operation could use it. Unknown means that no
     * calculator of the plan has it, or that the one named does not. "auto" leaves the choice to `choices`, if given,
     * else to the calculator. */
    const char *gemm_algorithm;
    sdlf_choices
        *choices; /* borrowed until sdlf_plan_create returns, and added to; NULL: calculators follow their own rules */
    /* Training on several ranks: gradients are added over all of them before the update. Each rank's plan has its part
     * of the batch, `batch` samples from number `first_sample` of the whole on (dropout draws by that number), and its
     * gradients count `rank_fraction`: batch / (samples of all ranks) for the mean over all; 0: this rank has no samples.
     * Without a communicator they count 1. All ranks make and run the same plans in the same order. The communicator is
     * borrowed for the plan's life. */
    sdlf_communicator *communicator;
    int64_t first_sample;
    double rank_fraction;
    /* float16 or bfloat16: gradients are rounded to it for the sums over ranks, which are rounded too; NONE: they are
     * added as they are. */
    sdlf_dtype gradient_dtype;
    /* With a communicator: each rank has its part of the optimizer's states, updates that part of each parameter, and
     * gets the others' (ZeRO, stage 1). For optimizers that update each number by itself, without ema; made by
     * trainers. */
    bool shard_states;
    /* With a communicator: batch normalisation by the statistics of all ranks' samples, of which there are
     * `samples_of_all`, and this rank has `samples_that_count` of them (0: this rank has no samples). */
    bool sync_batch_norm;
    int64_t samples_of_all, samples_that_count;
    /* Inference, on calculators in the host's memory: see sdlf_state, and stateful.h, which runs step after step. The
     * list is borrowed until sdlf_plan_create returns. */
    const sdlf_state *states;
    int state_count;
    void *reserved[2]; /* zero: room for members to come */
} sdlf_plan_options;

/* The plan is the caller's; free with sdlf_plan_free (accepts NULL). A training plan minimises the model's loss layers;
 * to a model that has none the plan (not the model) adds softmax_cross_entropy, named "loss", on the input of its final
 * softmax or log_softmax, or else on its first output, with an int32 input "labels" (N); `weighted`, and an input
 * "weights" (N) by which the samples' losses are multiplied and summed, instead of their mean; `mixed`, and a second
 * loss with "second_labels" and "second_weights", which is added to it. With another `loss`, that layer is added, with
 * an input "labels" of its output's shape and dtype. Errors: all of the model's; an operation that the layer's
 * calculator lacks (the message names both); memory (the message says how much was asked); the file where weights have
 * been left, which cannot be read or has been written to (SDLF_ERROR_IO). */
sdlf_status sdlf_plan_create(sdlf_plan **plan, sdlf_model *model, const sdlf_plan_options *options);
void sdlf_plan_free(sdlf_plan *plan);

/* ---- running ---- */

/* Where the model's input or output of that name (or index) lives, and on which calculator. Write inputs before a run,
 * read outputs after sdlf_plan_synchronize. */
typedef struct sdlf_binding {
    sdlf_tensor tensor;
    sdlf_calculator *calculator;
} sdlf_binding;
sdlf_status sdlf_plan_input(sdlf_plan *plan, const char *name, sdlf_binding *binding);
sdlf_status sdlf_plan_output(sdlf_plan *plan, const char *name, sdlf_binding *binding);

/* Copy a whole input from, or a whole output to, host memory: `bytes` bytes of elements of `dtype`, as many as
 * sdlf_plan_input and sdlf_plan_output say. Constants are not written. Errors: SDLF_ERROR_SHAPE where the type or the
 * number of bytes is another one (the message has both); SDLF_ERROR_ARGUMENT for an index out of range, in an input that a
 * gather or an embedding reads, directly or converted (the message has layer, index and bounds). */
sdlf_status sdlf_plan_write(sdlf_plan *plan, const char *input, const void *host, sdlf_dtype dtype, int64_t bytes);
/* The same of `count` elements of any type, converted as sdlf_convert does, which takes memory where they have another
 * type than the input. Errors: also SDLF_ERROR_MEMORY. */
sdlf_status sdlf_plan_write_converted(sdlf_plan *plan, const char *input, const void *host, sdlf_dtype dtype,
                                      int64_t count);
/* The same from memory of the device that the input lies on, which another library holds: copied there, behind
 * everything that is queued on the device in any stream, and done when it returns. The library's own memory may be given,
 * too, an output of another plan after sdlf_plan_synchronize. Errors: also SDLF_ERROR_UNSUPPORTED where the input lies in
 * the host's memory, or its calculator cannot; an index out of range is found when it has been copied. */
sdlf_status sdlf_plan_write_device(sdlf_plan *plan, const char *input, const void *memory, sdlf_dtype dtype,
                                   int64_t bytes);
sdlf_status sdlf_plan_read(sdlf_plan *plan, const char *output, void *host, sdlf_dtype dtype, int64_t bytes);

/* `host` is in host memory and holds the whole output, as sdlf_plan_read has it. Where only the beginning of an axis
 * counts (sdlf_output_length), the elements that count are moved together, row-major, and host->shape is theirs; else
 * nothing changes.
 * Errors: SDLF_ERROR_NUMERIC where the length is none of the axis's. */
sdlf_status sdlf_plan_trim(sdlf_plan *plan, const char *output, sdlf_tensor *host);

/* The forward pass (and, for a training plan, nothing else). Not for a plan with a feed. */
sdlf_status sdlf_plan_forward(sdlf_plan *plan);

/* The backward pass of what sdlf_plan_forward has computed. For a training plan with gradients_only. */
sdlf_status sdlf_plan_backward(sdlf_plan *plan);

/* One training step: forward, backward, update with this learning rate; then the step's number grows by one. */
sdlf_status sdlf_plan_step(sdlf_plan *plan, float learning_rate);

/* A plan made to accumulate: forward and backward, and the gradients are added to those since the last update;
 * sdlf_plan_step then takes the mean of all of them and its own. So a step can be over more samples than there is
 * memory for. Layers see each batch by itself: statistics of batch normalisation are its own, and dropout draws the
 * same for each batch of a step. Errors: SDLF_ERROR_ARGUMENT (another plan). */
sdlf_status sdlf_plan_accumulate(sdlf_plan *plan);

/* A plan with a feed: what an epoch draws. order[0 .. order_count - 1] are the samples in their order, rates[0 .. steps
 * - 1]
 * the learning rates, steps = order_count / batch (a shorter rest is another plan's); `first` is the step to begin
 * with. `first_step` is the number (see below) of the epoch's step 0; `epoch` is what augmentation depends on. All is
 * copied. Without an order, the plan takes that of sdlf_shuffle_order for the feed's seed and this epoch, from its
 * sample `skip` on; a device that holds the data makes it itself. */
typedef struct sdlf_epoch {
    const int32_t *order; /* NULL: see above */
    int64_t order_count;
    const float *rates;
    int64_t first, first_step, epoch;
} sdlf_epoch;
sdlf_status sdlf_plan_begin_epoch(sdlf_plan *plan, const sdlf_epoch *epoch);

/* A plan with a feed: the next `steps` training steps of the epoch. They are queued; a device need not have finished
 * them. */
sdlf_status sdlf_plan_run(sdlf_plan *plan, int64_t steps);

/* The number of training steps done, which dropout and Adam depend on. */
int64_t sdlf_plan_step_number(const sdlf_plan *plan);
sdlf_status sdlf_plan_set_step_number(sdlf_plan *plan, int64_t step);

/* Where loss scaling stands. A plan shares it with the one that it reuses. */
typedef struct sdlf_loss_scale {
    double scale;    /* 0: there is no loss scaling */
    int64_t good;    /* good steps since the scale last changed */
    int64_t skipped; /* steps that were skipped, exact up to 2^24 */
} sdlf_loss_scale;
sdlf_status sdlf_plan_loss_scale(sdlf_plan *plan, sdlf_loss_scale *scale);
/* Errors: SDLF_ERROR_ARGUMENT (a plan without loss scaling; numbers that cannot be). */
sdlf_status sdlf_plan_set_loss_scale(sdlf_plan *plan, const sdlf_loss_scale *scale);

/* Sums since they were last cleared, over the plan's first softmax_cross_entropy layer. */
typedef struct sdlf_metrics {
    double loss_sum; /* of the samples' losses */
    double correct;
    double samples;
    void *reserved[4]; /* zero: room for members to come */
} sdlf_metrics;
sdlf_status sdlf_plan_metrics(sdlf_plan *plan, sdlf_metrics *metrics);
sdlf_status sdlf_plan_clear_metrics(sdlf_plan *plan);

/* The metrics of a plan with a feed, without making its device wait: sdlf_plan_mark asks for them as they will be
 * behind all that is queued by now, sdlf_plan_wait_mark waits for the oldest mark and gives what was requested. While
 * steps are queued behind it, the device goes on. sdlf_plan_mark_passed asks whether the oldest has passed, so that
 * waiting for it takes no time, and does not wait itself. Up to SDLF_PLAN_MARKS may be on their way. */
enum { SDLF_PLAN_MARKS = 8 };
sdlf_status sdlf_plan_mark(sdlf_plan *plan);
sdlf_status sdlf_plan_mark_passed(const sdlf_plan *plan, bool *passed);
sdlf_status sdlf_plan_wait_mark(sdlf_plan *plan, sdlf_metrics *metrics);

sdlf_status sdlf_plan_synchronize(sdlf_plan *plan);

/* Bring copies of parameters (and optimizer states) that live outside the host's memory back to the model, or push the
 * model's values to them. A plan for inference may hold weights in forms of its own (batch normalisation folded in,
 * laid out for its kernels) in the host's memory too. So after training: store from the plan that has trained, then
 * load into those for inference. sdlf_plan_forward of one whose weights are out of date is SDLF_ERROR_ARGUMENT. That is
 * noticed where plans, weights files or sdlf_plan_store_parameters have changed parameters; who writes values of the
 * model directly has to load by itself. */
sdlf_status sdlf_plan_store_parameters(sdlf_plan *plan);
sdlf_status sdlf_plan_load_parameters(sdlf_plan *plan);

/* May a plan for inference run with the weights that it holds? True where it reads the model's own. */
bool sdlf_plan_is_current(const sdlf_plan *plan);

/* With keep_activations: a layer's output, or the gradient by it, by the layer's name. */
sdlf_status sdlf_plan_activation(sdlf_plan *plan, const char *layer, bool gradient, sdlf_binding *binding);

/* With gradients_only: the gradient by a parameter, by the parameter's full name. */
sdlf_status sdlf_plan_gradient(sdlf_plan *plan, const char *parameter, sdlf_binding *binding);

#ifdef __cplusplus
}
#endif
#endif
