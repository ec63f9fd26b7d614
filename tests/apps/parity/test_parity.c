/* SPDX-License-Identifier: MIT */
/* sdlf parity: every calculator against the reference, and one that computes wrongly. */
#include "testing.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/capture.h"
#include "apps/command.h"
#include "apps/parity/run.h"
#include "apps/program.h"
#include "apps/system/interrupt.h"
#include "framework/plan/networks.h"

/* Two networks, two calculators, one comparison. */
static parity_result compare(sdlf_model *(*make)(void), sdlf_calculator *a, sdlf_calculator *b, sdlf_mode mode,
                             sdlf_dtype dtype, bool own)
{
    parity_options options = {.calculator = {a, b},
                              .batch = 6,
                              .mode = mode,
                              .dtype = dtype,
                              .tolerance = parity_tolerance(dtype, SDLF_MATH_FP32, SDLF_MATH_FP32),
                              .seed = 3,
                              .own_activations = own};
    parity_result result = {.first = -1};
    for (int side = 0; side < 2; side++) {
        options.model[side] = make();
        CHECK_OK(sdlf_model_build(options.model[side], 1));
    }
    CHECK_OK(parity_run(&result, &options));
    for (int i = 0; i < result.count; i++) { /* names are the models' */
        CHECK(result.entry[i].within == (result.entry[i].error.largest <= options.tolerance));
        result.entry[i].layer = result.entry[i].parameter = NULL;
    }
    sdlf_model_free(options.model[0]);
    sdlf_model_free(options.model[1]);
    return result;
}

static sdlf_model *branching(void)
{
    return branching_net(0.25f);
}

static int count_kind(const parity_result *r, parity_kind kind)
{
    int count = 0;
    for (int i = 0; i < r->count; i++) count += r->entry[i].kind == kind;
    return count;
}

/* Residual additions, concatenation, batch normalisation, dropout, two inputs and two outputs. */
static void all_calculators_agree(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    for (int i = 0; test_calculator_class_at(i); i++) {
        sdlf_calculator *other = NULL;
        CHECK_OK(sdlf_calculator_open(&other, test_calculator_class_at(i)->name, NULL));
        parity_result r = compare(branching, reference, other, SDLF_TRAIN, SDLF_FLOAT32, false);
        CHECK_EQUAL(r.first, -1);
        CHECK_EQUAL(count_kind(&r, PARITY_OUTPUT), 13);
        CHECK_EQUAL(count_kind(&r, PARITY_GRADIENT), 10); /* all but softmax, the side output's and the loss */
        CHECK_EQUAL(count_kind(&r, PARITY_PARAMETER), 8);
        CHECK_EQUAL(count_kind(&r, PARITY_STATISTIC), 2);
        parity_release(&r);
        r = compare(branching, reference, other, SDLF_INFER, SDLF_FLOAT64, false);
        CHECK_EQUAL(r.first, -1);
        CHECK_EQUAL(count_kind(&r, PARITY_OUTPUT), r.count);
        CHECK(r.count == 12);
        parity_release(&r);
        sdlf_calculator_close(other);
    }
    sdlf_calculator_close(reference);
}

/* With labels and its own loss, on a data set and on random inputs. */
static sdlf_model *with_loss(void)
{
    sdlf_model *net = sdlf_model_create("with_loss");
    sdlf_node labels = sdlf_input(net, "digit", SDLF_INT32, SDLF_SCALAR);
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 28, 28));
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 10});
    sdlf_output(net, "class", x);
    sdlf_softmax_cross_entropy(net, x, labels, NULL);
    return net;
}

static void a_loss_of_its_own(void)
{
    sdlf_calculator *reference = NULL, *cpu = NULL;
    sdlf_dataset *digits = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    CHECK_OK(sdlf_dataset_open(&digits, "digits:10", SDLF_SPLIT_TRAIN));
    for (int random = 0; random < 2; random++) {
        parity_options options = {.calculator = {reference, cpu},
                                  .data = random ? NULL : digits,
                                  .batch = 10,
                                  .mode = SDLF_TRAIN,
                                  .dtype = SDLF_FLOAT32,
                                  .tolerance = 2e-5,
                                  .seed = 1};
        for (int side = 0; side < 2; side++) {
            options.model[side] = with_loss();
            CHECK_OK(sdlf_model_build(options.model[side], 1));
        }
        parity_result r;
        CHECK_OK(parity_run(&r, &options));
        CHECK_EQUAL(r.first, -1);
        CHECK_EQUAL(count_kind(&r, PARITY_PARAMETER), 2);
        CHECK_EQUAL(count_kind(&r, PARITY_OUTPUT), 2);
        parity_release(&r);
        sdlf_model_free(options.model[0]);
        sdlf_model_free(options.model[1]);
    }
    sdlf_dataset_free(digits);
    sdlf_calculator_close(cpu);
    sdlf_calculator_close(reference);
}

/* ---- a calculator that computes wrongly ---- */

static sdlf_calculator_class crooked_class;
static sdlf_operation_kind crooked_kind;
static int crooked_calls, crooked_at;

/* Computes like the reference, except for one value of one call. */
static sdlf_status run_crooked(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    sdlf_status status = sdlf_calculator_class_at(0)->kernel[operation->kind].run(calculator, operation);
    float *out = operation->out[0].data;
    if (operation->kind == crooked_kind && crooked_calls++ == crooked_at) out[1] += 1;
    return status;
}

static sdlf_calculator *make_crooked(sdlf_operation_kind kind, int call)
{
    crooked_class = *sdlf_calculator_class_at(0);
    crooked_class.name = "crooked";
    crooked_class.kernel[kind].run = run_crooked;
    crooked_kind = kind;
    crooked_calls = 0;
    crooked_at = call;
    sdlf_calculator *made = calloc(1, crooked_class.size);
    made->type = &crooked_class;
    made->space = "host";
    return made;
}

static void check_crooked(sdlf_operation_kind kind, int call, parity_kind found, const char *layer,
                          const char *parameter)
{
    sdlf_calculator *reference = NULL, *crooked = make_crooked(kind, call);
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    parity_options options = {.calculator = {reference, crooked},
                              .batch = 4,
                              .mode = SDLF_TRAIN,
                              .dtype = SDLF_FLOAT32,
                              .tolerance = 2e-5,
                              .seed = 1};
    for (int side = 0; side < 2; side++) {
        options.model[side] = small_cnn();
        CHECK_OK(sdlf_model_build(options.model[side], 1));
    }
    parity_result r;
    CHECK_OK(parity_run(&r, &options));
    if (CHECK(r.first >= 0)) {
        const parity_entry *first = &r.entry[r.first];
        CHECK_TEXT(parity_kind_names[first->kind], parity_kind_names[found]);
        CHECK_TEXT(first->layer, layer);
        CHECK_TEXT(first->parameter ? first->parameter : "", parameter);
        CHECK_EQUAL(first->error.element, 1);
    }
    parity_release(&r);
    sdlf_model_free(options.model[0]);
    sdlf_model_free(options.model[1]);
    free(crooked);
    sdlf_calculator_close(reference);
}

static void what_is_wrong_is_named(void)
{
    check_crooked(SDLF_CONV2D_FORWARD, 0, PARITY_OUTPUT, "conv2d", "");
    check_crooked(SDLF_MAX_POOL2D_FORWARD, 0, PARITY_OUTPUT, "max_pool2d", "");
    check_crooked(SDLF_ACTIVATION_FORWARD, 1, PARITY_OUTPUT, "relu_2", "");
    check_crooked(SDLF_CONV2D_BACKWARD_WEIGHTS, 0, PARITY_PARAMETER, "conv2d", "conv2d.weight");
    check_crooked(SDLF_MAX_POOL2D_BACKWARD, 0, PARITY_GRADIENT, "relu", "");
    check_crooked(SDLF_ACTIVATION_BACKWARD, 1, PARITY_GRADIENT, "conv2d", "");
}

/* Computes like the reference, except that ReLU's first zero becomes a very small number. */
static sdlf_status run_rounded(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    sdlf_status status = sdlf_calculator_class_at(0)->kernel[operation->kind].run(calculator, operation);
    float *out = operation->out[0].data;
    int64_t count = sdlf_tensor_count(&operation->out[0]), at = 0;
    while (at < count && out[at] != 0) at++;
    if (CHECK(at < count)) out[at] = 1e-8f;
    return status;
}

/* Near a kink, rounding decides whether a gradient is zero. This is not reported as a mistake. */
static void kinks_are_no_mistakes(void)
{
    for (int own = 0; own < 2; own++) {
        sdlf_calculator *reference = NULL, *rounded = make_crooked(SDLF_ACTIVATION_FORWARD, 0);
        crooked_class.kernel[SDLF_ACTIVATION_FORWARD].run = run_rounded;
        CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
        parity_result r = compare(small_cnn, reference, rounded, SDLF_TRAIN, SDLF_FLOAT32, own == 1);
        CHECK((r.first < 0) == (own == 0));
        if (r.first >= 0) CHECK(r.entry[r.first].kind == PARITY_GRADIENT);
        parity_release(&r);
        free(rounded);
        sdlf_calculator_close(reference);
    }
}

/* ---- the command ---- */

static void the_program(void)
{
    const char *weights = test_path("w.safetensors");
    char path[512];
    snprintf(path, sizeof path, "%s", weights);
    SDLF(0, "train", "--net", small_network(), "--data", "digits:200", "--epochs", "1", "--no-test", "--out", path);
    const program *p = SDLF(0, "parity", "--weights", path, "--data", "digits:50");
    CHECK_SAYS(p, "a: reference fp32, b: cpu fp32; float32, batch 16, training");
    CHECK_SAYS(p, "fully_connected");
    CHECK_SAYS(p, "agree  no error above 2e-05");
    CHECK_SAYS(SDLF(0, "parity", "--weights", path, "--data", "digits:50", "--dtype", "float64"), "inference");
    p = SDLF(3, "parity", "--weights", path, "--data", "digits:50", "--tolerance", "0", "--batch", "50");
    CHECK_SAYS(p, "differ layer ");
    CHECK_SAYS(p, "is the first beyond 0e+00: the output of ");
    CHECK_SAYS(p, "beyond\n");
    p = SDLF(3, "parity", "--weights", path, "--data", "random", "--tolerance", "1e-12", "--json");
    json_t *json = json_loads(p->out, 0, NULL);
    CHECK(json_is_false(json_object_get(json, "agree")));
    CHECK_TEXT(json_string_value(json_object_get(json_object_get(json, "first"), "what")), "output");
    CHECK(json_array_size(json_object_get(json, "tensors")) > 10);
    CHECK_TEXT(json_string_value(json_object_get(json, "data")), "random");
    json_decref(json);
}

static void the_pretended_device(void)
{
    json_t *json = CAPTURE_JSON(parity_command.run, "--a", "cpu", "--b", "guarded", "--net", small_network(), "--data",
                                "digits:20", "--json");
    CHECK(json_is_true(json_object_get(json, "agree")));
    CHECK_TEXT(json_string_value(json_object_get(json_object_get(json, "b"), "calculator")), "guarded");
    json_decref(json);
}

static void what_cannot_be(void)
{
    CHECK_SAYS(SDLF(2, "parity", "--b", "abacus"), "--b abacus: no calculator 'abacus'; there are: ");
    CHECK_SAYS(SDLF(2, "parity", "--a", "cpu:tf32"), "--a cpu:tf32: the cpu calculator computes only in fp32");
    CHECK_SAYS(SDLF(2, "parity", "--a", "cpu:fp7"), "--a cpu:fp7: there is no math mode 'fp7'");
    CHECK_SAYS(SDLF(2, "parity", "--net", "mlp", "--data", "digits:5"), "--batch 16: ");
    CHECK_SAYS(SDLF(2, "parity", "--dtype", "float16"), "expected one of float32, float64");
    CHECK_SAYS(SDLF(0, "parity", "--a", "cpu:fp32", "--net", "mlp", "--data", "digits:16"), "agree");
    CHECK_SAYS(SDLF(0, "--help"), "Exit codes");
}

/* Must be the last test, since the signal stays received. */
static void a_signal_ends_it(void)
{
    sdlf_calculator *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    parity_result whole = compare(small_cnn, reference, reference, SDLF_TRAIN, SDLF_FLOAT32, false);
    CHECK(whole.all && whole.count > 0);
    interrupt_waits();
    raise(SIGINT);
    interrupt_stops(NULL);
    parity_result cut = compare(small_cnn, reference, reference, SDLF_TRAIN, SDLF_FLOAT32, false);
    CHECK(!cut.all);
    CHECK_EQUAL(cut.count, 0);
    parity_release(&whole);
    parity_release(&cut);
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(all_calculators_agree);
    RUN(a_loss_of_its_own);
    RUN(what_is_wrong_is_named);
    RUN(kinks_are_no_mistakes);
    RUN(the_program);
    RUN(the_pretended_device);
    RUN(what_cannot_be);
    RUN(a_signal_ends_it);
    return test_summary();
}
