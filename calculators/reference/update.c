/* SPDX-License-Identifier: MIT */
/* Optimizer updates of a parameter w by its gradient g. `rate` is the learning rate; if scale is present, g is first
 * multiplied by scale[0], and if that is 0 the step is skipped. */
#include "calculators/reference/reference.h"

#include <math.h>

/* g[e], scaled, plus decay w[e]. */
static double gradient(const sdlf_operation *operation, int64_t e, double decay)
{
    const sdlf_tensor *scale = &operation->in[2];
    double factor = sdlf_tensor_present(scale) ? get(scale, 0) : 1;
    return factor * get(&operation->in[0], e) + decay * get(&operation->out[0], e);
}

static bool is_skipped(const sdlf_operation *operation)
{
    return sdlf_tensor_present(&operation->in[2]) && get(&operation->in[2], 0) == 0;
}

/* v = momentum v + g;  w -= rate (nesterov ? g + momentum v : v);  without v: w -= rate g */
void sgd_follow_reference(const sdlf_sgd_rule *rule, double rate, const sdlf_tensor *w, const sdlf_tensor *v, int64_t e,
                          double g)
{
    double step = g, momentum = (double)rule->momentum;
    if (sdlf_tensor_present(v)) {
        double velocity = momentum * get(v, e) + g;
        put(v, e, velocity);
        step = rule->nesterov ? g + momentum * velocity : velocity;
    }
    put(w, e, get(w, e) - rate * step);
}

sdlf_status sgd_update_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    if (is_skipped(operation)) return SDLF_OK;
    const sdlf_tensor *w = &operation->out[0];
    double rate = get(&operation->in[1], 0);
    int64_t count = sdlf_tensor_count(w);
    for (int64_t e = 0; e < count; e++)
        sgd_follow_reference(&operation->sgd, rate, w, &operation->out[1], e,
                             gradient(operation, e, (double)operation->sgd.decay));
    return SDLF_OK;
}

/* m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  t = step + 1
 * w -= rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
 * The decay is part of g, or (decoupled) w -= rate decay w comes first. */
sdlf_status adam_update_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    if (is_skipped(operation)) return SDLF_OK;
    const sdlf_tensor *w = &operation->out[0], *m = &operation->out[1], *v = &operation->out[2];
    double rate = get(&operation->in[1], 0), t = (double)*(const int64_t *)operation->in[3].data + 1;
    double beta1 = operation->adam.beta1, beta2 = operation->adam.beta2;
    double correction1 = 1 - pow(beta1, t), correction2 = 1 - pow(beta2, t), decay = operation->adam.decay;
    bool decoupled = operation->adam.decoupled;
    int64_t count = sdlf_tensor_count(w);
    for (int64_t e = 0; e < count; e++) {
        double g = gradient(operation, e, decoupled ? 0 : decay);
        double weight = decoupled ? get(w, e) - rate * decay * get(w, e) : get(w, e);
        double first = beta1 * get(m, e) + (1 - beta1) * g, second = beta2 * get(v, e) + (1 - beta2) * g * g;
        put(m, e, first);
        put(v, e, second);
        double root = sqrt(second / correction2) + operation->adam.epsilon;
        put(w, e, weight - rate * (first / correction1) / root);
    }
    return SDLF_OK;
}

/* v = rho v + (1 - rho) g^2;  u = g / (sqrt(v) + epsilon);  b = momentum b + u;  w -= rate (b or u) */
sdlf_status rmsprop_update_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    if (is_skipped(operation)) return SDLF_OK;
    const sdlf_tensor *w = &operation->out[0], *v = &operation->out[1], *b = &operation->out[2];
    double rate = get(&operation->in[1], 0), rho = operation->rmsprop.rho;
    int64_t count = sdlf_tensor_count(w);
    for (int64_t e = 0; e < count; e++) {
        double g = gradient(operation, e, operation->rmsprop.decay);
        double square = rho * get(v, e) + (1 - rho) * g * g;
        double step = g / (sqrt(square) + operation->rmsprop.epsilon);
        put(v, e, square);
        if (sdlf_tensor_present(b)) {
            step = operation->rmsprop.momentum * get(b, e) + step;
            put(b, e, step);
        }
        put(w, e, get(w, e) - rate * step);
    }
    return SDLF_OK;
}

/* scale = factor min(1, max_norm / (factor sqrt(sum of squares) + 1e-6)), without a factor 1; NaN stays NaN */
sdlf_status clip_scale_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *squares = &operation->in[0];
    int64_t count = sdlf_tensor_count(squares);
    double sum = 0, factor = sdlf_tensor_present(&operation->in[1]) ? get(&operation->in[1], 0) : 1;
    for (int64_t e = 0; e < count; e++) sum += get(squares, e);
    double scale = (double)operation->clip.max_norm / (factor * sqrt(sum) + 1e-6);
    put(&operation->out[0], 0, factor == 0 ? 0 : factor * (scale > 1 ? 1 : scale));
    return SDLF_OK;
}

sdlf_status check_finite_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    int64_t count = sdlf_tensor_count(&operation->in[0]);
    for (int64_t e = 0; e < count; e++)
        if (!isfinite(get(&operation->in[0], e))) put(&operation->out[0], 0, 1);
    return SDLF_OK;
}

/* state is (scale, good, skipped). */
sdlf_status loss_scale_update_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    enum { SCALE, GOOD, SKIPPED };
    const sdlf_loss_scale_rule *rule = &operation->loss_scale;
    const sdlf_tensor *state = &operation->out[0];
    const double largest = 0x1p64, smallest = 0x1p-64;
    double scale = get(state, SCALE), good = get(state, GOOD) + 1, skipped = get(state, SKIPPED);
    bool found = get(&operation->in[0], 0) != 0;
    put(&operation->out[1], 0, found ? 0 : 1 / scale);
    if (found) {
        good = 0;
        skipped++;
        if (rule->interval > 0) scale = fmax((double)rule->backoff * scale, smallest);
    } else if (rule->interval > 0 && good >= rule->interval) {
        good = 0;
        if ((double)rule->growth * scale <= largest) scale *= (double)rule->growth;
    }
    put(state, SCALE, scale);
    put(state, GOOD, good);
    put(state, SKIPPED, skipped);
    *(int64_t *)operation->out[2].data = *(const int64_t *)operation->in[1].data - (int64_t)skipped;
    return SDLF_OK;
}
