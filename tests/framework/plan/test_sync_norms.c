/* SPDX-License-Identifier: MIT */
/* Batch normalisation over all ranks: gradients, outputs and running statistics of a batch split over 1 to 4 ranks are
 * those of the whole batch on one, also with uneven or empty parts. */
#include <math.h>
#include <stdlib.h>

#include "framework/plan/networks.h"
#include "framework/plan/thread_ranks.h"
#include "testing.h"

enum { MOST = 7, PIXELS = 36, CLASSES = 3, NUMBERS = 4096 };

/* Both forms of batch normalisation, with fusible neighbours: an activation, a residual. */
static sdlf_model *norm_net(void)
{
    sdlf_model *net = sdlf_model_create("norms");
    sdlf_conv2d_options same = {.filters = 3, .kernel = {3, 3}, .padding = {1, 1}, .no_bias = true};
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 6, 6));
    sdlf_node a = sdlf_relu(net, sdlf_batch_norm2d(net, sdlf_conv2d(net, x, &same), NULL));
    sdlf_node b = sdlf_batch_norm2d(net, sdlf_conv2d(net, a, &same), &(sdlf_batch_norm2d_options){.momentum = 0.3f});
    sdlf_node c = sdlf_relu(net, sdlf_add(net, a, b));
    sdlf_node d = sdlf_fully_connected(net, c, &(sdlf_fully_connected_options){.units = 5});
    sdlf_node e = sdlf_tanh(net, sdlf_batch_norm2d(net, d, &(sdlf_batch_norm2d_options){.no_scale = true}));
    sdlf_output(net, "class", sdlf_fully_connected(net, e, &(sdlf_fully_connected_options){.units = CLASSES}));
    return net;
}

typedef struct experiment {
    const char *calculator;
    int64_t batch;
    bool no_fusion;
    float *found[THREAD_RANKS]; /* of each rank, concatenated: gradients, and parameters without gradients */
    int64_t count[THREAD_RANKS];
    sdlf_status status[THREAD_RANKS];
} experiment;

static sdlf_status collect(sdlf_plan *plan, sdlf_model *net, float *into, int64_t *count)
{
    *count = 0;
    sdlf_status status = sdlf_plan_store_parameters(plan);
    for (int i = 0; i < sdlf_model_parameter_count(net) && status == SDLF_OK; i++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(net, i);
        sdlf_binding binding = {.tensor = parameter->value};
        if (parameter->spec.trainable) status = sdlf_plan_gradient(plan, parameter->name, &binding);
        if (status == SDLF_OK && !test_download(&binding, into + *count)) status = SDLF_ERROR_DEVICE;
        *count += sdlf_tensor_count(&binding.tensor);
    }
    return status;
}

/* One rank's part, or, without a communicator, the whole. */
static void compute(thread_rank *rank, void *user)
{
    experiment *e = user;
    sdlf_communicator *ranks = rank != NULL ? &rank->base : NULL;
    int64_t first = sdlf_communicator_first(ranks, e->batch), share = sdlf_communicator_share(ranks, e->batch);
    int me = rank != NULL ? rank->base.rank : 0;
    float image[MOST * PIXELS];
    int32_t labels[MOST];
    fill_random(image, MOST * PIXELS, 11);
    for (int i = 0; i < MOST; i++) labels[i] = i % CLASSES;
    for (int i = 0; i < MOST * PIXELS; i++) image[i] += 4; /* mean far from 0 */
    sdlf_plan_options options = {
        .batch = share > 0 ? share : 1,
        .mode = SDLF_TRAIN,
        .gradients_only = true,
        .no_fusion = e->no_fusion,
        .communicator = ranks,
        .rank_fraction = (double)share / (double)e->batch,
        .sync_batch_norm = true,
        .samples_of_all = e->batch,
        .samples_that_count = share,
    };
    sdlf_model *net = norm_net();
    sdlf_plan *plan = NULL;
    sdlf_status status =
        sdlf_calculator_open(&options.forward, e->calculator, &(sdlf_calculator_options){.threads = 1});
    if (status == SDLF_OK) status = sdlf_plan_create(&plan, net, &options);
    if (status == SDLF_OK) status = test_plan_write(plan, "image", image + first * PIXELS);
    if (status == SDLF_OK) status = test_plan_write(plan, "labels", labels + first);
    if (status == SDLF_OK) status = sdlf_plan_forward(plan);
    if (status == SDLF_OK) status = sdlf_plan_backward(plan);
    if (status == SDLF_OK) status = collect(plan, net, e->found[me], &e->count[me]);
    e->status[me] = status;
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(options.forward);
}

static void check_same(const char *calculator, int64_t batch, bool no_fusion)
{
    experiment whole = {.calculator = calculator, .batch = batch, .no_fusion = no_fusion}, parts = whole;
    for (int r = 0; r < THREAD_RANKS; r++) {
        whole.found[r] = calloc(NUMBERS, sizeof(float));
        parts.found[r] = calloc(NUMBERS, sizeof(float));
    }
    compute(NULL, &whole);
    CHECK_OK(whole.status[0]);
    CHECK(whole.count[0] > 100 && whole.count[0] < NUMBERS);
    for (int count = 1; count <= THREAD_RANKS; count++) {
        CHECK(in_ranks(count, compute, &parts) >= 3 * 3);
        for (int r = 0; r < count; r++) {
            CHECK_OK(parts.status[r]);
            CHECK_EQUAL(parts.count[r], whole.count[0]);
            /* sums in another order: rounding errors of values near 1 */
            for (int64_t i = 0; i < whole.count[0]; i++)
                CHECK_CLOSE((double)parts.found[r][i], (double)whole.found[0][i],
                            2e-4 * (0.1 + fabs((double)whole.found[0][i])));
        }
    }
    for (int r = 0; r < THREAD_RANKS; r++) {
        free(whole.found[r]);
        free(parts.found[r]);
    }
}

static void parts_are_the_whole(void)
{
    static const char *const calculators[] = {"reference", "cpu"};
    for (int c = 0; c < 2; c++) {
        check_same(calculators[c], MOST, false);
        check_same(calculators[c], MOST, true);
        check_same(calculators[c], 4, false);
        check_same(calculators[c], 2, false); /* fewer than ranks: some have none */
    }
}

static void asks_for_samples(void)
{
    sdlf_communicator lone = {.type = &thread_ranks_class, .rank_count = 1};
    sdlf_calculator *cpu = test_open("cpu");
    sdlf_model *net = norm_net();
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {.batch = 2, .mode = SDLF_TRAIN, .forward = cpu, .communicator = &lone};
    options.sync_batch_norm = true;
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_ARGUMENT,
                "expected samples_that_count of 0 to samples_of_all, found 0 of 0");
    options.communicator = NULL; /* without ranks it is the usual normalisation */
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    CHECK_EQUAL(count_steps(plan, "batch_norm2d_infer"), 0);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(cpu);
}

int main(void)
{
    RUN(parts_are_the_whole);
    RUN(asks_for_samples);
    return test_summary();
}
