/* SPDX-License-Identifier: MIT */
/* Gradient buckets: with a mock communicator of two ranks that have the same samples, and gradients weighted by a half,
 * training equals that of one rank bitwise, since the two halves of a gradient add up to it exactly. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "framework/plan/networks.h"
#include "framework/plan/plan_internal.h"
#include "framework/plan/thread_ranks.h"
#include "testing.h"

enum { MOST_SUMS = 16, BATCH = 4, STEPS = 3 };

typedef struct twins {
    sdlf_communicator base;
    struct {
        sdlf_calculator *calculator;
        void *memory;
        int64_t count;
    } sum[MOST_SUMS];
    int64_t begun, ended; /* sums */
    bool failing;
} twins;

/* Nothing is added before it is awaited: reading too early gives half of the sum. */
static sdlf_status allreduce_begin(sdlf_communicator *base, sdlf_calculator *calculator, void *memory, sdlf_dtype dtype,
                                   int64_t count, int64_t *ticket)
{
    twins *t = (twins *)base;
    CHECK_EQUAL(dtype, SDLF_FLOAT32);
    CHECK(t->begun - t->ended < MOST_SUMS);
    *ticket = t->begun++;
    t->sum[*ticket % MOST_SUMS].calculator = calculator;
    t->sum[*ticket % MOST_SUMS].memory = memory;
    t->sum[*ticket % MOST_SUMS].count = count;
    return SDLF_OK;
}

static sdlf_status collective_end(sdlf_communicator *base, int64_t ticket)
{
    twins *t = (twins *)base;
    CHECK_EQUAL(ticket, t->ended);
    t->ended++;
    if (t->failing) return sdlf_fail(SDLF_ERROR_DEVICE, "rank 1 is gone");
    sdlf_calculator *calculator = t->sum[ticket % MOST_SUMS].calculator;
    int64_t count = t->sum[ticket % MOST_SUMS].count;
    void *memory = t->sum[ticket % MOST_SUMS].memory;
    float *host = malloc((size_t)count * sizeof *host);
    if (!CHECK(host != NULL)) return SDLF_ERROR_MEMORY;
    CHECK_OK(calculator->type->synchronize(calculator));
    CHECK_OK(calculator->type->download(calculator, host, memory, count * (int64_t)sizeof *host));
    for (int64_t i = 0; i < count; i++) host[i] *= 2;
    CHECK_OK(calculator->type->upload(calculator, memory, host, count * (int64_t)sizeof *host));
    free(host);
    return SDLF_OK;
}

static const sdlf_communicator_class twins_class = {
    .name = "twins", .size = sizeof(twins), .allreduce_begin = allreduce_begin, .collective_end = collective_end};

static uint32_t train(sdlf_plan_options options, twins *ranks)
{
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    uint32_t hash = 0;
    options.batch = BATCH;
    options.mode = SDLF_TRAIN;
    options.communicator = ranks != NULL ? &ranks->base : NULL;
    options.rank_fraction = 0.5;
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    if (plan != NULL) {
        float image[BATCH * 36];
        int32_t labels[BATCH] = {0, 1, 2, 1};
        fill_random(image, BATCH * 36, 7);
        CHECK_OK(test_plan_write(plan, "image", image));
        CHECK_OK(test_plan_write(plan, "labels", labels));
        for (int step = 0; step < STEPS; step++) {
            if (options.accumulate) CHECK_OK(sdlf_plan_accumulate(plan));
            CHECK_OK(sdlf_plan_step(plan, 0.02f));
        }
        CHECK_OK(sdlf_plan_store_parameters(plan));
        hash = sdlf_model_hash(net);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    return hash;
}

/* A communicator prevents fused updates, which may round differently: both run without fusion. */
static void check_same(sdlf_plan_options options)
{
    twins ranks = {.base = {.type = &twins_class, .rank_count = 2, .host = "here"}};
    options.no_fusion = true;
    CHECK_EQUAL(train(options, &ranks), train(options, NULL));
    CHECK(ranks.begun >= STEPS);
    CHECK_EQUAL(ranks.ended, ranks.begun);
    options.no_fusion = false;
    train(options, &ranks); /* it also runs with fusion */
    CHECK_EQUAL(ranks.ended, ranks.begun);
}

static void halves_make_a_whole(void)
{
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(i)->name);
        check_same((sdlf_plan_options){.forward = calculator, .optimizer = sdlf_sgd(.momentum = 0.9)});
        check_same((sdlf_plan_options){.forward = calculator, .optimizer = sdlf_adam(.beta1 = 0.9)});
        check_same((sdlf_plan_options){.forward = calculator, .clip_norm = 0.1f});
        check_same((sdlf_plan_options){.forward = calculator, .accumulate = true, .ema = 0.9});
        check_same((sdlf_plan_options){.forward = calculator, .loss_scale = 1000, .clip_norm = 0.1f});
        check_same((sdlf_plan_options){
            .forward = calculator, .loss_scale = SDLF_LOSS_SCALE_DYNAMIC, .optimizer = sdlf_adam(.beta1 = 0.9)});
        sdlf_calculator_close(calculator);
    }
}

/* Layers whose gradients are in the memory of different calculators have separate buckets. */
static void of_two_calculators(void)
{
    sdlf_calculator *cpu = test_open("cpu"), *guarded = test_open("guarded");
    const sdlf_placement placement = {.layer = "conv2d", .forward = guarded, .backward = guarded};
    check_same((sdlf_plan_options){.forward = cpu, .placement = &placement, .placement_count = 1});
    check_same((sdlf_plan_options){.forward = cpu, .backward = guarded});
    check_same((sdlf_plan_options){.forward = cpu, .backward = guarded, .loss_scale = 1000});
    sdlf_calculator_close(guarded);
    sdlf_calculator_close(cpu);
}

/* All-reduces are started in the backward pass, and awaited before the updates. */
static void stand_where_they_should(void)
{
    twins ranks = {.base = {.type = &twins_class, .rank_count = 2}};
    sdlf_calculator *cpu = test_open("cpu");
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_plan_create(
        &plan, net,
        &(sdlf_plan_options){
            .batch = BATCH, .mode = SDLF_TRAIN, .forward = cpu, .communicator = &ranks.base, .rank_fraction = 0.5}));
    int sums = 0, updates = 0;
    for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
        sdlf_step_info step = sdlf_plan_step_info(plan, i);
        if (step.phase == SDLF_PHASE_UPDATE) CHECK(sums == 2 && ++updates);
        if (step.phase == SDLF_PHASE_BACKWARD) CHECK_EQUAL(updates, 0);
        if (step.phase != SDLF_PHASE_COMMUNICATE) continue;
        CHECK_TEXT(step.operation, sums++ == 0 ? "gradient sum begun" : "gradient sum awaited");
    }
    CHECK_EQUAL(sums, 2);
    CHECK_EQUAL(updates, 6);
    ranks.failing = true;
    CHECK_FAILS(sdlf_plan_step(plan, 0.1f), SDLF_ERROR_DEVICE, "gradient sum awaited on cpu: rank 1 is gone");
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(cpu);
}

/* Layers that alternate between two calculators have separate buckets: even with many of them, no more all-reduces are
 * in flight than a communicator supports. */
static void of_many_buckets(void)
{
    enum { LAYERS = 300 };
    twins ranks = {.base = {.type = &twins_class, .rank_count = 2}};
    sdlf_calculator *cpu = test_open("cpu"), *reference = test_open("reference");
    sdlf_model *net = sdlf_model_create("deep");
    sdlf_placement placement[LAYERS / 2];
    static char names[LAYERS][24];
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(4));
    for (int i = 0; i < LAYERS; i++) {
        x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
        snprintf(names[i], sizeof names[i], "%s", sdlf_model_layer(net, x.layer)->name);
        if (i % 2 == 0) placement[i / 2] = (sdlf_placement){.layer = names[i], .backward = reference};
    }
    sdlf_plan *plan = NULL;
    CHECK_OK(sdlf_plan_create(&plan, net,
                              &(sdlf_plan_options){.batch = 1,
                                                   .mode = SDLF_TRAIN,
                                                   .forward = cpu,
                                                   .placement = placement,
                                                   .placement_count = LAYERS / 2,
                                                   .communicator = &ranks.base,
                                                   .rank_fraction = 0.5}));
    int begun = 0, most = 0, ended = 0;
    for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
        sdlf_step_info step = sdlf_plan_step_info(plan, i);
        if (step.phase != SDLF_PHASE_COMMUNICATE) continue;
        bool awaited = strcmp(step.operation, "gradient sum awaited") == 0;
        begun += !awaited;
        ended += awaited;
        if (begun - ended > most) most = begun - ended;
    }
    CHECK_EQUAL(begun, LAYERS);
    CHECK_EQUAL(ended, LAYERS);
    CHECK(most > 100 && most < SDLF_MOST_SUMS);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(reference);
    sdlf_calculator_close(cpu);
}

/* ---- gradients of 16 bits, over ranks that are threads ---- */

typedef struct narrowing {
    sdlf_dtype dtype;
    bool accumulate;
    float weights[THREAD_RANKS][1024];
    int64_t count, bytes;
    sdlf_status status[THREAD_RANKS];
} narrowing;

static void train_narrowed(thread_rank *rank, void *user)
{
    narrowing *n = user;
    int me = rank->base.rank;
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {.batch = BATCH,
                                 .mode = SDLF_TRAIN,
                                 .accumulate = n->accumulate,
                                 .communicator = &rank->base,
                                 .rank_fraction = 1.0 / rank->base.rank_count,
                                 .gradient_dtype = n->dtype};
    sdlf_status status = sdlf_calculator_open(&options.forward, "cpu", &(sdlf_calculator_options){.threads = 1});
    if (status == SDLF_OK) status = sdlf_plan_create(&plan, net, &options);
    float image[BATCH * 36];
    int32_t labels[BATCH] = {0, 1, 2, 1};
    fill_random(image, BATCH * 36, 7 + (uint64_t)me);
    if (status == SDLF_OK) status = test_plan_write(plan, "image", image);
    if (status == SDLF_OK) status = test_plan_write(plan, "labels", labels);
    for (int step = 0; step < STEPS && status == SDLF_OK; step++) {
        if (n->accumulate) status = sdlf_plan_accumulate(plan);
        if (status == SDLF_OK) status = sdlf_plan_step(plan, 0.1f);
    }
    int64_t count = 0;
    for (int i = 0; i < sdlf_model_parameter_count(net) && status == SDLF_OK; i++) {
        const sdlf_tensor *value = &sdlf_model_parameter(net, i)->value;
        memcpy(n->weights[me] + count, value->data, (size_t)sdlf_tensor_bytes(value));
        count += sdlf_tensor_count(value);
    }
    for (int i = 0; me == 0 && i < sdlf_plan_step_count(plan); i++) {
        const sdlf_step_info step = sdlf_plan_step_info(plan, i);
        if (step.phase == SDLF_PHASE_COMMUNICATE) n->bytes += step.cost.bytes;
    }
    if (me == 0) n->count = count;
    n->status[me] = status;
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(options.forward);
}

/* Steps of 0.1 times gradients near 1, each rounded by a relative 2^-9 or 2^-12, and the sum of three once or twice
 * more. */
static void of_sixteen_bits(void)
{
    static narrowing wide, narrow;
    static const struct {
        sdlf_dtype dtype;
        double rounding;
    } cases[] = {{SDLF_BFLOAT16, 0x1p-8}, {SDLF_FLOAT16, 0x1p-11}};
    for (int a = 0; a < 2; a++) {
        wide = (narrowing){.accumulate = a > 0};
        in_ranks(3, train_narrowed, &wide);
        for (int c = 0; c < 2; c++) {
            narrow = (narrowing){.dtype = cases[c].dtype, .accumulate = a > 0};
            in_ranks(3, train_narrowed, &narrow);
            CHECK_EQUAL(2 * narrow.bytes, wide.bytes);
            CHECK(narrow.count > 200 && narrow.count == wide.count);
            double most = 0;
            for (int64_t i = 0; i < wide.count; i++) {
                double off = fabs((double)narrow.weights[0][i] - (double)wide.weights[0][i]);
                CHECK(off < 0.1 * STEPS * cases[c].rounding);
                most = fmax(most, off);
                for (int r = 1; r < 3; r++) CHECK(narrow.weights[r][i] == narrow.weights[0][i]);
            }
            CHECK(most > 0); /* something was rounded */
            for (int r = 0; r < 3; r++) CHECK_OK(narrow.status[r]);
        }
    }
    sdlf_calculator *cpu = test_open("cpu");
    sdlf_model *net = small_cnn();
    sdlf_plan *plan = NULL;
    CHECK_FAILS(sdlf_plan_create(
                    &plan, net,
                    &(sdlf_plan_options){.batch = 1, .mode = SDLF_TRAIN, .forward = cpu, .gradient_dtype = SDLF_INT8}),
                SDLF_ERROR_ARGUMENT, "gradient_dtype must be float16 or bfloat16, not int8");
    sdlf_model_free(net);
    sdlf_calculator_close(cpu);
}

static void parts_cover_the_batch(void)
{
    for (int64_t count = 0; count < 20; count++) {
        int64_t next = 0;
        for (int rank = 0; rank < 3; rank++) {
            const sdlf_communicator c = {.rank = rank, .rank_count = 3};
            CHECK_EQUAL(sdlf_communicator_first(&c, count), next);
            next += sdlf_communicator_share(&c, count);
        }
        CHECK_EQUAL(next, count);
    }
    CHECK_EQUAL(sdlf_communicator_share(NULL, 7), 7);
    for (int ranks = 1; ranks < 9; ranks++) {
        for (int64_t count = 0; count < 3000; count += 77) {
            CHECK_EQUAL(sdlf_communicator_shard(0, ranks, count), 0);
            CHECK_EQUAL(sdlf_communicator_shard(ranks, ranks, count), count);
            for (int r = 0; r < ranks; r++) {
                int64_t first = sdlf_communicator_shard(r, ranks, count),
                        part = sdlf_communicator_shard(r + 1, ranks, count) - first;
                CHECK(first % 64 == 0 && part >= 0 && part <= count / ranks + 128);
            }
        }
    }
    sdlf_communicator *none = NULL;
    CHECK_FAILS(sdlf_communicator_open(&none, "mpj", NULL), SDLF_ERROR_ARGUMENT, "no communicator 'mpj'");
}

/* Buckets are full at 16 MB (plus two layers at most) while more than twice as much is left, then at half of the
 * remainder, and the last is small. 32 layers of 2 MB. */
static void shrink_towards_the_end(void)
{
    enum { LAYERS = 32, UNITS = 724, LAYER_BYTES = UNITS * UNITS * 4 };
    twins ranks = {.base = {.type = &twins_class, .rank_count = 2}};
    sdlf_calculator *cpu = test_open("cpu");
    sdlf_model *net = sdlf_model_create("layers");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(UNITS));
    for (int i = 0; i < LAYERS; i++)
        x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = UNITS, .no_bias = true});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    CHECK_OK(sdlf_model_build(net, 1));
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {
        .batch = 1, .mode = SDLF_TRAIN, .forward = cpu, .communicator = &ranks.base, .rank_fraction = 0.5};
    int64_t all = 0, last = 0;
    int buckets = 0;
    if (CHECK_OK(sdlf_plan_create(&plan, net, &options))) {
        for (int i = 0; i < plan->step_count; i++) {
            const plan_step *step = &plan->steps[i];
            if (step->phase != SDLF_PHASE_COMMUNICATE || step->awaits) continue;
            int64_t bytes = sdlf_tensor_bytes(&step->operation.in[0]);
            CHECK(bytes <= (16 << 20) + 2 * LAYER_BYTES && (last == 0 || bytes <= last));
            all += bytes;
            last = bytes;
            buckets++;
        }
    }
    CHECK_EQUAL(all / LAYER_BYTES, LAYERS);
    CHECK(last < 3 * LAYER_BYTES);
    CHECK(buckets >= 5 && buckets <= 8);
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(cpu);
}

int main(void)
{
    RUN(shrink_towards_the_end);
    RUN(halves_make_a_whole);
    RUN(of_two_calculators);
    RUN(stand_where_they_should);
    RUN(of_many_buckets);
    RUN(of_sixteen_bits);
    RUN(parts_cover_the_batch);
    return test_summary();
}
