/* SPDX-License-Identifier: MIT */
/* Parameters whose values were left in a file, until a plan takes them from there. */
#include "framework/heap.h"
#include "framework/model_internal.h"

void model_defer_values(sdlf_model *model, model_source source)
{
    model->source = source;
    model->built = true;
}

sdlf_status model_fetch_values(sdlf_model *model, int parameter)
{
    sdlf_parameter *wanted = &model->parameters[parameter];
    if (wanted->value.data != NULL || model->source.file == NULL) return SDLF_OK;
    sdlf_status status = sdlf_tensor_create(&wanted->value, NULL, SDLF_FLOAT32, wanted->spec.shape);
    if (status == SDLF_OK)
        status =
            model->source.read(model->source.file, parameter, 0, sdlf_tensor_count(&wanted->value), wanted->value.data);
    if (status == SDLF_OK) return SDLF_OK;
    sdlf_tensor_release(&wanted->value, NULL);
    return sdlf_fail_context(status, "parameter %s", wanted->name);
}

bool model_reads_pieces(const sdlf_model *model, int parameter)
{
    return model->source.file != NULL && model->parameters[parameter].value.data == NULL &&
           model->source.in_pieces(model->source.file, parameter);
}

sdlf_status model_read_values(sdlf_model *model, int parameter, int64_t first, int64_t count, float *values)
{
    return sdlf_fail_context(model->source.read(model->source.file, parameter, first, count, values), "parameter %s",
                             model->parameters[parameter].name);
}

void model_drop_values(sdlf_model *model, int parameter)
{
    sdlf_tensor *value = &model->parameters[parameter].value;
    sdlf_heap_discard(value->data, sdlf_tensor_bytes(value));
    sdlf_tensor_release(value, NULL);
}

void model_close_source(sdlf_model *model)
{
    if (model->source.file != NULL) model->source.close(model->source.file);
    model->source = (model_source){0};
}
