/* Weights of integers, found and worked out. See quantized.h. */
#include "framework/plan/quantized.h"

#include <math.h>

#include "framework/plan/passes.h"

/* A product of an integer and a scale, rounded to float32, and the scale as it is found: three roundings. */
static bool is_multiple(double weight, double scale)
{
    double whole = rint(weight / scale);
    return whole >= -128 && whole <= 127 && fabs(whole * scale - weight) <= 4e-7 * fabs(weight);
}

static bool are_multiples(const float *weight, int64_t count, int64_t step, double scale)
{
    for (int64_t i = 0; i < count; i++)
        if (!is_multiple((double)weight[i * step], scale)) return false;
    return true;
}

/* The scale is within a few roundings of the one that weights were made with. Each product says between which numbers that lies, half a
 * unit of its last place to either side; together they leave few of float32. */
static double refine(const float *weight, int64_t count, int64_t step, double scale)
{
    double low = 0, high = HUGE_VAL;
    for (int64_t i = 0; i < count; i++) {
        float product = fabsf(weight[i * step]);
        double whole = rint((double)product / scale), half = (double)(nextafterf(product, INFINITY) - product) / 2;
        if (whole < 1) continue;
        low = fmax(low, ((double)product - half) / whole);
        high = fmin(high, ((double)product + half) / whole);
    }
    double found = (double)(float)((low + high) / 2);
    return high < HUGE_VAL && found >= low && found <= high ? found : scale;
}

bool plan_find_scale(const float *weight, int64_t count, int64_t step, double *scale)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)weight[i * step]));
    if (!(largest < 3e38)) return false;
    if (largest == 0 || are_multiples(weight, count, step, 1)) {
        *scale = 1;
        return true;
    }
    if (*scale > 0 && are_multiples(weight, count, step, *scale)) {
        *scale = refine(weight, count, step, *scale);
        return true;
    }
    for (int whole = 128; whole > 0; whole--) {
        double found = (double)(float)(largest / whole);
        if (found <= 0 || !are_multiples(weight, count, step, found)) continue;
        *scale = refine(weight, count, step, found);
        return true;
    }
    return false;
}

static sdlf_status scale_of(const sdlf_plan *plan, const plan_integers *w, int64_t k, double *scale)
{
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
        for (int64_t i = 0; i < count; i++) piece[i] = (int8_t)rint((double)weight[(first + i) * step] / scale);
        status = plan_upload(plan, buffer, k * w->each + first, piece, count);
    }
    return status;
}

/* The sum that the bias of filter k adds. */
static int32_t bias_sum(const sdlf_plan *plan, const plan_integers *w, int64_t k, double scale)
{
    double sum = rint((double)((const float *)plan->model->parameters[w->bias].value.data)[k] / ((double)w->x_scale * scale));
    return sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : (int32_t)sum;
}

sdlf_status plan_load_integers(sdlf_plan *plan, int buffer)
{
    const plan_integers *w = &plan->integers[plan->buffers[buffer].integers - 1];
    int source = plan->buffers[buffer].source;
    double scale = 0;
    sdlf_status status = model_fetch_values(plan->model, w->weight);
    if (status == SDLF_OK && source == w->bias_sums) status = model_fetch_values(plan->model, w->bias);
    for (int64_t k = 0; k < w->filters && status == SDLF_OK; k++) {
        status = scale_of(plan, w, k, &scale);
        if (status != SDLF_OK) break;
        float multiplier = w->x_scale * (float)scale;
        multiplier = multiplier / w->y_scale;
        if (source == w->integers) {
            status = load_filter(plan, w, buffer, k, scale);
        } else if (source == w->multipliers) {
            status = plan_upload(plan, buffer, k * (int64_t)sizeof multiplier, &multiplier, sizeof multiplier);
        } else {
            int32_t sum = bias_sum(plan, w, k, scale);
            status = plan_upload(plan, buffer, k * (int64_t)sizeof sum, &sum, sizeof sum);
        }
    }
    return status;
}
