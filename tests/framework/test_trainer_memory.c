/* SPDX-License-Identifier: MIT */
/* Where trainers keep their data, as memory allows: on a device, or copied to it batch by batch; and the error if there
 * is not enough. */
#include "framework/watched_training.h"

/* Where a trainer on "guarded" with this much memory keeps its data. */
static sdlf_status place_in(int64_t bytes, sdlf_data_place *place)
{
    watcher seen = {.calls = 0};
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    sdlf_model *model = synthetic_model();
    sdlf_trainer_options options = options_on("guarded", 4, &seen);
    const char *space = "";
    test_guarded_memory(bytes);
    sdlf_status status = sdlf_trainer_create(&seen.trainer, model, &data, &data, &options);
    if (status == SDLF_OK) {
        *place = sdlf_trainer_data_place(seen.trainer, &space);
        CHECK_TEXT(space, "guarded:0");
        status = sdlf_trainer_run(seen.trainer);
    }
    sdlf_trainer_free(seen.trainer);
    test_guarded_memory(0);
    sdlf_model_free(model);
    synthetic_release(&data);
    return status;
}

/* With less and less memory: the data are resident on the device, then copied to it, then nothing fits, which is
 * reported; all memory allocated before is freed ("guarded" checks that when it is closed). */
static void memory_decides(void)
{
    sdlf_data_place place, last = SDLF_DATA_RESIDENT;
    int seen[3] = {0}, refused = 0;
    for (int64_t bytes = 300000; bytes > 500; bytes -= 500 + bytes / 50) {
        sdlf_status status = place_in(bytes, &place);
        if (status != SDLF_OK) {
            CHECK_FAILS(status, SDLF_ERROR_MEMORY, "plan of 'synthetic', batch");
            CHECK(strstr(sdlf_error_message(), "in the memory of guarded:0: guarded: asked for ") != NULL);
            CHECK(strstr(sdlf_error_message(), " are free") != NULL);
            refused++;
            continue;
        }
        CHECK(refused == 0);
        CHECK(place == last || (place == SDLF_DATA_STAGED && last == SDLF_DATA_RESIDENT));
        seen[place]++;
        last = place;
    }
    CHECK(seen[SDLF_DATA_RESIDENT] > 0 && seen[SDLF_DATA_STAGED] > 0 && refused > 0);
}

static void any_allocation_of_a_device_may_fail(void)
{
    sdlf_data_place place;
    int n = 1;
    for (bool all = false; !all && n < 100; n++) {
        test_guarded_fail_allocation(n);
        sdlf_status status = place_in(0, &place);
        CHECK(status == SDLF_OK || status == SDLF_ERROR_MEMORY);
        all = status == SDLF_OK && place == SDLF_DATA_RESIDENT;
    }
    test_guarded_fail_allocation(0);
    CHECK(n > 3 && n < 100);
}

static sdlf_status create_staged(void *data)
{
    watcher seen = {.calls = 0};
    sdlf_model *model = synthetic_model();
    sdlf_trainer_options options = options_on("guarded", 4, &seen);
    options.device_data = 1;
    sdlf_status status = sdlf_trainer_create(&seen.trainer, model, data, data, &options);
    sdlf_trainer_free(seen.trainer);
    sdlf_model_free(model);
    return status;
}

static void staging_survives_failing_allocations(void)
{
    sdlf_dataset data = synthetic_dataset(SAMPLES, 1);
    test_every_allocation("staged trainer", create_staged, &data);
    synthetic_release(&data);
}

/* A batch that fits on no device: the error says what was requested, for what, and what is free; a smaller one
 * works. */
static void absurd_batches_are_refused(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        const sdlf_calculator_class *type = test_calculator_class_at(i);
        sdlf_calculator *calculator = NULL;
        int64_t before = 0, after = 0, total = 0;
        if (type->memory_info == NULL || !CHECK_OK(sdlf_calculator_open(&calculator, type->name, NULL))) continue;
        sdlf_model *model = synthetic_model();
        sdlf_plan *plan = NULL;
        sdlf_plan_options options = {.batch = 1, .mode = SDLF_TRAIN, .forward = calculator};
        CHECK_OK(sdlf_plan_create(&plan, model, &options)); /* one-time setup happens here */
        sdlf_plan_free(plan);
        CHECK_OK(type->memory_info(calculator, &before, &total));
        options.batch = INT32_MAX;
        CHECK_FAILS(sdlf_plan_create(&plan, model, &options), SDLF_ERROR_MEMORY,
                    "plan of 'synthetic', batch 2147483647: ");
        CHECK(strstr(sdlf_error_message(), calculator->space) != NULL);
        CHECK(strstr(sdlf_error_message(), "asked for ") != NULL && strstr(sdlf_error_message(), " are free") != NULL);
        CHECK_OK(type->memory_info(calculator, &after, &total));
        CHECK(after >= before / 2); /* others use the GPU too; the request exceeds its memory */
        options.batch = 2;
        CHECK_OK(sdlf_plan_create(&plan, model, &options));
        sdlf_plan_free(plan);
        sdlf_model_free(model);
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(memory_decides);
    RUN(any_allocation_of_a_device_may_fail);
    RUN(staging_survives_failing_allocations);
    RUN(absurd_batches_are_refused);
    return test_summary();
}
