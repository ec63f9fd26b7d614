/* SPDX-License-Identifier: MIT */
/* Networks exported by PyTorch: training continues as in PyTorch, for every parameter of the network and nothing else;
 * and inference at batch sizes other than the file's matches onnxruntime. scripts/make-onnx-fixtures.py wrote the
 * fixtures. */
#include "testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "onnx/fixtures.h"

enum { SAMPLES = 7, CLASSES = 5, STEPS = 10, IMAGE = 3 * 16 * 16 };

/* The contents of a fixture's folder, in float64. */
typedef struct expectation {
    const char *folder;
    double image[SAMPLES * IMAGE];
    int32_t labels[SAMPLES];
    double before[SAMPLES * CLASSES], losses[STEPS], after[SAMPLES * CLASSES];
} expectation;

static bool read_doubles(const char *folder, const char *name, double *values, int64_t count)
{
    char path[700];
    sdlf_tensor tensor;
    snprintf(path, sizeof path, "%s/%s.pb", folder, name);
    if (!CHECK_OK(sdlf_tensor_read_file(&tensor, path))) return false;
    bool fits = CHECK_EQUAL(sdlf_tensor_count(&tensor), count);
    if (fits) sdlf_convert(SDLF_FLOAT64, values, tensor.dtype, tensor.data, count);
    sdlf_tensor_release(&tensor, NULL);
    return fits;
}

static bool read_expectation(expectation *e, const char *folder)
{
    double labels[SAMPLES];
    e->folder = folder;
    bool ok = read_doubles(folder, "../images", e->image, SAMPLES * IMAGE) &&
              read_doubles(folder, "../labels", labels, SAMPLES) &&
              read_doubles(folder, "before", e->before, SAMPLES * CLASSES) &&
              read_doubles(folder, "losses", e->losses, STEPS) &&
              read_doubles(folder, "after", e->after, SAMPLES * CLASSES);
    for (int i = 0; i < SAMPLES && ok; i++) e->labels[i] = (int32_t)labels[i];
    return ok;
}

static void write_images(sdlf_plan *plan, const expectation *e, sdlf_dtype dtype, int first, int count)
{
    double values[SAMPLES * IMAGE]; /* for either type */
    sdlf_convert(dtype, values, SDLF_FLOAT64, e->image + first * IMAGE, count * IMAGE);
    CHECK_OK(test_plan_write(plan, "image", values));
}

/* Compare the scores of all samples, `batch` at a time, with the expected ones. */
static void check_scores(const expectation *e, sdlf_model *model, sdlf_calculator *calculator, sdlf_dtype dtype,
                         int batch, const double *expected, double tolerance, const char *when)
{
    sdlf_plan *plan = NULL;
    double worst = 0, largest = 0;
    if (!CHECK_OK(sdlf_plan_create(&plan, model,
                                   &(sdlf_plan_options){.batch = batch, .forward = calculator, .dtype = dtype})))
        return;
    for (int first = 0; first + batch <= SAMPLES; first += batch) {
        double raw[SAMPLES * CLASSES], found[SAMPLES * CLASSES];
        write_images(plan, e, dtype, first, batch);
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "class", raw));
        sdlf_convert(SDLF_FLOAT64, found, dtype, raw, batch * CLASSES);
        for (int i = 0; i < batch * CLASSES; i++) {
            worst = fmax(worst, fabs(found[i] - expected[first * CLASSES + i]));
            largest = fmax(largest, fabs(expected[first * CLASSES + i]));
        }
    }
    if (!CHECK(worst <= tolerance * largest))
        printf("    %s on %s, %s, batch %d, %s: off by %g of %g\n", e->folder, calculator->type->name,
               sdlf_dtype_name(dtype), batch, when, worst, largest);
    sdlf_plan_free(plan);
}

/* Tolerances: files have float32; in float64 only this rounding differs, in float32 every sum is rounded, and training
 * amplifies that. */
static void train(const expectation *e, sdlf_model *model, sdlf_calculator *calculator, sdlf_dtype dtype)
{
    sdlf_plan *plan = NULL;
    bool wide = dtype == SDLF_FLOAT64;
    if (!CHECK_OK(sdlf_plan_create(&plan, model,
                                   &(sdlf_plan_options){.batch = SAMPLES,
                                                        .mode = SDLF_TRAIN,
                                                        .forward = calculator,
                                                        .dtype = dtype,
                                                        .optimizer = sdlf_sgd(.momentum = 0.9f)})))
        return;
    write_images(plan, e, dtype, 0, SAMPLES);
    CHECK_OK(test_plan_write(plan, "labels", e->labels));
    for (int i = 0; i < STEPS; i++) {
        double raw = 0, loss = 0;
        CHECK_OK(sdlf_plan_step(plan, 0.05f));
        CHECK_OK(test_plan_read(plan, "loss", &raw));
        sdlf_convert(SDLF_FLOAT64, &loss, dtype, &raw, 1);
        double rounding = wide ? 0 : 1e-7; /* a logit of about 1, in float32 */
        if (!CHECK(fabs(loss - e->losses[i]) <= (wide ? 1e-6 : 1e-5) * e->losses[i] + rounding))
            printf("    %s on %s, %s, step %d: loss %.9g, expected %.9g\n", e->folder, calculator->type->name,
                   sdlf_dtype_name(dtype), i + 1, loss, e->losses[i]);
    }
    CHECK_OK(sdlf_plan_store_parameters(plan));
    sdlf_plan_free(plan);
    check_scores(e, model, calculator, dtype, SAMPLES, e->after, wide ? 2e-6 : 3e-5, "trained");
}

static void check(const char *folder, const char *calculator_name)
{
    static const int batches[] = {1, 2, 7};
    expectation *e = malloc(sizeof *e);
    char path[700];
    sdlf_calculator *calculator = test_open(calculator_name);
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    if (e == NULL || !read_expectation(e, folder)) {
        CHECK(e != NULL);
        free(e);
        sdlf_calculator_close(calculator);
        return;
    }
    for (int i = 0; i < 2; i++) {
        sdlf_dtype dtype = i == 0 ? SDLF_FLOAT64 : SDLF_FLOAT32;
        sdlf_model *model = NULL;
        if (!CHECK_OK(sdlf_model_from_onnx(&model, path, NULL))) continue;
        for (int k = 0; k < 3; k++)
            check_scores(e, model, calculator, dtype, batches[k], e->before, 1e-5, "as it comes");
        train(e, model, calculator, dtype);
        sdlf_model_free(model);
    }
    sdlf_calculator_close(calculator);
    free(e);
}

/* The network's parameters according to PyTorch: all of them are trained, and nothing else. */
static const struct {
    const char *name;
    int64_t trained;
} networks[] = {{"convnext", 3733},       {"mixer", 1245},        {"vit", 1197},
                {"vit_fixed", 1197},      {"vit_exported", 1197}, {"norms", 1186},
                {"norms_exported", 1186}, {"group_scales", 1045}};
enum { COUNT = sizeof networks / sizeof networks[0] };

static void what_the_network_has_is_trained(void)
{
    for (int i = 0; i < COUNT; i++) {
        sdlf_model *model = NULL;
        const char *path = onnx_fixture("training", networks[i].name);
        char file[700];
        snprintf(file, sizeof file, "%s/model.onnx", path);
        if (!CHECK_OK(sdlf_model_from_onnx(&model, file, NULL))) continue;
        if (!CHECK_EQUAL(sdlf_model_trainable_count(model), networks[i].trained)) printf("    %s\n", networks[i].name);
        sdlf_model_free(model);
        sdlf_status status = sdlf_model_from_onnx(&model, file, &(sdlf_onnx_options){.batch = 2});
        if (status == SDLF_ERROR_ARGUMENT) /* its batch is 1 in the file */
            status = sdlf_model_from_onnx(&model, file, &(sdlf_onnx_options){.batch = 1});
        CHECK_OK(status); /* however the batch is given */
        CHECK_EQUAL(sdlf_model_trainable_count(model), networks[i].trained);
        sdlf_model_free(model);
    }
}

/* Parameters that are values of the graph keep their names. */
static void values_have_their_own_names(void)
{
    static const char *const names[] = {"class_token.value", "positions.value"};
    sdlf_model *model = NULL;
    CHECK_OK(sdlf_model_from_onnx(&model, onnx_fixture("training", "vit/model.onnx"), NULL));
    for (int i = 0; i < 2; i++) {
        const sdlf_parameter *parameter = sdlf_model_find_parameter(model, names[i]);
        CHECK(parameter != NULL && parameter->spec.trainable);
    }
    sdlf_model_free(model);
    CHECK_OK(sdlf_model_from_onnx(&model, onnx_fixture("training", "norms/model.onnx"), NULL));
    const sdlf_parameter *gain = sdlf_model_find_parameter(model, "gain.value");
    CHECK(gain != NULL && gain->spec.trainable);
    sdlf_model_free(model);
}

/* Trained through a file, and exported with an open batch: the same scores. */
static void exports_keep_the_batch_open(void)
{
    sdlf_calculator *calculator = test_open("cpu");
    expectation *e = malloc(sizeof *e);
    for (int i = 0; i < COUNT && e != NULL; i++) {
        char folder[600], file[700];
        sdlf_model *model = NULL, *again = NULL;
        sdlf_onnx_exported exported;
        snprintf(folder, sizeof folder, "%s", onnx_fixture("training", networks[i].name));
        snprintf(file, sizeof file, "%s/model.onnx", folder);
        if (!read_expectation(e, folder) || !CHECK_OK(sdlf_model_from_onnx(&model, file, NULL))) continue;
        CHECK_OK(sdlf_model_to_onnx(model, test_path("again.onnx"), NULL, &exported));
        if (!CHECK(!exported.fixed_batch)) printf("    %s\n", networks[i].name);
        CHECK_OK(sdlf_model_from_onnx(&again, test_path("again.onnx"), NULL));
        check_scores(e, again, calculator, SDLF_FLOAT32, SAMPLES, e->before, 1e-5, "exported");
        sdlf_model_free(again);
        again = NULL;
        CHECK_OK(sdlf_model_save(model, test_path("again.safetensors")));
        CHECK_OK(sdlf_model_open(&again, test_path("again.safetensors")));
        CHECK_EQUAL(sdlf_model_trainable_count(again), networks[i].trained);
        check_scores(e, again, calculator, SDLF_FLOAT32, SAMPLES, e->before, 1e-5, "saved");
        sdlf_model_free(again);
        sdlf_model_free(model);
    }
    free(e);
    sdlf_calculator_close(calculator);
}

/* Replacing the head of an imported network keeps its other weights. */
static void another_head_leaves_the_weights(void)
{
    sdlf_model *model = NULL, *before = NULL;
    const char *path = onnx_fixture("training", "vit/model.onnx");
    CHECK_OK(sdlf_model_from_onnx(&before, path, NULL));
    CHECK_OK(sdlf_model_from_onnx(&model, path, NULL));
    int old = sdlf_model_parameter_count(model);
    sdlf_node features = sdlf_model_layer_input(model, sdlf_model_output(model, 0).layer, 0);
    sdlf_node x = sdlf_relu(model, features);
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = "mine", .units = 3});
    sdlf_model_clear_outputs(model);
    sdlf_output(model, "class", x);
    CHECK_OK(sdlf_model_build(model, 9));
    CHECK_EQUAL(sdlf_model_parameter_count(model), old + 2);
    for (int i = 0; i < old; i++) {
        const sdlf_parameter *a = sdlf_model_parameter(before, i), *b = sdlf_model_parameter(model, i);
        CHECK_TEXT(b->name, a->name);
        CHECK(memcmp(a->value.data, b->value.data, (size_t)sdlf_tensor_bytes(&a->value)) == 0);
    }
    sdlf_calculator *calculator = test_open("cpu");
    sdlf_plan *plan = NULL;
    uint32_t hash = sdlf_model_hash(model);
    CHECK_OK(
        sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 2, .mode = SDLF_TRAIN, .forward = calculator}));
    CHECK_OK(test_plan_write(plan, "labels", (int32_t[]){0, 2}));
    float images[2 * IMAGE] = {1, 2, 3};
    CHECK_OK(test_plan_write(plan, "image", images));
    CHECK_OK(sdlf_plan_step(plan, 0.1f));
    CHECK_OK(sdlf_plan_store_parameters(plan));
    CHECK(sdlf_model_hash(model) != hash);
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
    sdlf_model_free(before);
}

static void networks_train_as_in_pytorch(void)
{
    const sdlf_calculator_class *type;
    for (int k = 0; (type = test_calculator_class_at(k)) != NULL; k++)
        for (int i = 0; i < COUNT; i++) check(onnx_fixture("training", networks[i].name), type->name);
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(networks_train_as_in_pytorch);
    RUN(what_the_network_has_is_trained);
    RUN(values_have_their_own_names);
    RUN(exports_keep_the_batch_open);
    RUN(another_head_leaves_the_weights);
    return test_summary();
}
