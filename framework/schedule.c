/* SPDX-License-Identifier: MIT */
/* Learning-rate schedules.
 *
 * With W = floor(warmup total) steps of warm-up, step s of `total` has the rate ramp(s) main(s):
 *   ramp(s) = min(1, (s + 1) / (W + 1)), a line from 0 before the first step to 1 at step W;
 *   constant  peak
 *   step      peak gamma^floor(epoch / every), epoch = floor(s / steps_per_epoch)
 *   cosine    final + (peak - final) (1 + cos(pi t)) / 2    with t = (s - W) / (total - W), 0 before W:
 *   linear    peak + (final - peak) t                       `final` is reached as training ends; no step has rate
 *             0.
 * one_cycle has no separate ramp. Its first part ends at e = warmup total - 1, its second at total - 1, both inclusive:
 * from peak / start_divisor to peak, then to peak / final_divisor, each along half a cosine (Smith and Topin 2018). All
 * of this is computed in float64 and rounded once. */
#include "framework/schedule.h"

#include <math.h>

#include "framework/field.h"
#include "framework/require.h"

const char *const sdlf_schedule_names[] = {"constant", "step", "cosine", "one_cycle", "linear", NULL};

_Static_assert(sizeof sdlf_schedule_names / sizeof sdlf_schedule_names[0] == SDLF_SCHEDULE_COUNT + 1,
               "one name for each kind");

static const double pi = 3.14159265358979323846264338327950288;

static const sdlf_field constant_fields[] = {
    {.name = "peak",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_schedule, peak),
     .maximum = 1000,
     .help = "the highest rate"},
    {.name = "warmup",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_schedule, warmup),
     .maximum = 0.999999,
     .help = "part of all steps over which the rate rises from 0"},
    {.name = NULL},
};

static const sdlf_field final_fields[] = {
    {.name = "peak",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_schedule, peak),
     .maximum = 1000,
     .help = "the highest rate"},
    {.name = "warmup",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_schedule, warmup),
     .maximum = 0.999999,
     .help = "part of all steps over which the rate rises from 0"},
    {.name = "final",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_schedule, final),
     .maximum = 1000,
     .help = "the last rate"},
    {.name = NULL},
};

static const sdlf_field step_fields[] = {
    {.name = "peak",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_schedule, peak),
     .maximum = 1000,
     .help = "the highest rate"},
    {.name = "warmup",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_schedule, warmup),
     .maximum = 0.999999,
     .help = "part of all steps over which the rate rises from 0"},
    {.name = "gamma",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_schedule, gamma),
     .minimum = 1e-6,
     .maximum = 1,
     .fallback = 0.1,
     .zero_means_default = true,
     .help = "what a drop multiplies the rate by"},
    {.name = "every",
     .type = SDLF_FIELD_INT,
     .offset = offsetof(sdlf_schedule, every),
     .minimum = 1,
     .maximum = 1000000,
     .fallback = 1,
     .zero_means_default = true,
     .help = "epochs between drops"},
    {.name = NULL},
};

static const sdlf_field one_cycle_fields[] = {
    {.name = "peak",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_schedule, peak),
     .maximum = 1000,
     .help = "the highest rate"},
    {.name = "warmup",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_schedule, warmup),
     .maximum = 0.999999,
     .fallback = 0.3,
     .zero_means_default = true,
     .help = "part of all steps over which the rate rises"},
    {.name = "start_divisor",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_schedule, start_divisor),
     .minimum = 1,
     .maximum = 1e9,
     .fallback = 25,
     .zero_means_default = true,
     .help = "the first rate is the peak over this"},
    {.name = "final_divisor",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(sdlf_schedule, final_divisor),
     .minimum = 1,
     .maximum = 1e9,
     .fallback = 1e4,
     .zero_means_default = true,
     .help = "the last rate is the peak over this"},
    {.name = NULL},
};

const sdlf_field *sdlf_schedule_fields(sdlf_schedule_kind kind)
{
    switch (kind) {
    case SDLF_SCHEDULE_STEP: return step_fields;
    case SDLF_SCHEDULE_ONE_CYCLE: return one_cycle_fields;
    case SDLF_SCHEDULE_COSINE:
    case SDLF_SCHEDULE_LINEAR: return final_fields;
    default: return constant_fields;
    }
}

sdlf_status sdlf_schedule_complete(sdlf_schedule *schedule)
{
    SDLF_REQUIRE(schedule);
    int kind = (int)schedule->kind;
    if (kind < 0 || kind >= SDLF_SCHEDULE_COUNT)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "schedule: expected a kind of 0 to %d, found %d", SDLF_SCHEDULE_COUNT - 1,
                         kind);
    sdlf_status status = sdlf_fields_complete(sdlf_schedule_fields(schedule->kind), schedule);
    return sdlf_fail_context(status, "schedule %s", sdlf_schedule_names[kind]);
}

/* From `first` at t = 0 to `last` at t = 1 along half a cosine. */
static double half_cosine(double first, double last, double t)
{
    return last + (first - last) * (1 + cos(pi * t)) / 2;
}

static double one_cycle(const sdlf_schedule *schedule, double step, double total)
{
    double peak = (double)schedule->peak;
    double top = (double)schedule->warmup * total - 1, end = total - 1;
    if (step < top) return half_cosine(peak / (double)schedule->start_divisor, peak, step / top);
    if (top < 0) top = 0;
    double t = end > top ? (step - top) / (end - top) : 0;
    return half_cosine(peak, peak / (double)schedule->final_divisor, t < 1 ? t : 1);
}

float sdlf_schedule_rate(const sdlf_schedule *schedule, int64_t step, int64_t total, int64_t steps_per_epoch)
{
    if (schedule == NULL) return 0;
    double peak = (double)schedule->peak, final = (double)schedule->final;
    if (schedule->kind == SDLF_SCHEDULE_ONE_CYCLE) return (float)one_cycle(schedule, (double)step, (double)total);
    double warm = floor((double)schedule->warmup * (double)total), now = (double)step;
    double ramp = now < warm ? (now + 1) / (warm + 1) : 1;
    double t = now < warm ? 0 : (now - warm) / ((double)total - warm);
    if (t > 1) t = 1;
    switch (schedule->kind) {
    case SDLF_SCHEDULE_STEP: {
        int64_t epoch = steps_per_epoch > 0 ? step / steps_per_epoch : 0;
        return (float)(ramp * peak * pow((double)schedule->gamma, (double)(epoch / schedule->every)));
    }
    case SDLF_SCHEDULE_COSINE: return (float)(ramp * half_cosine(peak, final, t));
    case SDLF_SCHEDULE_LINEAR: return (float)(ramp * (peak + (final - peak) * t));
    default: return (float)(ramp * peak);
    }
}
