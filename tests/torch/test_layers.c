/* SPDX-License-Identifier: MIT */
/* Every layer's output and gradients compared with PyTorch's, on every calculator, fused and unfused. */
#include "torch/fixtures.h"

enum { ROOM = 4096 };

/* Products and sums of a few dozen terms near 1, in float32, by two libraries. */
static const double absolute = 3e-6, relative = 3e-6;

static sdlf_model *case_model(const json_t *c)
{
    char *text = json_dumps(json_object_get(c, "network"), JSON_COMPACT);
    sdlf_model *model = NULL;
    const char *key;
    json_t *value;
    if (!CHECK_OK(sdlf_network_parse(&model, text, strlen(text), fixture_text(c, "name"))) ||
        !CHECK_OK(sdlf_model_build(model, 1))) {
        free(text);
        sdlf_model_free(model);
        return NULL;
    }
    free(text);
    size_t named = json_object_size(json_object_get(c, "parameters"));
    CHECK_EQUAL(sdlf_model_parameter_count(model), (int64_t)named);
    json_object_foreach(json_object_get(c, "parameters"), key, value)
    {
        sdlf_parameter *parameter = sdlf_model_find_parameter(model, key);
        if (!CHECK(parameter != NULL)) continue;
        int64_t count = sdlf_tensor_count(&parameter->value);
        CHECK_EQUAL(fixture_floats(value, parameter->value.data, count), count);
    }
    return model;
}

static void write_inputs(const json_t *c, sdlf_plan *plan, bool training)
{
    int64_t batch = (int64_t)fixture_number(c, "batch", 0);
    float *eye = calloc((size_t)(batch * batch), sizeof *eye);
    int32_t *labels = calloc((size_t)batch, sizeof *labels);
    for (int64_t n = 0; n < batch; n++) {
        eye[n * batch + n] = 1;
        labels[n] = (int32_t)json_integer_value(json_array_get(json_object_get(c, "labels"), (size_t)n));
    }
    CHECK_OK(test_plan_write(plan, "eye", eye));
    if (training) CHECK_OK(test_plan_write(plan, "labels", labels));
    free(eye);
    free(labels);
}

static void check_output(const json_t *c, sdlf_plan *plan, const char *what)
{
    sdlf_binding binding;
    float *values = malloc(ROOM * sizeof *values);
    if (CHECK_OK(sdlf_plan_output(plan, "y", &binding)) && CHECK(sdlf_tensor_count(&binding.tensor) <= ROOM)) {
        CHECK_OK(test_plan_read(plan, "y", values));
        fixture_close(json_object_get(c, "output"), values, sdlf_tensor_count(&binding.tensor), absolute, relative,
                      what, "output");
    }
    free(values);
}

static void check_gradients(const json_t *c, sdlf_plan *plan, sdlf_model *model, const char *what)
{
    const char *key;
    json_t *value;
    float loss = 0, *values = malloc(ROOM * sizeof *values);
    CHECK_OK(test_plan_read(plan, "loss", &loss));
    CHECK_CLOSE(loss, fixture_number(c, "loss", NAN), 1e-6);
    json_object_foreach(json_object_get(c, "gradients"), key, value)
    {
        sdlf_binding binding;
        if (!CHECK_OK(sdlf_plan_gradient(plan, key, &binding))) continue;
        if (!CHECK(sdlf_tensor_count(&binding.tensor) <= ROOM) || !test_download(&binding, values)) continue;
        fixture_close(value, values, sdlf_tensor_count(&binding.tensor), absolute, relative, what, key);
    }
    free(values);
    CHECK_OK(sdlf_plan_store_parameters(plan));
    json_object_foreach(json_object_get(c, "after"), key, value)
    {
        const sdlf_parameter *parameter = sdlf_model_find_parameter(model, key);
        fixture_close(value, parameter->value.data, sdlf_tensor_count(&parameter->value), absolute, relative, what,
                      key);
    }
}

static void check_case(const json_t *c, sdlf_calculator *calculator, bool no_fusion)
{
    bool training = strcmp(fixture_text(c, "mode"), "train") == 0;
    char what[128];
    snprintf(what, sizeof what, "%s on %s, %s", fixture_text(c, "name"), calculator->type->name,
             no_fusion ? "unfused" : "fused");
    sdlf_model *model = case_model(c);
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {
        .batch = (int64_t)fixture_number(c, "batch", 0),
        .mode = training ? SDLF_TRAIN : SDLF_INFER,
        .forward = calculator,
        .no_fusion = no_fusion,
        .gradients_only = training,
    };
    if (model != NULL && CHECK_OK(sdlf_plan_create(&plan, model, &options))) {
        write_inputs(c, plan, training);
        CHECK_OK(training ? sdlf_plan_step(plan, 0) : sdlf_plan_forward(plan));
        CHECK_OK(sdlf_plan_synchronize(plan));
        check_output(c, plan, what);
        if (training) check_gradients(c, plan, model, what);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(model);
}

static void layers_agree(void)
{
    json_t *root = fixtures_open("torch_layers.json"), *c;
    size_t index;
    for (int which = 0; test_calculator_class_at(which) != NULL; which++) {
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(which)->name, NULL));
        json_array_foreach(json_object_get(root, "cases"), index, c)
        {
            check_case(c, calculator, true);
            check_case(c, calculator, false);
        }
        sdlf_calculator_close(calculator);
    }
    json_decref(root);
}

/* Every original layer of SDLF has a case; a new layer need not have one. */
static void the_first_layers_have_cases(void)
{
    json_t *root = fixtures_open("torch_layers.json"), *c;
    size_t index;
    int covered = 0;
    for (int which = 0; sdlf_layer_class_at(which) != NULL; which++) {
        const char *name = sdlf_layer_class_at(which)->name;
        bool found = false;
        json_array_foreach(json_object_get(root, "cases"), index, c) found =
            found || strncmp(fixture_text(c, "name"), name, strlen(name)) == 0;
        covered += found;
    }
    CHECK(covered >= 20);
    json_decref(root);
}

int main(void)
{
    RUN(layers_agree);
    RUN(the_first_layers_have_cases);
    return test_summary();
}
