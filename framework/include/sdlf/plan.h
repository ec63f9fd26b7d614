/* SPDX-License-Identifier: MIT */
/* Plan: a model prepared to run.
 *
 * Creating a plan infers every shape for one batch size and mode, assigns each layer's forward and each layer's
 * backward pass to a calculator, fuses what the calculators can fuse, inserts copies between memory spaces, assigns all
 * tensors by lifetime to one arena per space, and allocates it. Running a plan allocates nothing.
 *
 * A plan borrows its model and its calculators, which must outlive it; while it exists, the model accepts no layers and
 * no new parameters. If a calculator shares the host's memory, the model's parameters are used in place; otherwise the
 * plan holds copies (see sdlf_plan_store_parameters).
 *
 * Threads: one thread at a time may use a plan, or any of the plans that share a calculator with it. Plans of different
 * models on separate calculators may be created and run in different threads; plans of one model may run in different
 * threads if all are for inference.
 * Ownership: a plan is the caller's (sdlf_plan_free). Options are borrowed until sdlf_plan_create returns, unless their
 * comment says "borrowed for the plan's life". Bindings and texts belong to the plan.
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

/* Overrides the calculators of one layer; NULL members keep the plan's. */
typedef struct sdlf_placement {
    const char *layer; /* its name */
    sdlf_calculator *forward, *backward;
} sdlf_placement;

/* A data set from which a training plan draws its own batches, so that no input is written before each step. It is kept
 * where the forward pass runs: a device holds an unconverted copy (uint8, say), and batches are gathered, normalised
 * and augmented there, so that steps follow one another without the host. Names are those of the model's inputs. */
typedef struct sdlf_feed {
    const char *samples, *labels;
    sdlf_tensor sample_data; /* (M, ...) uint8 or the plan's dtype, host memory; borrowed for the plan's life */
    sdlf_tensor label_data;  /* (M) int32, likewise */
    float mean, scale;       /* used if channels.count is 0 */
    sdlf_channel_normalization channels;
    sdlf_augmentation augment;
    uint64_t seed; /* of the sample orders that the plan generates, see sdlf_epoch */
    int64_t skip;  /* number of samples at the beginning of each order that another plan uses */
    /* 0: a device holds all data. Otherwise it holds this many batches, up to SDLF_MAX_STAGED, and the host uploads the
     * next ones while it computes. A plan that computes in the host's memory moves no data. */
    int staged;
    void *reserved[2];           /* zero; reserved for new members */
    sdlf_auto_augment automatic; /* applied before `augment`, with its seed; its magnitude must not be 0 */
} sdlf_feed;
enum { SDLF_MAX_STAGED = 8 };

/* An input, by name, that is the same in every run. The plan reads it in place, and copies it once to each device that
 * reads it. `tensor` is in host memory, has the input's shape and the plan's dtype, and is borrowed for the plan's
 * life. Sparse inputs must be constant; sdlf_csr_check validates a matrix. */
typedef struct sdlf_plan_constant {
    const char *input;
    sdlf_tensor tensor;
} sdlf_plan_constant;

/* Algorithms chosen by measurement. If a calculator has several for an operation, a plan that is given choices uses the
 * one recorded there for this device, operation and size. If none is recorded, creating (or only measuring) the plan
 * times every algorithm, for at most a tenth of a second each and in separate memory, and records the fastest. The same
 * choices give the same plans. sdlf_choices_read and sdlf_choices_write (formats.h) store them in files. */
typedef struct sdlf_choices sdlf_choices;
sdlf_choices *sdlf_choices_create(void); /* empty, the caller's; NULL if out of memory */
void sdlf_choices_free(sdlf_choices *choices);
int sdlf_choices_count(const sdlf_choices *choices);
/* True if anything has been added since they were created, read or written. */
bool sdlf_choices_changed(const sdlf_choices *choices);

/* State that is passed from one run to the next: an output that becomes the next run's input. If the output is a Concat
 * of the input and new elements behind it (the keys or values of a decoder), both share one buffer with space for
 * `capacity` elements along that axis: the new part is written behind the old one, and nothing is copied. Otherwise
 * both have the same shape, and the output is copied to the input. */
typedef struct sdlf_state {
    const char *input, *output;
    int64_t capacity; /* of the axis along which the state grows; ignored if it does not grow */
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
    bool no_recording;     /* launch every operation in every run, even if a calculator could record and replay them */
    bool keep_activations; /* every layer's output and gradient stay readable after a run (no reuse, no fusion) */
    bool gradients_only;   /* training: compute gradients only, without updates */
    bool eval_mode;        /* training with gradients_only: layers compute as in inference (batch normalisation with its
                       running statistics, no dropout), so that the gradients are those of the inference outputs */
    sdlf_optimizer optimizer; /* training: zeroed means plain sgd */
    float clip_norm; /* training: scale the gradients to at most this total norm for the update; 0: no clipping. Ignored
                                 with gradients_only, which has no update */
    /* Training: a moving average of the weights, kept beside them: after each update average = ema average +
     * (1 - ema) weight. It is the state behind the optimizer's own (sdlf_parameter.state); the caller initialises it.
     * 0: no average. */
    double ema;
    /* Training: Lookahead (https://arxiv.org/abs/1907.08610): slow weights, kept beside the weights. After each
     * update whose number, from 1, is a multiple of `lookahead`, slow = slow + lookahead_share (weight - slow) and
     * weight = slow. They are the state behind the average; the caller initialises them with the weights. 0: no slow
     * weights. */
    int lookahead;
    double lookahead_share; /* default 0.5 */
    const float
        *rate_scales; /* training: factor of the learning rate for each of the model's parameters, above 0; borrowed
                                 until sdlf_plan_create returns; NULL: 1 */
    const float *rate_offsets;  /* training: subtracted from that product, whose minimum is 0; NULL: 0 */
    const float *weight_decays; /* training: weight_decay for each parameter, regardless of decay_all; negative: the
                                    optimizer's own; NULL: the optimizer's own for all */
    bool accumulate;            /* training: see sdlf_plan_accumulate; not with a feed */
    /* Training: loss scaling. The gradient of the loss is multiplied by a scale with this initial value; updates (and
     * clip_norm) divide by it. A step with an infinite or NaN gradient is skipped: parameters and optimizer states do
     * not change, and Adam does not count it; averages are still updated. The scale follows the rule: growth (0: 2) and
     * backoff (0: 0.5) have defaults, and an interval of 0 fixes the scale. SDLF_LOSS_SCALE_DYNAMIC: 65536 with an
     * interval of 2000. 0: no loss scaling. Not with gradients_only. See sdlf_plan_loss_scale. */
    float loss_scale;
    sdlf_loss_scale_rule loss_scale_rule;
    float label_smoothing; /* training: of the loss that the plan adds, see sdlf_plan_create */
    sdlf_loss loss;        /* training: the loss that the plan adds */
    bool weighted;         /* training: add it with weights of the samples */
    bool mixed;            /* training: add it with two labels per sample */
    /* For dropout; and, if the model is not built yet, for the parameters' initial values (0: 1). The plan's
     * calculators then draw these where they keep them, bit for bit as sdlf_model_build does. */
    uint64_t seed;
    const sdlf_feed *feed; /* training: borrowed until sdlf_plan_create returns; NULL: the caller writes the inputs */
    const sdlf_plan_constant *constants; /* the list is borrowed until sdlf_plan_create returns */
    int constant_count;
    /* Another plan of the same model, whose copies of the parameters (in spaces other than the host's) are shared. It
     * must outlive this plan and use the same calculators in these spaces, which is checked: the work of two
     * calculators of one device would not be ordered. */
    sdlf_plan *reuse;
    /* Inference, if the model will have no other plan: parameter values that the plan keeps in another form, or on a
     * device, are freed one by one as that copy is made, so that memory does not hold both; the model then lacks them
     * (sdlf_parameter.value). A model whose weights were left in a file (leave_weights in formats.h) never holds all of
     * them. Once the plan is created, the model serves only this plan, even if nothing had to be freed:
     * sdlf_model_status, and with it other plans, saving and exporting, return SDLF_ERROR_ARGUMENT. If creating the
     * plan fails, this holds only if values of a model that had been built are lost by then; otherwise the model is
     * unchanged. */
    bool consume_parameters;
    /* The convolution algorithm, instead of the calculators' choice. "direct": every convolution that this algorithm
     * supports uses it; the calculator of the forward pass must have it. "cuda:direct": the same for that calculator
     * only. Does not apply to fused convolutions. */
    const char *conv_algorithm;
    /* The same for dense matrix products. "gemv": every gemm uses it; its calculator must have it, and it must support
     * each of them. "cuda:gemv": the same for that calculator only. Does not apply to products that training fuses with
     * their update.
     *
     * Both: an unknown algorithm is SDLF_ERROR_ARGUMENT, even if no operation could use it. Unknown means that no
     * calculator of the plan has it, or that the named calculator does not. "auto" leaves the choice to `choices`, if
     * given, else to the calculator. */
    const char *gemm_algorithm;
    sdlf_choices
        *choices; /* borrowed until sdlf_plan_create returns, and extended; NULL: calculators use their own rules */
    /* Training on several ranks: gradients are summed over all of them before the update. Each rank's plan processes
     * its part of the batch: `batch` samples from index `first_sample` of the whole (dropout draws by that index). Its
     * gradients are weighted by `rank_fraction`: batch / (samples of all ranks) for the mean over all; 0: this rank has
     * no samples. Without a communicator the weight is 1. All ranks create and run the same plans in the same order.
     * The communicator is borrowed for the plan's life. */
    sdlf_communicator *communicator;
    int64_t first_sample;
    double rank_fraction;
    /* float16 or bfloat16: gradients are rounded to this type for the sums over ranks, which are rounded too; NONE:
     * they are summed unrounded. */
    sdlf_dtype gradient_dtype;
    /* With a communicator: each rank holds its part of the optimizer's states, updates that part of each parameter, and
     * receives the others' parts (ZeRO, stage 1). For optimizers that update every element independently, without ema;
     * set by trainers. */
    bool shard_states;
    /* With a communicator: batch normalisation uses the statistics of all ranks' samples, `samples_of_all` in number,
     * of which this rank has `samples_that_count` (0: none). */
    bool sync_batch_norm;
    int64_t samples_of_all, samples_that_count;
    /* Inference, on calculators in the host's memory: see sdlf_state, and stateful.h, which runs step after step. The
     * list is borrowed until sdlf_plan_create returns. */
    const sdlf_state *states;
    int state_count;
    void *reserved[2]; /* zero; reserved for new members */
} sdlf_plan_options;

/* Creates a plan; the caller frees it with sdlf_plan_free (accepts NULL). A training plan minimises the model's loss
 * layers. If the model has none, the plan (not the model) adds softmax_cross_entropy, named "loss", on the input of the
 * final softmax or log_softmax, or else on the first output, with an int32 input "labels" (N). `weighted` also adds an
 * input "weights" (N): the loss is then the sum of the samples' losses times their weights, not their mean. `mixed`
 * adds a second loss, with "second_labels" and "second_weights", to the first. With another `loss`, that layer is
 * added, with an input "labels" of its output's shape and dtype. Errors: all of the model's; an operation that the
 * layer's calculator lacks (the message names both); memory (the message says how much was requested); a file in which
 * weights have been left that cannot be read or has been modified (SDLF_ERROR_IO). */
sdlf_status sdlf_plan_create(sdlf_plan **plan, sdlf_model *model, const sdlf_plan_options *options);
void sdlf_plan_free(sdlf_plan *plan);

/* ---- running ---- */

/* The memory of the model's input or output of that name (or index), and its calculator. Write inputs before a run, and
 * read outputs after sdlf_plan_synchronize. */
typedef struct sdlf_binding {
    sdlf_tensor tensor;
    sdlf_calculator *calculator;
} sdlf_binding;
sdlf_status sdlf_plan_input(sdlf_plan *plan, const char *name, sdlf_binding *binding);
sdlf_status sdlf_plan_output(sdlf_plan *plan, const char *name, sdlf_binding *binding);

/* Copies a whole input from host memory, or a whole output to it: `bytes` bytes of elements of `dtype`, which must
 * match sdlf_plan_input or sdlf_plan_output. Constants cannot be written. Errors: SDLF_ERROR_SHAPE if the type or the
 * number of bytes differs (the message has both); SDLF_ERROR_ARGUMENT for an index out of range in an input that a
 * gather or an embedding reads, directly or converted (the message has layer, index and bounds). */
sdlf_status sdlf_plan_write(sdlf_plan *plan, const char *input, const void *host, sdlf_dtype dtype, int64_t bytes);
/* The same with `count` elements of any type, converted as by sdlf_convert, which allocates memory if their type is not
 * the input's. Errors: also SDLF_ERROR_MEMORY. */
sdlf_status sdlf_plan_write_converted(sdlf_plan *plan, const char *input, const void *host, sdlf_dtype dtype,
                                      int64_t count);
/* The same from memory that another library holds on the input's device. The copy is made on the device, after
 * everything that is queued there in any stream, and is complete on return. The library's own memory may be given, too:
 * an output of another plan after sdlf_plan_synchronize. Errors: also SDLF_ERROR_UNSUPPORTED if the input is in the
 * host's memory or its calculator cannot do this; an index out of range is found after the copy. */
sdlf_status sdlf_plan_write_device(sdlf_plan *plan, const char *input, const void *memory, sdlf_dtype dtype,
                                   int64_t bytes);
sdlf_status sdlf_plan_read(sdlf_plan *plan, const char *output, void *host, sdlf_dtype dtype, int64_t bytes);

/* Trims an output in host memory: `host` holds the whole output, as read by sdlf_plan_read. If only the beginning of an
 * axis is valid (sdlf_output_length), the valid elements are compacted, row-major, and host->shape becomes theirs;
 * otherwise nothing changes.
 * Errors: SDLF_ERROR_NUMERIC if the length is out of the axis's range. */
sdlf_status sdlf_plan_trim(sdlf_plan *plan, const char *output, sdlf_tensor *host);

/* Runs the forward pass, and nothing else even for a training plan. Not for a plan with a feed. */
sdlf_status sdlf_plan_forward(sdlf_plan *plan);

/* Runs the backward pass of the last sdlf_plan_forward. For a training plan with gradients_only. */
sdlf_status sdlf_plan_backward(sdlf_plan *plan);

/* Runs one training step: forward, backward, update with this learning rate. Then the step number grows by one. */
sdlf_status sdlf_plan_step(sdlf_plan *plan, float learning_rate);

/* For a plan with `accumulate`: runs forward and backward, and adds the gradients to those since the last update; the
 * next sdlf_plan_step uses the mean of these and its own. A step can thus cover more samples than fit in memory. Layers
 * process each batch separately: batch normalisation uses the statistics of each batch, and dropout draws the same for
 * each batch of a step. Errors: SDLF_ERROR_ARGUMENT (a plan without `accumulate`). */
sdlf_status sdlf_plan_accumulate(sdlf_plan *plan);

/* For a plan with a feed: the samples and learning rates of an epoch. order[0 .. order_count - 1] are the samples in
 * their order; rates[0 .. steps - 1] are the learning rates, with steps = order_count / batch (an incomplete last batch
 * is left to another plan); the epoch begins with step `first`. `first_step` is the step number (see below) of the
 * epoch's step 0; augmentation depends on `epoch`. Everything is copied. Without an order, the plan uses that of
 * sdlf_shuffle_order for the feed's seed and this epoch, from its sample `skip` on; a device that holds the data
 * computes it there. */
typedef struct sdlf_epoch {
    const int32_t *order; /* NULL: see above */
    int64_t order_count;
    const float *rates;
    int64_t first, first_step, epoch;
} sdlf_epoch;
sdlf_status sdlf_plan_begin_epoch(sdlf_plan *plan, const sdlf_epoch *epoch);

/* For a plan with a feed: queues the next `steps` training steps of the epoch. A device need not have finished them on
 * return. */
sdlf_status sdlf_plan_run(sdlf_plan *plan, int64_t steps);

/* The number of training steps done. Dropout and Adam depend on it. */
int64_t sdlf_plan_step_number(const sdlf_plan *plan);
sdlf_status sdlf_plan_set_step_number(sdlf_plan *plan, int64_t step);

/* The state of loss scaling. A plan shares it with the plan that it reuses. */
typedef struct sdlf_loss_scale {
    double scale;    /* 0: no loss scaling */
    int64_t good;    /* successful steps since the scale last changed */
    int64_t skipped; /* skipped steps, exact up to 2^24 */
} sdlf_loss_scale;
sdlf_status sdlf_plan_loss_scale(sdlf_plan *plan, sdlf_loss_scale *scale);
/* Errors: SDLF_ERROR_ARGUMENT (a plan without loss scaling; impossible values). */
sdlf_status sdlf_plan_set_loss_scale(sdlf_plan *plan, const sdlf_loss_scale *scale);

/* Sums over the plan's first softmax_cross_entropy layer since they were last cleared. */
typedef struct sdlf_metrics {
    double loss_sum; /* of the samples' losses */
    double correct;
    double samples;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_metrics;
sdlf_status sdlf_plan_metrics(sdlf_plan *plan, sdlf_metrics *metrics);
sdlf_status sdlf_plan_clear_metrics(sdlf_plan *plan);

/* The metrics of a plan with a feed, without stalling its device: sdlf_plan_mark requests them as of the end of all
 * that is queued so far; sdlf_plan_wait_mark waits for the oldest mark and returns its metrics, while the device
 * continues with steps that were queued after it. sdlf_plan_mark_passed returns without waiting whether the oldest mark
 * has passed, so that waiting for it would take no time. Up to SDLF_PLAN_MARKS marks may be pending. */
enum { SDLF_PLAN_MARKS = 8 };
sdlf_status sdlf_plan_mark(sdlf_plan *plan);
sdlf_status sdlf_plan_mark_passed(const sdlf_plan *plan, bool *passed);
sdlf_status sdlf_plan_wait_mark(sdlf_plan *plan, sdlf_metrics *metrics);

sdlf_status sdlf_plan_synchronize(sdlf_plan *plan);

/* Copies parameters (and optimizer states) that are kept outside the host's memory back to the model (store), or the
 * model's values to them (load). A plan for inference may hold weights in other forms (batch normalisation folded in,
 * prepacked for its kernels) in the host's memory too. After training, therefore, store from the plan that has trained,
 * then load into those for inference. sdlf_plan_forward returns SDLF_ERROR_ARGUMENT if the plan's weights are out of
 * date. This is detected if plans, weights files or sdlf_plan_store_parameters have changed parameters; after writing
 * the model's values directly, call sdlf_plan_load_parameters. */
sdlf_status sdlf_plan_store_parameters(sdlf_plan *plan);
sdlf_status sdlf_plan_load_parameters(sdlf_plan *plan);

/* True if a plan for inference has up-to-date weights, so that it may run. Always true if it reads the model's own. */
bool sdlf_plan_is_current(const sdlf_plan *plan);

/* With keep_activations: a layer's output, or the gradient with respect to it, by the layer's name. */
sdlf_status sdlf_plan_activation(sdlf_plan *plan, const char *layer, bool gradient, sdlf_binding *binding);

/* With gradients_only: the gradient with respect to a parameter, by the parameter's full name. */
sdlf_status sdlf_plan_gradient(sdlf_plan *plan, const char *parameter, sdlf_binding *binding);

#ifdef __cplusplus
}
#endif
#endif
