/* SPDX-License-Identifier: MIT */
/* Learning rate schedules against values computed by hand. */
#include <math.h>

#include <sdlf/optimizer.h>

#include "testing.h"

static float rate(sdlf_schedule schedule, int64_t step, int64_t total, int64_t steps_per_epoch)
{
    CHECK_OK(sdlf_schedule_complete(&schedule));
    return sdlf_schedule_rate(&schedule, step, total, steps_per_epoch);
}

static void constant_stays(void)
{
    for (int step = 0; step < 10; step++) CHECK(rate(sdlf_constant(.peak = 0.05f), step, 10, 5) == 0.05f);
}

static void warmup_rises_along_a_line(void)
{
    sdlf_schedule schedule = sdlf_constant(.peak = 0.5f, .warmup = 0.3f);
    const float expected[] = {0.125f, 0.25f, 0.375f,
                              0.5f,   0.5f,  0.5f}; /* 3 of 10 steps warm up: quarters of the peak */
    for (int step = 0; step < 6; step++) CHECK_CLOSE(rate(schedule, step, 10, 5), expected[step], 1e-8);
}

static void step_drops_by_epochs(void)
{
    sdlf_schedule schedule = sdlf_step_decay(.peak = 1, .gamma = 0.5f, .every = 2);
    const float expected[] = {1, 1, 1, 1, 0.5f, 0.5f, 0.5f, 0.5f, 0.25f, 0.25f}; /* 2 steps an epoch */
    for (int step = 0; step < 10; step++) CHECK(rate(schedule, step, 10, 2) == expected[step]);
    CHECK_CLOSE(rate(sdlf_step_decay(.peak = 1), 2, 4, 2), 0.1, 1e-8); /* the defaults */
}

static void cosine_ends_at_final(void)
{
    sdlf_schedule schedule = sdlf_cosine(.peak = 1, .final = 0.2f);
    CHECK(rate(schedule, 0, 4, 1) == 1);
    CHECK_CLOSE(rate(schedule, 1, 4, 1), 0.2 + 0.8 * (1 + sqrt(0.5)) / 2, 1e-7);
    CHECK_CLOSE(rate(schedule, 2, 4, 1), 0.6, 1e-7);
    CHECK_CLOSE(rate(schedule, 3, 4, 1), 0.2 + 0.8 * (1 - sqrt(0.5)) / 2, 1e-7);
    CHECK_CLOSE(rate(schedule, 4, 4, 1), 0.2, 1e-7);
    CHECK_CLOSE(rate(schedule, 9, 4, 1), 0.2, 1e-7); /* and stays there */
}

static void linear_ends_at_final(void)
{
    sdlf_schedule schedule = sdlf_linear(.peak = 1, .warmup = 0.2f);
    const float expected[] = {1 / 3.0f, 2 / 3.0f, 1, 0.875f, 0.75f, 0.625f, 0.5f, 0.375f, 0.25f, 0.125f};
    for (int step = 0; step < 10; step++) CHECK_CLOSE(rate(schedule, step, 10, 5), expected[step], 1e-7);
}

static void one_cycle_rises_and_falls(void)
{
    sdlf_schedule schedule =
        sdlf_one_cycle(.peak = 1, .warmup = 0.5f, .start_divisor = 4, .final_divisor = 100); /* top at step 4 of 0..9 */
    CHECK_CLOSE(rate(schedule, 0, 10, 10), 0.25, 1e-7);
    CHECK_CLOSE(rate(schedule, 2, 10, 10), 0.625, 1e-7);
    CHECK_CLOSE(rate(schedule, 4, 10, 10), 1, 1e-7);
    CHECK_CLOSE(rate(schedule, 9, 10, 10), 0.01, 1e-7);
    for (int step = 1; step < 10; step++) {
        float before = rate(schedule, step - 1, 10, 10), after = rate(schedule, step, 10, 10);
        CHECK(step <= 4 ? after > before : after < before);
    }
}

static void few_steps_are_no_trap(void)
{
    for (int kind = 0; kind < SDLF_SCHEDULE_COUNT; kind++)
        for (int total = 1; total < 6; total++)
            for (int step = 0; step < total; step++) {
                float found =
                    rate((sdlf_schedule){.kind = (sdlf_schedule_kind)kind, .peak = 1, .warmup = 0.4f}, step, total, 1);
                CHECK(found >= 0 && found <= 1);
            }
}

static void bad_members_are_named(void)
{
    CHECK_FAILS(sdlf_schedule_complete(&sdlf_constant(.peak = -1)), SDLF_ERROR_ARGUMENT,
                "schedule constant: peak: expected 0 to 1000, found -1");
    CHECK_FAILS(sdlf_schedule_complete(&sdlf_constant(.peak = NAN)), SDLF_ERROR_ARGUMENT, "peak");
    CHECK_FAILS(sdlf_schedule_complete(&sdlf_constant(.peak = INFINITY)), SDLF_ERROR_ARGUMENT, "peak");
    CHECK_FAILS(sdlf_schedule_complete(&sdlf_cosine(.warmup = 1)), SDLF_ERROR_ARGUMENT, "schedule cosine: warmup");
    CHECK_FAILS(sdlf_schedule_complete(&sdlf_step_decay(.every = -2)), SDLF_ERROR_ARGUMENT, "every: expected 1 to");
    CHECK_FAILS(sdlf_schedule_complete(&sdlf_one_cycle(.start_divisor = 0.5f)), SDLF_ERROR_ARGUMENT, "start_divisor");
    CHECK_FAILS(sdlf_schedule_complete(&(sdlf_schedule){.kind = (sdlf_schedule_kind)99}), SDLF_ERROR_ARGUMENT,
                "found 99");
}

static void defaults_are_filled_in(void)
{
    sdlf_schedule schedule = sdlf_one_cycle(.peak = 1);
    CHECK_OK(sdlf_schedule_complete(&schedule));
    CHECK(schedule.warmup == 0.3f && schedule.start_divisor == 25 && schedule.final_divisor == 1e4f);
    CHECK_TEXT(sdlf_schedule_names[SDLF_SCHEDULE_ONE_CYCLE], "one_cycle");
}

int main(void)
{
    RUN(constant_stays);
    RUN(warmup_rises_along_a_line);
    RUN(step_drops_by_epochs);
    RUN(cosine_ends_at_final);
    RUN(linear_ends_at_final);
    RUN(one_cycle_rises_and_falls);
    RUN(few_steps_are_no_trap);
    RUN(bad_members_are_named);
    RUN(defaults_are_filled_in);
    return test_summary();
}
