/* SPDX-License-Identifier: MIT */
/* Schedules compared with PyTorch's. */
#include "torch/fixtures.h"

#include "framework/schedule.h"

static void check_case(const json_t *c)
{
    sdlf_schedule schedule = {.kind = SDLF_SCHEDULE_CONSTANT};
    int kind = 0;
    while (kind < SDLF_SCHEDULE_COUNT && strcmp(sdlf_schedule_names[kind], fixture_text(c, "kind")) != 0) kind++;
    if (!CHECK(kind < SDLF_SCHEDULE_COUNT)) return;
    schedule.kind = (sdlf_schedule_kind)kind;
    fixture_options(json_object_get(c, "options"), sdlf_schedule_fields(schedule.kind), &schedule);
    CHECK_OK(sdlf_schedule_complete(&schedule));
    int64_t total = (int64_t)fixture_number(c, "total", 0), steps = (int64_t)fixture_number(c, "steps_per_epoch", 0);
    float rates[64];
    if (!CHECK(total <= 64)) return;
    for (int64_t step = 0; step < total; step++) rates[step] = sdlf_schedule_rate(&schedule, step, total, steps);
    fixture_close(json_object_get(c, "rates"), rates, total, 1e-9, 2e-7, sdlf_schedule_names[kind], "rates");
}

static void schedules_agree(void)
{
    json_t *root = fixtures_open("torch_schedules.json"), *c;
    size_t index;
    json_array_foreach(json_object_get(root, "cases"), index, c) check_case(c);
    json_decref(root);
}

int main(void)
{
    RUN(schedules_agree);
    return test_summary();
}
