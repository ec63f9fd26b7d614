/* SPDX-License-Identifier: MIT */
/* Integer weights: detection and computation. See integer_weights.h. */
#include "framework/plan/integer_weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framework/plan/passes.h"

/* Rounds to nearest; ties do not matter, and values are small. */
static inline double nearest(double x)
{
    const double whole = 6755399441055744; /* 1.5 2^52: at this magnitude there are no bits below 1 */
    return x + whole - whole;
}

/* True if each weight is an integer of [-128, 127] times the scale, to within a relative `error`. 0: exactly, after
 * rounding to float32. */
static bool are_multiples(const float *weight, int64_t count, double scale, double error)
{
    enum { BLOCK = 64 }; /* weights tested between early exits: the loop over a block vectorises */
    double inverse = 1 / scale;
    bool all = true;
    for (int64_t first = 0; first < count && all; first += BLOCK) {
        int64_t last = first + BLOCK < count ? first + BLOCK : count, wrong = 0;
        for (int64_t i = first; i < last; i++) {
            double given = (double)weight[i], whole = nearest(given * inverse), product = whole * scale;
            bool near = fabs(product - given) <= error * fabs(given), same = (float)product == (float)given;
            wrong += !((error > 0 ? near : same) & (whole >= -128) & (whole <= 127));
        }
        all = wrong == 0;
    }
    return all;
}

/* The same, exactly, for a float32 scale: products of a small integer and the scale round to the given weights. */
static bool are_products(const float *weight, int64_t count, float scale)
{
    enum { BLOCK = 64 };
    const float whole_only = 12582912, inverse = 1 / scale; /* 1.5 2^23: at this magnitude there are no bits below 1 */
    bool all = scale > 0 && inverse < HUGE_VALF;
    for (int64_t first = 0; first < count && all; first += BLOCK) {
        int64_t last = first + BLOCK < count ? first + BLOCK : count;
        int wrong = 0;
        for (int64_t i = first; i < last; i++) {
            float given = weight[i], whole = given * inverse + whole_only - whole_only;
            wrong |= (whole * scale != given) | (whole < -128) | (whole > 127);
        }
        all = wrong == 0;
    }
    return all;
}

/* Tries the usual case of per-filter scales, where the largest weight is 127 or 128 times the scale: the result is off
 * by at most one unit in the last place. */
static bool find_usual_scale(const float *weight, int64_t count, float largest, double *scale)
{
    for (int whole = 127; whole <= 128; whole++) {
        float middle = largest / (float)whole, tried[] = {middle, nextafterf(middle, 0), nextafterf(middle, largest)};
        for (int i = 0; i < 3; i++) {
            *scale = (double)tried[i];
            if (are_products(weight, count, tried[i])) return true;
        }
    }
    return false;
}

static inline double larger(double a, double b)
{
    return b > a ? b : a;
}

static double largest_size(const float *weight, int64_t count)
{
    enum { LANES = 8 }; /* independent lanes, as a single one would serialise the comparisons */
    float largest[LANES] = {0};
    for (int64_t i = 0; i < count; i++) {
        float size = fabsf(weight[i]);
        largest[i % LANES] = size > largest[i % LANES] ? size : largest[i % LANES];
    }
    for (int lane = 1; lane < LANES; lane++) largest[0] = largest[lane] > largest[0] ? largest[lane] : largest[0];
    return (double)largest[0];
}

/* The scale is within a few roundings of the original one. Each product bounds it to an interval of half a unit in the
 * last place to either side; their intersection leaves few float32 values. */
static double refine(const float *weight, int64_t count, double scale)
{
    double low = 0, high = HUGE_VAL, inverse = 1 / scale;
    for (int64_t i = 0; i < count; i++) {
        float product = fabsf(weight[i]), next;
        double whole = nearest((double)product * inverse);
        if (whole < 1) continue;
        uint32_t bits;
        memcpy(&bits, &product, sizeof bits);
        bits++; /* the next larger value */
        memcpy(&next, &bits, sizeof next);
        double half = ((double)next - (double)product) / 2;
        low = larger(low, ((double)product - half) / whole);
        high = -larger(-high, -((double)product + half) / whole);
    }
    double found = (double)(float)((low + high) / 2);
    return high < HUGE_VAL && found >= low && found <= high ? found : scale;
}

bool plan_find_scale(const float *weight, int64_t count, double *scale)
{
    const double error = 4e-7; /* three roundings: of the product, of the estimated scale, of the inverse */
    if (*scale > 0 && (double)(float)*scale == *scale && are_products(weight, count, (float)*scale)) return true;
    if (*scale > 0 && are_multiples(weight, count, *scale, 0)) return true;
    double largest = largest_size(weight, count);
    if (!(largest < 3e38)) return false;
    if (are_multiples(weight, count, 1, 0)) {
        *scale = 1;
        return true;
    }
    if (find_usual_scale(weight, count, (float)largest, scale)) return true;
    for (int whole = 128; whole > 0; whole--) {
        double found = (double)(float)(largest / whole);
        if (found <= 0 || !are_multiples(weight, count, found, error)) continue;
        *scale = refine(weight, count, found);
        return true;
    }
    return false;
}

bool plan_find_largest_scale(const float *weight, int64_t count, double *scale, int *low, int *high)
{
    const double error = 4e-7;
    double largest = largest_size(weight, count);
    *scale = 1;
    *low = *high = 0;
    if (!(largest < 3e38)) return false;
    for (int whole = 1; whole <= 128 && largest > 0; whole++) {
        double found = (double)(float)(largest / whole);
        if (found <= 0 || !are_multiples(weight, count, found, error)) continue;
        *scale = refine(weight, count, found);
        for (int64_t i = 0; i < count; i++) {
            int integer = (int)nearest((double)weight[i] / *scale);
            if (integer < *low) *low = integer;
            if (integer > *high) *high = integer;
        }
        return true;
    }
    return are_multiples(weight, count, 1, 0); /* zeros, and no NaN */
}

sdlf_status plan_filters_open(plan_filters *f, const plan_integers *w, const float *weight)
{
    *f = (plan_filters){.weight = weight, .filters = w->filters, .each = w->each, .first = -1};
    if (!w->transposed) return SDLF_OK;
    f->tile = malloc((size_t)w->each * PLAN_FILTERS_TOGETHER * sizeof *f->tile);
    return f->tile != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
}

const float *plan_filters_at(plan_filters *f, int64_t k)
{
    int64_t first = k - k % PLAN_FILTERS_TOGETHER;
    if (f->tile == NULL) return f->weight + k * f->each;
    if (first != f->first) {
        int64_t count = f->filters - first < PLAN_FILTERS_TOGETHER ? f->filters - first : PLAN_FILTERS_TOGETHER;
        for (int64_t i = 0; i < f->each; i++)
            for (int64_t j = 0; j < count; j++) f->tile[j * f->each + i] = f->weight[i * f->filters + first + j];
        f->first = first;
    }
    return f->tile + (k - first) * f->each;
}

static sdlf_status scale_of(const sdlf_plan *plan, const plan_integers *w, const float *filter, int64_t k,
                            double *scale)
{
    *scale = (double)w->scale[k];
    if (plan_find_scale(filter, w->each, scale)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT,
                     "parameter %s: its filter %lld is no longer a multiple of small integers; make a new plan",
                     plan->model->parameters[w->weight].name, (long long)k);
}

static sdlf_status load_filter(sdlf_plan *plan, const plan_integers *w, const float *filter, int buffer, int64_t k,
                               double scale)
{
    enum { PIECE = 4096 };
    int8_t piece[PIECE];
    const double inverse = 1 / scale;
    sdlf_status status = SDLF_OK;
    for (int64_t first = 0; first < w->each && status == SDLF_OK; first += PIECE) {
        int64_t count = w->each - first < PIECE ? w->each - first : PIECE;
        for (int64_t i = 0; i < count; i++) piece[i] = (int8_t)nearest((double)filter[first + i] * inverse);
        status = plan_upload(plan, buffer, k * w->each + first, piece, count);
    }
    return status;
}

bool plan_find_bias_sum(float bias, double scale, int32_t *sum)
{
    const double most = 1 << 30; /* leaves as much for the products that are added to it */
    double found = rint((double)bias / scale);
    *sum = fabs(found) <= most ? (int32_t)found : 0;
    return fabs(found) <= most;
}

/* The bias of filter k in units of its scale, as an integer. */
static sdlf_status bias_sum(const sdlf_plan *plan, const plan_integers *w, int64_t k, double scale, int32_t *sum)
{
    const sdlf_parameter *bias = &plan->model->parameters[w->bias];
    float value = ((const float *)bias->value.data)[k];
    if (plan_find_bias_sum(value, (double)w->x_scale * scale, sum)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT,
                     "parameter %s: its number %lld, %g, is too large for integers now; make a new plan", bias->name,
                     (long long)k, (double)value);
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
    plan_filters filters = {.tile = NULL};
    if (status == SDLF_OK) status = plan_filters_open(&filters, w, plan->model->parameters[w->weight].value.data);
    for (int64_t k = 0; k < w->filters && status == SDLF_OK; k++) {
        const float *filter = plan_filters_at(&filters, k);
        status = scale_of(plan, w, filter, k, &scale);
        if (status != SDLF_OK) break;
        if (source == w->integers) {
            status = load_filter(plan, w, filter, buffer, k, scale);
        } else if (source == w->multipliers) {
            float multiplier = multiplier_of(plan, w, k, scale);
            status = plan_upload(plan, buffer, k * (int64_t)sizeof multiplier, &multiplier, sizeof multiplier);
        } else {
            int32_t sum;
            status = bias_sum(plan, w, k, scale, &sum);
            if (status == SDLF_OK) status = plan_upload(plan, buffer, k * (int64_t)sizeof sum, &sum, sizeof sum);
        }
    }
    free(filters.tile);
    return status;
}
