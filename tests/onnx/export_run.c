/* SPDX-License-Identifier: MIT */
/* Building and running the models of the cases. See export_cases.h. */
#include "onnx/export_cases.h"

#include <stdlib.h>
#include <string.h>

/* Reproducible pseudo-random values in [-1, 1], never the same twice in a row. */
static float drawn(int64_t i, int stream)
{
    return (float)((i * 7919 + stream * 104729 + 12345) % 20011) / 10005.0f - 1;
}

/* ---- models ---- */

/* Parameters that start as 0 or 1 get values that reveal errors; variances stay positive, integers integral. */
static void fill_parameters(sdlf_model *model)
{
    for (int p = 0; p < sdlf_model_parameter_count(model); p++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(model, p);
        const sdlf_layer *layer = sdlf_model_layer(model, parameter->layer);
        bool variance = strcmp(parameter->spec.name, "running_var") == 0;
        bool whole = strcmp(layer->type->name, "value") == 0 && ((const sdlf_value_options *)layer->options)->dtype > 0;
        float *value = parameter->value.data;
        if (parameter->spec.initializer != SDLF_INIT_ZERO && parameter->spec.initializer != SDLF_INIT_ONE) continue;
        for (int64_t i = 0; i < sdlf_tensor_count(&parameter->value); i++) {
            value[i] = drawn(i, p);
            if (variance) value[i] = value[i] + 1.5f;
            if (whole) value[i] = (float)(int)(value[i] * 100);
        }
    }
}

/* The larger networks have no layers that these lack; attention is read back as the layers of its parts, by name. */
const char *const export_builtin[] = {"simple_cnn", "lenet5", "mlp", "fast_cnn", "resnet20", "mobilenet_v2", NULL};

sdlf_model *export_case_model(const export_case *from, const char *builtin)
{
    sdlf_model *model = NULL;
    sdlf_status status = SDLF_OK;
    if (from == NULL) {
        status = sdlf_network_builtin(&model, builtin);
    } else {
        model = sdlf_model_create(from->name);
        from->build(model);
    }
    if (status == SDLF_OK) status = sdlf_model_build(model, 5);
    if (status == SDLF_OK) {
        fill_parameters(model);
        return model;
    }
    sdlf_model_free(model);
    return NULL;
}

sdlf_model *export_case_trained(const char *path)
{
    sdlf_model *model = NULL;
    sdlf_dataset *digits = NULL;
    sdlf_trainer *trainer = NULL;
    sdlf_status status = sdlf_model_from_onnx(&model, path, NULL);
    if (status == SDLF_OK) status = sdlf_dataset_open(&digits, "digits:640", SDLF_SPLIT_TRAIN);
    if (status == SDLF_OK)
        status = sdlf_trainer_create(&trainer, model, digits, NULL,
                                     &(sdlf_trainer_options){.batch = 32, .optimizer = sdlf_sgd(.momentum = 0.9f)});
    if (status == SDLF_OK) status = sdlf_trainer_run(trainer);
    sdlf_trainer_free(trainer);
    sdlf_dataset_free(digits);
    if (status == SDLF_OK) return model;
    sdlf_model_free(model);
    return NULL;
}

/* ---- runs ---- */

static const char *input_name(const sdlf_model *model, int index)
{
    return sdlf_model_layer(model, sdlf_model_input(model, index).layer)->name;
}

/* A ring graph: each node is linked to itself and its neighbours. Also creates its dense form. */
static sdlf_status make_ring(sdlf_tensor *matrix, sdlf_tensor *dense, int64_t nodes)
{
    int64_t each = nodes > 2 ? 3 : nodes;
    sdlf_status status = sdlf_csr_create(matrix, NULL, SDLF_FLOAT32, nodes, nodes, each * nodes);
    if (status == SDLF_OK) status = sdlf_tensor_create(dense, NULL, SDLF_FLOAT32, sdlf_shape(nodes, nodes));
    if (status != SDLF_OK) return status;
    float *to = dense->data;
    memset(to, 0, (size_t)(nodes * nodes) * sizeof *to);
    for (int64_t row = 0; row <= nodes; row++) sdlf_csr_offsets(matrix)[row] = each * row;
    for (int64_t i = 0; i < each * nodes; i++) {
        int64_t row = i / each, column = (row + i % each) % nodes;
        sdlf_csr_columns(matrix)[i] = (int32_t)column;
        ((float *)sdlf_csr_values(matrix))[i] = to[row * nodes + column] = drawn(i, 3);
    }
    return SDLF_OK;
}

static sdlf_status make_input(sdlf_tensor *input, sdlf_plan *plan, const char *name, int index)
{
    sdlf_binding binding;
    sdlf_status status = sdlf_plan_input(plan, name, &binding);
    if (status != SDLF_OK) return status;
    status = sdlf_tensor_create(input, NULL, binding.tensor.dtype, binding.tensor.shape);
    for (int64_t i = 0; status == SDLF_OK && i < sdlf_tensor_count(input); i++) {
        int64_t whole = i % 4;
        if (input->dtype == SDLF_FLOAT32)
            ((float *)input->data)[i] = drawn(i, index) * 0.3f;
        else
            sdlf_convert(input->dtype, (char *)input->data + (size_t)i * sdlf_dtype_size(input->dtype), SDLF_INT64,
                         &whole, 1);
    }
    return status;
}

static bool is_sparse(const sdlf_model *model)
{
    return strcmp(sdlf_model_name(model), "graph") == 0;
}

static const sdlf_tensor *find(const sdlf_tensor *tensor, const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return &tensor[i];
    return NULL;
}

const sdlf_tensor *export_run_input(const export_run_values *values, const char *name)
{
    return find(values->input, values->input_name, values->input_count, name);
}

const sdlf_tensor *export_run_output(const export_run_values *values, const char *name)
{
    return find(values->output, values->output_name, values->output_count, name);
}

static sdlf_status write_inputs(export_run_values *values, sdlf_model *model, sdlf_plan *plan,
                                const export_run_values *like)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < sdlf_model_input_count(model) && status == SDLF_OK; i++) {
        sdlf_binding binding;
        sdlf_tensor *input = &values->input[i];
        const char *name = input_name(model, i);
        values->input_name[i] = name;
        values->input_count = i + 1;
        if (sdlf_tensor_present(input)) continue;                       /* a matrix, known to the plan */
        if (sdlf_plan_input(plan, name, &binding) != SDLF_OK) continue; /* it is unread */
        const sdlf_tensor *given = like != NULL ? export_run_input(like, name) : input;
        if (given == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "there is no input '%s'", name);
        if (like == NULL) status = make_input(input, plan, name, i);
        if (status == SDLF_OK)
            status = sdlf_plan_write(plan, name, given->data, given->dtype, sdlf_tensor_bytes(given));
    }
    return status;
}

static sdlf_status read_outputs(export_run_values *values, sdlf_model *model, sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < sdlf_model_output_count(model) && status == SDLF_OK; i++) {
        sdlf_binding binding;
        const char *name = sdlf_model_output_name(model, i);
        values->output_name[i] = name;
        values->output_count = i + 1;
        status = sdlf_plan_output(plan, name, &binding);
        if (status == SDLF_OK)
            status = sdlf_tensor_create(&values->output[i], NULL, binding.tensor.dtype, binding.tensor.shape);
        if (status == SDLF_OK)
            status = sdlf_plan_read(plan, name, values->output[i].data, binding.tensor.dtype,
                                    sdlf_tensor_bytes(&binding.tensor));
    }
    return status;
}

sdlf_status export_case_run(export_run_values *values, sdlf_model *model, int64_t batch, const export_run_values *like)
{
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    sdlf_plan_constant matrix = {.input = "matrix"};
    bool sparse = is_sparse(model) && like == NULL;
    *values = (export_run_values){0};
    if (sdlf_model_output_count(model) > EXPORT_CASE_MOST)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "a case has %d outputs at most, not %d", EXPORT_CASE_MOST,
                         sdlf_model_output_count(model));
    sdlf_status status = sdlf_calculator_open(&calculator, "reference", NULL);
    if (status == SDLF_OK && sparse) status = make_ring(&matrix.tensor, &values->input[1], batch);
    if (status == SDLF_OK)
        status = sdlf_plan_create(
            &plan, model,
            &(sdlf_plan_options){
                .batch = batch, .forward = calculator, .constants = sparse ? &matrix : NULL, .constant_count = sparse});
    if (status == SDLF_OK) status = write_inputs(values, model, plan, like);
    if (status == SDLF_OK) status = sdlf_plan_forward(plan);
    if (status == SDLF_OK) status = sdlf_plan_synchronize(plan);
    if (status == SDLF_OK) status = read_outputs(values, model, plan);
    sdlf_plan_free(plan);
    sdlf_tensor_release(&matrix.tensor, NULL);
    sdlf_calculator_close(calculator);
    return status;
}

void export_run_release(export_run_values *values)
{
    for (int i = 0; i < EXPORT_CASE_MOST; i++) {
        sdlf_tensor_release(&values->input[i], NULL);
        sdlf_tensor_release(&values->output[i], NULL);
    }
    *values = (export_run_values){0};
}
