/* SPDX-License-Identifier: MIT */
/* Weights of integers, found and worked out. See integer_weights.h. */
#include "framework/plan/integer_weights.h"

#include <math.h>
#include <string.h>

#include "framework/plan/passes.h"

/* To the nearest; ties do not matter, and numbers are small. */
static inline double nearest(double x)
{
    const double whole = 6755399441055744; /* 1.5 2^52: behind it there are no bits below 1 */
    return x + whole - whole;
}

/* Is each weight an integer of [-128, 127] times the scale, but for `error` of its size? 0: exactly so, rounded to
 * float32. */
static bool are_multiples(const float *weight, int64_t count, int64_t step, double scale, double error)
{
    enum { BLOCK = 64 }; /* weights that are looked at before it ends early: a loop that never does goes in vectors */
    double inverse = 1 / scale;
    bool all = true;
    for (int64_t first = 0; first < count && all; first += BLOCK) {
        int64_t last = first + BLOCK < count ? first + BLOCK : count, wrong = 0;
        for (int64_t i = first; i < last; i++) {
            double given = (double)weight[i * step], whole = nearest(given * inverse), product = whole * scale;
            bool near = fabs(product - given) <= error * fabs(given), same = (float)product == (float)given;
            wrong += !((error > 0 ? near : same) & (whole >= -128) & (whole <= 127));
        }
        all = wrong == 0;
    }
    return all;
}

static inline double larger(double a, double b)
{
    return b > a ? b : a;
}

static double largest_size(const float *weight, int64_t count, int64_t step)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++) largest = larger(largest, fabs((double)weight[i * step]));
    return largest;
}

/* The scale is within a few roundings of the one that weights were made with. Each product says between which numbers
 * that lies, half a unit of its last place to either side; together they leave few of float32. */
static double refine(const float *weight, int64_t count, int64_t step, double scale)
{
    double low = 0, high = HUGE_VAL, inverse = 1 / scale;
    for (int64_t i = 0; i < count; i++) {
        float product = fabsf(weight[i * step]), next;
        double whole = nearest((double)product * inverse);
        if (whole < 1) continue;
        uint32_t bits;
        memcpy(&bits, &product, sizeof bits);
        bits++; /* the next larger one */
        memcpy(&next, &bits, sizeof next);
        double half = ((double)next - (double)product) / 2;
        low = larger(low, ((double)product - half) / whole);
        high = -larger(-high, -((double)product + half) / whole);
    }
    double found = (double)(float)((low + high) / 2);
    return high < HUGE_VAL && found >= low && found <= high ? found : scale;
}

bool plan_find_scale(const float *weight, int64_t count, int64_t step, double *scale)
{
    const double error = 4e-7; /* three roundings: of the product, of the scale as it is found, of the inverse */
    if (*scale > 0 && are_multiples(weight, count, step, *scale, 0)) return true;
    double largest = largest_size(weight, count, step);
    if (!(largest < 3e38)) return false;
    if (largest == 0 || are_multiples(weight, count, step, 1, 0)) {
        *scale = 1;
        return true;
    }
    for (int whole = 128; whole > 0; whole--) {
        double found = (double)(float)(largest / whole);
        if (found <= 0 || !are_multiples(weight, count, step, found, error)) continue;
        *scale = refine(weight, count, step, found);
        return true;
    }
    return false;
}

bool plan_find_largest_scale(const float *weight, int64_t count, double *scale, int *low, int *high)
{
    const double error = 4e-7;
    double largest = largest_size(weight, count, 1);
    *scale = 1;
    *low = *high = 0;
    if (!(largest < 3e38)) return false;
    for (int whole = 1; whole <= 128 && largest > 0; whole++) {
        double found = (double)(float)(largest / whole);
        if (found <= 0 || !are_multiples(weight, count, 1, found, error)) continue;
        *scale = refine(weight, count, 1, found);
        for (int64_t i = 0; i < count; i++) {
            int integer = (int)nearest((double)weight[i] / *scale);
            if (integer < *low) *low = integer;
            if (integer > *high) *high = integer;
        }
        return true;
    }
    return largest == 0;
}

static sdlf_status scale_of(const sdlf_plan *plan, const plan_integers *w, int64_t k, double *scale)
{
    *scale = (double)w->scale[k];
    const sdlf_parameter *parameter = &plan->model->parameters[w->weight];
    const float *weight = (const float *)parameter->value.data + (w->transposed ? k : k * w->each);
    if (plan_find_scale(weight, w->each, w->transposed ? w->filters : 1, scale)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT,
                     "parameter %s: its filter %lld is no multiple of small integers any more; make the plan anew",
                     parameter->name, (long long)k);
}

static sdlf_status load_filter(sdlf_plan *plan, const plan_integers *w, int buffer, int64_t k, double scale)
{
    enum { PIECE = 4096 };
    int8_t piece[PIECE];
    const float *weight = plan->model->parameters[w->weight].value.data;
    int64_t step = w->transposed ? w->filters : 1;
    sdlf_status status = SDLF_OK;
    weight += w->transposed ? k : k * w->each;
    for (int64_t first = 0; first < w->each && status == SDLF_OK; first += PIECE) {
        int64_t count = w->each - first < PIECE ? w->each - first : PIECE;
        for (int64_t i = 0; i < count; i++) piece[i] = (int8_t)nearest((double)weight[(first + i) * step] / scale);
        status = plan_upload(plan, buffer, k * w->each + first, piece, count);
    }
    return status;
}

/* The sum that the bias of filter k adds. */
static int32_t bias_sum(const sdlf_plan *plan, const plan_integers *w, int64_t k, double scale)
{
    double sum =
        rint((double)((const float *)plan->model->parameters[w->bias].value.data)[k] / ((double)w->x_scale * scale));
    return sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : (int32_t)sum;
}

static float multiplier_of(const sdlf_plan *plan, const plan_integers *w, int64_t k, double scale)
{
    const float *factors = w->factors >= 0 ? plan->model->parameters[w->factors].value.data : NULL;
    float multiplier = w->x_scale * (float)scale;
    multiplier = multiplier / w->y_scale;
    return multiplier * (factors != NULL ? factors[k] : w->factor);
}

sdlf_status plan_load_integers(sdlf_plan *plan, int buffer)
{
    const plan_integers *w = &plan->integers[plan->buffers[buffer].integers - 1];
    int needed[PLAN_FOLDED], source = plan->buffers[buffer].source;
    double scale;
    sdlf_status status = SDLF_OK;
    for (int i = plan_source_parameters(plan, &plan->buffers[buffer], needed) - 1; i >= 0 && status == SDLF_OK; i--)
        status = model_fetch_values(plan->model, needed[i]);
    for (int64_t k = 0; k < w->filters && status == SDLF_OK; k++) {
        status = scale_of(plan, w, k, &scale);
        if (status != SDLF_OK) break;
        if (source == w->integers) {
            status = load_filter(plan, w, buffer, k, scale);
        } else if (source == w->multipliers) {
            float multiplier = multiplier_of(plan, w, k, scale);
            status = plan_upload(plan, buffer, k * (int64_t)sizeof multiplier, &multiplier, sizeof multiplier);
        } else {
            int32_t sum = bias_sum(plan, w, k, scale);
            status = plan_upload(plan, buffer, k * (int64_t)sizeof sum, &sum, sizeof sum);
        }
    }
    return status;
}
