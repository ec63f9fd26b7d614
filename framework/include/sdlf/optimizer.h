/* SPDX-License-Identifier: MIT */
/* Optimizers and learning-rate schedules: small values, made by calls that read like sdlf_sgd(.momentum = 0.9).
 *
 * Threads: values: all functions may be called from any thread.
 * Ownership: nothing is allocated; names are the library's.
 * Errors: members out of range are reported by what takes the value: sdlf_plan_create, sdlf_trainer_create. */
#ifndef SDLF_OPTIMIZER_H
#define SDLF_OPTIMIZER_H

#include <sdlf/layer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- optimizers ---- */

/* Weight decay pulls weights towards zero, and leaves out biases, scales and shifts of normalisations, and what a layer
 * wants left out (sdlf_parameter_spec.decay), unless decay_all is set: then every parameter decays, as with PyTorch's
 * optimizers.
 *
 * Numbers are doubles: of 0.99 as a float, 1 - 0.99 is off by 1e-6 of itself, which a plan in float64 shows, and
 * RMSprop's first steps enlarge. */
typedef struct sdlf_sgd_options {
    double momentum; /* in [0, 1); default 0: none */
    bool nesterov;
    double weight_decay; /* default 0 */
    bool decay_all;
    void *reserved[4]; /* zero: room for members to come */
} sdlf_sgd_options;

typedef struct sdlf_adam_options {
    double beta1;        /* default 0.9 */
    double beta2;        /* default 0.999 */
    double epsilon;      /* default 1e-8 */
    double weight_decay; /* default 0; adam adds it to the gradient, adamw shrinks the weights by it */
    bool decay_all;
    void *reserved[4]; /* zero: room for members to come */
} sdlf_adam_options;

typedef struct sdlf_rmsprop_options {
    double rho;      /* default 0.99 */
    double epsilon;  /* default 1e-8 */
    double momentum; /* default 0 */
    double weight_decay;
    bool decay_all;
    void *reserved[4]; /* zero: room for members to come */
} sdlf_rmsprop_options;

/* Muon (https://kellerjordan.github.io/posts/muon): matrices, and convolutions' weights as (K, C R S), go along the
 * orthogonal matrix nearest to their momentum, found by 5 steps of Newton and Schulz; all other parameters follow sgd
 * with Nesterov's momentum. */
typedef struct sdlf_muon_options {
    double momentum;     /* default 0.95 */
    double weight_decay; /* of matrices apart from the gradient: the weights shrink by rate times this */
    bool decay_all;
    double rest_momentum; /* of the parameters that follow sgd; default: momentum */
    int newton_schulz;    /* steps of Newton and Schulz; default 5 */
    /* Only convolutions' weights are made orthogonal; matrices of fully connected layers follow sgd. */
    bool filters_only;
    bool unit_filters; /* before each step the weights of K rows are scaled to norm sqrt(K) */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_muon_options;

/* LARS (https://arxiv.org/abs/1708.03888): sgd whose rate is multiplied, for each parameter that decays, by trust |w| /
 * (|g| + weight_decay |w|). Norms below 1e-3 count as 1e-3. */
typedef struct sdlf_lars_options {
    double momentum; /* default 0.9 */
    double trust;    /* default 0.001 */
    double weight_decay;
    bool decay_all;
    void *reserved[4]; /* zero: room for members to come */
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
        unsigned char bytes[128]; /* more than any has, so that options can grow */
    } options;
} sdlf_optimizer;

/* What a plan makes of an update beside the one operation, from operations that every calculator has. */
typedef enum sdlf_update_form {
    SDLF_UPDATE_PLAIN = 0,
    SDLF_UPDATE_ORTHOGONAL, /* of matrices (two axes or more): muon's, instead of the operation */
    SDLF_UPDATE_TRUST,      /* of parameters that decay: with lars' rate */
} sdlf_update_form;

struct sdlf_optimizer_class {
    const char *name;         /* "sgd" */
    const char *summary;      /* one line */
    const sdlf_field *fields; /* of the options member */
    float learning_rate;      /* a sensible peak rate where the user gives none, see sdlf_optimizer_rate */
    int64_t full_batch;       /* the smallest batch for that rate; 0: any */

    /* State tensors that it keeps for each parameter (0 to 3), given its options. */
    int (*state_count)(const sdlf_optimizer *optimizer);

    /* Fill in kind and options of the update of one parameter; operands are bound by the plan in this order:
     * in: g, rate, scale?, step (where the kind has it); out: w, state[0], ... `decay` says whether weight decay
     * applies to this parameter by its spec. */
    void (*update)(const sdlf_optimizer *optimizer, bool decay, sdlf_operation *operation);
    sdlf_update_form form;
    void *reserved[4]; /* zero: room for members to come */
};

sdlf_optimizer sdlf_sgd_make(sdlf_sgd_options options);
sdlf_optimizer sdlf_adam_make(sdlf_adam_options options);
sdlf_optimizer sdlf_adamw_make(sdlf_adam_options options);
sdlf_optimizer sdlf_rmsprop_make(sdlf_rmsprop_options options);
sdlf_optimizer sdlf_muon_make(sdlf_muon_options options);
sdlf_optimizer sdlf_lars_make(sdlf_lars_options options);

/* The designated initialisers of the options: sdlf_sgd(.momentum = 0.9); sdlf_adam(.beta1 = 0.9) (at least one). In C++
 * they are so from C++20 on, in the order of the members; before, there can be none. */
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

/* A sensible peak rate for batches of that size: the class's learning_rate, less in proportion where the batch is
 * smaller than full_batch. A gradient over fewer samples is noisier, and descent that takes it as it is must go in
 * smaller steps: sgd's 0.05 from 64 samples on is 0.0125 at 16. Optimizers that divide by the gradient's own size need
 * no such rule. */
float sdlf_optimizer_rate(const sdlf_optimizer *optimizer, int64_t batch);

/* Are the options inside their ranges? Fills defaults in. SDLF_ERROR_ARGUMENT names the option. */
sdlf_status sdlf_optimizer_complete(sdlf_optimizer *optimizer);

/* ---- schedules: the learning rate as a function of the step ---- */

typedef enum sdlf_schedule_kind {
    SDLF_SCHEDULE_CONSTANT = 0,
    SDLF_SCHEDULE_STEP,      /* peak gamma^floor(epoch / every) */
    SDLF_SCHEDULE_COSINE,    /* from peak to final along half a cosine */
    SDLF_SCHEDULE_ONE_CYCLE, /* up from peak / start_divisor to peak over `warmup` of the steps, then down to
                                peak / final_divisor, both along half cosines */
    SDLF_SCHEDULE_LINEAR,    /* from peak to final along a line */
    SDLF_SCHEDULE_COUNT
} sdlf_schedule_kind;

typedef struct sdlf_schedule {
    sdlf_schedule_kind kind;
    float peak;   /* the highest rate; 0: the optimizer's own suggestion, sdlf_optimizer_rate */
    float final;  /* cosine, linear: the last rate; default 0 */
    float warmup; /* linear warm-up from 0 over this part of all steps, in [0, 1); one_cycle: its rise, default 0.3 */
    float gamma;  /* step: default 0.1 */
    int every;    /* step: epochs between drops; default 1 */
    float start_divisor; /* one_cycle: default 25 */
    float final_divisor; /* one_cycle: default 1e4 */
} sdlf_schedule;

/* sdlf_one_cycle(.peak = 0.05f); as with optimizers, C++ has initialisers from C++20 on. */
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

/* Fill defaults in and check ranges. SDLF_ERROR_ARGUMENT names the member. */
sdlf_status sdlf_schedule_complete(sdlf_schedule *schedule);

/* The rate for step `step` (from 0) of `total`, with `steps_per_epoch`. The schedule is complete. */
float sdlf_schedule_rate(const sdlf_schedule *schedule, int64_t step, int64_t total, int64_t steps_per_epoch);

#ifdef __cplusplus
}
#endif
#endif
