/* SPDX-License-Identifier: MIT */
/* Optimizers and learning-rate schedules: small values, written like sdlf_sgd(.momentum = 0.9).
 *
 * Threads: optimizers and schedules are values; all functions may be called from any thread.
 * Ownership: nothing is allocated; names belong to the library.
 * Errors: members out of range are reported where the value is used: sdlf_plan_create, sdlf_trainer_create. */
#ifndef SDLF_OPTIMIZER_H
#define SDLF_OPTIMIZER_H

#include <sdlf/layer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- optimizers ---- */

/* Weight decay pulls weights towards zero. It does not apply to biases, to scales and shifts of normalisations, or to
 * what a layer excludes (sdlf_parameter_spec.decay), unless decay_all is set: then every parameter decays, as with
 * PyTorch's optimizers.
 *
 * Options are doubles: with 0.99 as a float, 1 - 0.99 has a relative error of 1e-6, which is visible in a float64 plan
 * and which RMSprop's first steps amplify. */
typedef struct sdlf_sgd_options {
    double momentum; /* in [0, 1); default 0: none */
    bool nesterov;
    double weight_decay; /* default 0 */
    bool decay_all;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_sgd_options;

typedef struct sdlf_adam_options {
    double beta1;        /* default 0.9 */
    double beta2;        /* default 0.999 */
    double epsilon;      /* default 1e-8 */
    double weight_decay; /* default 0; adam adds it to the gradient, adamw shrinks the weights by it */
    bool decay_all;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_adam_options;

typedef struct sdlf_rmsprop_options {
    double rho;      /* default 0.99 */
    double epsilon;  /* default 1e-8 */
    double momentum; /* default 0 */
    double weight_decay;
    bool decay_all;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_rmsprop_options;

/* Muon (https://kellerjordan.github.io/posts/muon): matrices, and weights of convolutions as (K, C R S), are updated
 * with the orthogonal matrix nearest to their momentum, which 5 Newton-Schulz iterations approximate; all other
 * parameters follow sgd with Nesterov momentum. */
typedef struct sdlf_muon_options {
    double momentum;     /* default 0.95 */
    double weight_decay; /* of matrices, decoupled: the weights are reduced by the rate times this */
    bool decay_all;
    double rest_momentum; /* of the parameters that follow sgd; default: momentum */
    int newton_schulz;    /* Newton-Schulz iterations; default 5 */
    /* Orthogonalise only weights of convolutions; matrices of fully connected layers follow sgd. */
    bool filters_only;
    bool unit_filters; /* before each step, scale a weight matrix of K rows to norm sqrt(K) */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_muon_options;

/* LARS (https://arxiv.org/abs/1708.03888): sgd whose rate is multiplied, for each parameter that decays, by trust |w| /
 * (|g| + weight_decay |w|). Norms below 1e-3 count as 1e-3. */
typedef struct sdlf_lars_options {
    double momentum; /* default 0.9 */
    double trust;    /* default 0.001 */
    double weight_decay;
    bool decay_all;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_lars_options;

typedef struct sdlf_optimizer_class sdlf_optimizer_class;

/* A zeroed sdlf_optimizer is plain sgd. */
typedef struct sdlf_optimizer {
    const sdlf_optimizer_class *type;
    union {
        sdlf_sgd_options sgd;
        sdlf_adam_options adam;
        sdlf_rmsprop_options rmsprop;
        sdlf_muon_options muon;
        sdlf_lars_options lars;
        unsigned char bytes[128]; /* larger than any member, so that options can grow */
    } options;
} sdlf_optimizer;

/* What a plan builds an update from, other than the class's one operation; every calculator has the operations used. */
typedef enum sdlf_update_form {
    SDLF_UPDATE_PLAIN = 0,
    SDLF_UPDATE_ORTHOGONAL, /* matrices (two axes or more): muon's update in place of the operation */
    SDLF_UPDATE_TRUST,      /* parameters that decay: with the rate of lars */
} sdlf_update_form;

struct sdlf_optimizer_class {
    const char *name;         /* "sgd" */
    const char *summary;      /* one line */
    const sdlf_field *fields; /* of the options member */
    float learning_rate;      /* a reasonable peak rate if the user gives none, see sdlf_optimizer_rate */
    int64_t full_batch;       /* the smallest batch for which that rate is meant; 0: any */

    /* The number of state tensors per parameter (0 to 3), given the options. */
    int (*state_count)(const sdlf_optimizer *optimizer);

    /* Fills in kind and options of the operation that updates one parameter. The plan binds the operands in this order:
     * in: g, rate, scale?, step (if the kind has it); out: w, state[0], ... `decay` says whether the parameter's spec
     * allows weight decay. */
    void (*update)(const sdlf_optimizer *optimizer, bool decay, sdlf_operation *operation);
    sdlf_update_form form;
    void *reserved[4]; /* zero; reserved for new members */
};

sdlf_optimizer sdlf_sgd_make(sdlf_sgd_options options);
sdlf_optimizer sdlf_adam_make(sdlf_adam_options options);
sdlf_optimizer sdlf_adamw_make(sdlf_adam_options options);
sdlf_optimizer sdlf_rmsprop_make(sdlf_rmsprop_options options);
sdlf_optimizer sdlf_muon_make(sdlf_muon_options options);
sdlf_optimizer sdlf_lars_make(sdlf_lars_options options);

/* With the options as designated initialisers: sdlf_sgd(.momentum = 0.9); sdlf_adam(.beta1 = 0.9) (at least one). C++
 * has them from C++20 on, in the order of the members; with earlier standards the parentheses stay empty. */
#ifdef __cplusplus
#define sdlf_sgd(...)     sdlf_sgd_make(sdlf_sgd_options{__VA_ARGS__})
#define sdlf_adam(...)    sdlf_adam_make(sdlf_adam_options{__VA_ARGS__})
#define sdlf_adamw(...)   sdlf_adamw_make(sdlf_adam_options{__VA_ARGS__})
#define sdlf_rmsprop(...) sdlf_rmsprop_make(sdlf_rmsprop_options{__VA_ARGS__})
#define sdlf_muon(...)    sdlf_muon_make(sdlf_muon_options{__VA_ARGS__})
#define sdlf_lars(...)    sdlf_lars_make(sdlf_lars_options{__VA_ARGS__})
#else
#define sdlf_sgd(...)     sdlf_sgd_make((sdlf_sgd_options){__VA_ARGS__})
#define sdlf_adam(...)    sdlf_adam_make((sdlf_adam_options){__VA_ARGS__})
#define sdlf_adamw(...)   sdlf_adamw_make((sdlf_adam_options){__VA_ARGS__})
#define sdlf_rmsprop(...) sdlf_rmsprop_make((sdlf_rmsprop_options){__VA_ARGS__})
#define sdlf_muon(...)    sdlf_muon_make((sdlf_muon_options){__VA_ARGS__})
#define sdlf_lars(...)    sdlf_lars_make((sdlf_lars_options){__VA_ARGS__})
#endif

const sdlf_optimizer_class *sdlf_optimizer_class_at(int index);
const sdlf_optimizer_class *sdlf_optimizer_class_find(const char *name);

/* A reasonable peak rate for batches of that size: the class's learning_rate, reduced in proportion if the batch is
 * smaller than full_batch. A gradient over fewer samples is noisier, and plain gradient descent then needs smaller
 * steps: for sgd, 0.05 from 64 samples on becomes 0.0125 at 16. Optimizers that normalise the gradient by its magnitude
 * do not need this. */
float sdlf_optimizer_rate(const sdlf_optimizer *optimizer, int64_t batch);

/* Fills in defaults and checks ranges. SDLF_ERROR_ARGUMENT names the option. */
sdlf_status sdlf_optimizer_complete(sdlf_optimizer *optimizer);

/* ---- schedules: the learning rate as a function of the step ---- */

typedef enum sdlf_schedule_kind {
    SDLF_SCHEDULE_CONSTANT = 0,
    SDLF_SCHEDULE_STEP,      /* peak gamma^floor(epoch / every) */
    SDLF_SCHEDULE_COSINE,    /* from peak to final along half a cosine */
    SDLF_SCHEDULE_ONE_CYCLE, /* from peak / start_divisor up to peak over `warmup` of the steps, then down to
                                peak / final_divisor, both along half cosines */
    SDLF_SCHEDULE_LINEAR,    /* from peak to final, linearly */
    SDLF_SCHEDULE_COUNT
} sdlf_schedule_kind;

typedef struct sdlf_schedule {
    sdlf_schedule_kind kind;
    float peak;   /* the highest rate; 0: the one suggested by sdlf_optimizer_rate */
    float final;  /* cosine, linear: the last rate; default 0 */
    float warmup; /* linear warm-up from 0 over this part of all steps, in [0, 1); one_cycle: its rise, default 0.3 */
    float gamma;  /* step: default 0.1 */
    int every;    /* step: epochs between drops; default 1 */
    float start_divisor; /* one_cycle: default 25 */
    float final_divisor; /* one_cycle: default 1e4 */
} sdlf_schedule;

/* sdlf_one_cycle(.peak = 0.05f); as for optimizers, C++ has initialisers from C++20 on. */
#ifdef __cplusplus
inline sdlf_schedule sdlf_schedule_of(sdlf_schedule_kind kind, sdlf_schedule schedule)
{
    schedule.kind = kind;
    return schedule;
}
#define sdlf_constant(...)   sdlf_schedule_of(SDLF_SCHEDULE_CONSTANT, sdlf_schedule{__VA_ARGS__})
#define sdlf_step_decay(...) sdlf_schedule_of(SDLF_SCHEDULE_STEP, sdlf_schedule{__VA_ARGS__})
#define sdlf_cosine(...)     sdlf_schedule_of(SDLF_SCHEDULE_COSINE, sdlf_schedule{__VA_ARGS__})
#define sdlf_one_cycle(...)  sdlf_schedule_of(SDLF_SCHEDULE_ONE_CYCLE, sdlf_schedule{__VA_ARGS__})
#define sdlf_linear(...)     sdlf_schedule_of(SDLF_SCHEDULE_LINEAR, sdlf_schedule{__VA_ARGS__})
#else
#define sdlf_constant(...)   ((sdlf_schedule){.kind = SDLF_SCHEDULE_CONSTANT, __VA_ARGS__})
#define sdlf_step_decay(...) ((sdlf_schedule){.kind = SDLF_SCHEDULE_STEP, __VA_ARGS__})
#define sdlf_cosine(...)     ((sdlf_schedule){.kind = SDLF_SCHEDULE_COSINE, __VA_ARGS__})
#define sdlf_one_cycle(...)  ((sdlf_schedule){.kind = SDLF_SCHEDULE_ONE_CYCLE, __VA_ARGS__})
#define sdlf_linear(...)     ((sdlf_schedule){.kind = SDLF_SCHEDULE_LINEAR, __VA_ARGS__})
#endif

/* Names in the order of the kinds, NULL-terminated. */
extern const char *const sdlf_schedule_names[];

/* Fills in defaults and checks ranges. SDLF_ERROR_ARGUMENT names the member. */
sdlf_status sdlf_schedule_complete(sdlf_schedule *schedule);

/* The rate for step `step` (from 0) of `total`, with `steps_per_epoch`. The schedule must be complete. */
float sdlf_schedule_rate(const sdlf_schedule *schedule, int64_t step, int64_t total, int64_t steps_per_epoch);

#ifdef __cplusplus
}
#endif
#endif
