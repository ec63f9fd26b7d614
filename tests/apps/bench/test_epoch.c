/* SPDX-License-Identifier: MIT */
/* sdlf bench epoch: both sides of every layer, even if they fuse different layers. */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/bench/bench.h"
#include "apps/capture.h"
#include "apps/program.h"
#include "apps/timing/layers.h"

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static double sum_of(const json_t *side)
{
    return number(side, "forward") + number(side, "backward") + number(side, "update") + number(side, "copies");
}

/* Lines add up to the total, and the ratio is that of the two sides. */
static void check_batch(const json_t *batch, int64_t size)
{
    CHECK_EQUAL(json_integer_value(json_object_get(batch, "batch")), size);
    const json_t *host = json_object_get(batch, "host"), *device = json_object_get(batch, "device");
    CHECK_CLOSE(number(batch, "times"), number(host, "seconds") / number(device, "seconds"), 1e-6);
    CHECK_CLOSE(number(host, "samples_per_second") * number(host, "seconds"), 200, 1e-3);
    double host_sum = 0, device_sum = 0;
    size_t i;
    json_t *line;
    json_array_foreach(json_object_get(batch, "layers_per_step"), i, line)
    {
        double a = sum_of(json_object_get(line, "host")), b = sum_of(json_object_get(line, "device"));
        if (a > 0 && b > 0) CHECK_CLOSE(number(line, "times"), a / b, 1e-6 * a / b);
        host_sum += a;
        device_sum += b;
    }
    CHECK(host_sum > 0 && device_sum > 0);
    CHECK_CLOSE(host_sum, number(host, "layers_seconds_per_step"), 1e-6 * host_sum);
    CHECK_CLOSE(device_sum, number(device, "layers_seconds_per_step"), 1e-6 * device_sum);
}

static void both_sides(void)
{
    json_t *report = CAPTURE_JSON(epoch_bench.run, "--net", small_network(), "--data", "digits:200", "--batch", "10",
                                  "--batch", "64", "--repeats", "2", "--device-calculator", "guarded", "--json");
    const json_t *batches = json_object_get(report, "batches");
    CHECK_EQUAL(json_array_size(batches), 2);
    check_batch(json_array_get(batches, 0), 10);
    check_batch(json_array_get(batches, 1), 64);
    CHECK_EQUAL(json_integer_value(json_object_get(json_array_get(batches, 1), "steps")), 4);
    const json_t *first = json_array_get(json_object_get(json_array_get(batches, 0), "layers_per_step"), 0);
    CHECK_TEXT(json_string_value(json_object_get(first, "layer")), "(drawing the batch)");
    CHECK(sum_of(json_object_get(first, "host")) == 0); /* a loader's thread does it there */
    CHECK(sum_of(json_object_get(first, "device")) > 0);
    json_decref(report);
}

static void text(void)
{
    const program *p = SDLF(0, "bench", "epoch", "--net", small_network(), "--data", "digits:200", "--batch", "10",
                            "--steps", "4", "--repeats", "2", "--device-calculator", "reference");
    CHECK_SAYS(p, "batch  10, 20 steps an epoch");
    CHECK_SAYS(p, "max_pool2d");
    CHECK_SAYS(p, "cpu fwd");
    CHECK_SAYS(p, "reference fwd");
    CHECK_SAYS(p, "total");
    CHECK_SAYS(p, "extrapolated from some of its steps");
    CHECK_SAYS(p, "samples/s");
    CHECK(strstr(p->out, "drawing") == NULL);
}

/* Labels are indices: a network with too few outputs for them is rejected before anything runs. */
static void too_few_classes(void)
{
    static const char outputs[] =
        "{\"name\": \"five\", \"input\": {\"shape\": [1, 28, 28]}, \"layers\": [{\"type\": \"flatten\"}, "
        "{\"type\": \"fully_connected\", \"units\": 5}, {\"type\": \"softmax\"}]}\n";
    static const char loss[] =
        "{\"name\": \"seven\", \"inputs\": [{\"name\": \"image\", \"shape\": [1, 28, 28]}, {\"name\": \"labels\", "
        "\"shape\": [], "
        "\"dtype\": \"int32\"}], \"layers\": [{\"type\": \"flatten\", \"inputs\": [\"image\"], \"name\": \"flat\"}, "
        "{\"type\": \"fully_connected\", \"units\": 7, \"inputs\": [\"flat\"], \"name\": \"scores\"}, {\"type\": "
        "\"softmax_cross_entropy\", \"inputs\": [\"scores\", \"labels\"]}]}\n";
    const char *five = test_path("five.json"), *seven = test_path("seven.json");
    test_write_file(five, outputs, sizeof outputs - 1);
    test_write_file(seven, loss, sizeof loss - 1);
    const char *benches[] = {"epoch", "placement"};
    for (int i = 0; i < 2; i++) {
        CHECK_SAYS(SDLF(1, "bench", benches[i], "--net", five, "--data", "digits:200", "--device-calculator", "cpu"),
                   "network 'five' has fewer classes, 5, than the 10 of digits");
        CHECK_SAYS(SDLF(1, "bench", benches[i], "--net", seven, "--data", "digits:200", "--device-calculator", "cpu"),
                   "network 'seven' has fewer classes, 7, than the 10 of digits");
    }
}

/* A plan with fusion compared with one without: layers that are fused in one share a line for both. */
static void lines_hold_what_both_sides_have(void)
{
    sdlf_model *net = NULL;
    sdlf_calculator *cpu = NULL;
    sdlf_plan *plan[2] = {NULL};
    CHECK_OK(sdlf_network_builtin(&net, "simple_cnn"));
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(sdlf_plan_create(
            &plan[i], net, &(sdlf_plan_options){.batch = 2, .mode = SDLF_TRAIN, .forward = cpu, .no_fusion = i == 0}));
        CHECK_OK(sdlf_plan_time(plan[i], 1));
    }
    layer_times times = layer_times_make(net, (const sdlf_plan *const *)plan);
    static const char *const expected[] = {"(drawing the batch)", "conv2d+relu+max_pool2d", "fully_connected+relu_2",
                                           "fully_connected_2", "loss"};
    if (CHECK_EQUAL(times.count, 5)) {
        for (int i = 0; i < times.count; i++) CHECK_TEXT(times.line[i].name, expected[i]);
    }
    CHECK(sdlf_plan_layer_count(plan[0]) == 7 && sdlf_plan_layer_count(plan[1]) == 4);
    for (int side = 0; side < 2; side++) {
        double steps = 0;
        layer_line total = layer_times_total(&times);
        for (int i = 0; i < sdlf_plan_step_count(plan[side]); i++) steps += sdlf_plan_step_info(plan[side], i).seconds;
        CHECK_CLOSE(layer_times_sum(&total, side), steps, 1e-9);
    }
    layer_times_release(&times);
    sdlf_plan_free(plan[0]);
    sdlf_plan_free(plan[1]);
    sdlf_calculator_close(cpu);
    sdlf_model_free(net);
}

static void what_cannot_be(void)
{
#define EPOCH "bench", "epoch", "--net", small_network(), "--data", "digits:50", "--device-calculator", "reference"
    CHECK_SAYS(SDLF(2, EPOCH, "--batch", "x"), "--batch x: expected a whole number from 1 to 1,000,000");
    CHECK_SAYS(SDLF(2, EPOCH, "--batch", "51"), "--batch 51: ");
    CHECK_SAYS(SDLF(2, EPOCH, "--batch", "0"), "--batch 0: expected");
    CHECK_SAYS(SDLF(2, "bench", "epoch", "--device-calculator", "abacus"), "no calculator 'abacus'");
    CHECK_SAYS(SDLF(0, "bench", "epoch", "--help"), "Usage: sdlf bench epoch");
    CHECK_SAYS(SDLF(0, "bench", "--help"), "placement");
    CHECK_SAYS(SDLF(0, "bench", "network", "--help"), "Usage: sdlf bench [BENCHMARK]");
}

int main(void)
{
    RUN(both_sides);
    RUN(text);
    RUN(too_few_classes);
    RUN(lines_hold_what_both_sides_have);
    RUN(what_cannot_be);
    return test_summary();
}
