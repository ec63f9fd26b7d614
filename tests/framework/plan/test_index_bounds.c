/* SPDX-License-Identifier: MIT */
/* Out-of-range indices in inputs are rejected, not read as zeros. */
#include <math.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { TOKENS = 4, VOCABULARY = 7, SAMPLES = 8 };

/* Tokens, unchanged or reshaped, to an embedding, and classes. */
static sdlf_model *reader(sdlf_dtype dtype, bool reshaped)
{
    sdlf_model *net = sdlf_model_create("reader");
    sdlf_node x = sdlf_input(net, "tokens", dtype, sdlf_shape(TOKENS));
    if (reshaped) x = sdlf_reshape(net, x, &(sdlf_reshape_options){.shape = sdlf_shape(2, 2)});
    x = sdlf_embedding(net, x, &(sdlf_embedding_options){.name = "words", .vocabulary = VOCABULARY, .units = 3});
    x = sdlf_fully_connected(net, sdlf_flatten(net, x), &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

static sdlf_status write_tokens(sdlf_plan *plan, sdlf_dtype dtype, const double *value)
{
    int64_t tokens[2 * TOKENS];
    sdlf_convert(dtype, tokens, SDLF_FLOAT64, value, 2 * TOKENS);
    return test_plan_write(plan, "tokens", tokens);
}

/* The mock device, for which the host's memory is that of another library. */
static bool plan_has_device(sdlf_plan *plan)
{
    sdlf_binding tokens;
    return CHECK_OK(sdlf_plan_input(plan, "tokens", &tokens)) && tokens.calculator != NULL &&
           strcmp(tokens.calculator->type->name, "guarded") == 0;
}

static void check_tokens(sdlf_plan *plan, sdlf_dtype dtype)
{
    double value[2 * TOKENS] = {0, VOCABULARY - 1, -1, -VOCABULARY, 3, 2, 1, 0};
    CHECK_OK(write_tokens(plan, dtype, value));
    CHECK_OK(sdlf_plan_forward(plan));
    value[6] = VOCABULARY;
    if (plan_has_device(plan)) {
        int64_t tokens[2 * TOKENS];
        sdlf_convert(dtype, tokens, SDLF_FLOAT64, value, 2 * TOKENS);
        CHECK_FAILS(sdlf_plan_write_device(plan, "tokens", tokens, dtype, 2 * TOKENS * (int64_t)sdlf_dtype_size(dtype)),
                    SDLF_ERROR_ARGUMENT, "embedding 'words': index 7, at [1,2] of input 'tokens'");
    }
    CHECK_FAILS(write_tokens(plan, dtype, value), SDLF_ERROR_ARGUMENT,
                "embedding 'words': index 7, at [1,2] of input 'tokens', is out of range: expected -7 to 6");
    value[6] = 0;
    value[1] = -VOCABULARY - 1;
    CHECK_FAILS(write_tokens(plan, dtype, value), SDLF_ERROR_ARGUMENT, "index -8, at [0,1] of input 'tokens'");
    value[1] = NAN;
    if (sdlf_dtype_is_float(dtype))
        CHECK_FAILS(write_tokens(plan, dtype, value), SDLF_ERROR_ARGUMENT, "index nan, at [0,1]");
}

static void tokens_of_every_type(void)
{
    static const sdlf_dtype dtypes[] = {SDLF_INT32, SDLF_INT64, SDLF_FLOAT32};
    for (int i = 0; test_calculator_class_at(i) != NULL; i++)
        for (int d = 0; d < 3; d++)
            for (int reshaped = 0; reshaped < 2; reshaped++) {
                sdlf_calculator *calculator = test_open(test_calculator_class_at(i)->name);
                sdlf_model *net = reader(dtypes[d], reshaped != 0);
                sdlf_plan *plan = NULL;
                if (CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 2, .forward = calculator})))
                    check_tokens(plan, dtypes[d]);
                sdlf_plan_free(plan);
                sdlf_model_free(net);
                sdlf_calculator_close(calculator);
            }
}

/* A gather of two inputs; indices that are only partly read, and other inputs, may have any value. */
static void only_what_is_read(void)
{
    sdlf_calculator *calculator = test_open("reference");
    sdlf_model *net = sdlf_model_create("gathers");
    sdlf_plan *plan = NULL;
    float x[5] = {1e30f, -1e30f, 3, 4, 5};
    sdlf_node table = sdlf_input(net, "table", SDLF_FLOAT32, sdlf_shape(5));
    sdlf_node whole = sdlf_input(net, "whole", SDLF_INT64, sdlf_shape(2));
    sdlf_node part = sdlf_input(net, "part", SDLF_INT64, sdlf_shape(3));
    sdlf_node first =
        sdlf_slice(net, part,
                   &(sdlf_slice_options){
                       .axes = sdlf_shape(1), .start = sdlf_shape(0), .end = sdlf_shape(1), .step = sdlf_shape(1)});
    sdlf_output(net, "y", sdlf_gather(net, table, whole, &(sdlf_gather_options){.name = "picks"}));
    sdlf_output(net, "z", sdlf_gather(net, table, first, NULL));
    CHECK_OK(sdlf_model_build(net, 1));
    if (CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = calculator}))) {
        CHECK_OK(test_plan_write(plan, "table", x));
        CHECK_OK(test_plan_write(plan, "whole", (int64_t[]){4, -5}));
        CHECK_OK(test_plan_write(plan, "part", (int64_t[]){2, 99, 99}));
        CHECK_FAILS(test_plan_write(plan, "whole", (int64_t[]){4, 5}), SDLF_ERROR_ARGUMENT,
                    "gather 'picks': index 5, at [0,1] of input 'whole', is out of range: expected -5 to 4");
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(calculator);
}

/* Training and testing on data with an out-of-range token. */
static void data_sets(void)
{
    static float samples[SAMPLES * TOKENS];
    static int32_t labels[SAMPLES];
    sdlf_dataset data = {.samples = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(SAMPLES, TOKENS), samples),
                         .labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(SAMPLES), labels),
                         .class_count = 3,
                         .scale = 1};
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        const char *name = test_calculator_class_at(i)->name;
        sdlf_calculator *calculator = test_open(name);
        for (int wrong = 0; wrong < 2; wrong++) {
            sdlf_model *net = reader(SDLF_FLOAT32, false);
            sdlf_trainer *trainer = NULL;
            sdlf_evaluation evaluation = {0};
            const sdlf_trainer_options options = {.batch = 4, .epochs = 1, .forward = name};
            samples[5 * TOKENS + 3] = wrong ? VOCABULARY : 1;
            sdlf_status status = sdlf_trainer_create(&trainer, net, &data, NULL, &options);
            if (status == SDLF_OK) status = sdlf_trainer_run(trainer);
            if (wrong)
                CHECK_FAILS(status, SDLF_ERROR_ARGUMENT, "embedding 'words': index 7, at [");
            else
                CHECK_OK(status);
            sdlf_trainer_free(trainer);
            status = sdlf_evaluate(&evaluation, net, &data, calculator, 4);
            if (wrong)
                CHECK_FAILS(status, SDLF_ERROR_ARGUMENT, "embedding 'words': index 7, at [1,3] of input 'tokens'");
            else
                CHECK_OK(status);
            sdlf_evaluation_release(&evaluation);
            sdlf_model_free(net);
        }
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(tokens_of_every_type);
    RUN(only_what_is_read);
    RUN(data_sets);
    return test_summary();
}
