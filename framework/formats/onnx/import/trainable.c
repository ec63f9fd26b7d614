/* SPDX-License-Identifier: MIT */
/* Decides which constants of a graph are parameters of the network, which training changes. The format does not say: a
 * file has weights, and constants that are part of an operator's decomposition or added by an exporter.
 *
 * Float weights are parameters; scalars are only if they have a name of their own, as exporters give to parameters, but
 * not to literals of a program ("val_51", "onnx::Mul_8"). Scales that are all 1 and shifts that are all 0 are
 * artificial if they are no weights, have no name of their own, or are also the statistics of another node. */
#include "framework/formats/onnx/import/import.h"

#include <ctype.h>
#include <string.h>

/* True for letters, digits, points and underscores, as in variable names; false for exporters' numbered names. */
static bool has_own_name(const onnx_tensor *tensor)
{
    const char *name = tensor->name;
    if (!isalpha((unsigned char)name[0]) && name[0] != '_') return false;
    for (const char *at = name; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && *at != '_' && *at != '.') return false;
    static const char *const numbered[] = {"val_", "_val_", "const", "Const", "initializer_"};
    for (size_t i = 0; i < sizeof numbered / sizeof numbered[0]; i++)
        if (strncmp(name, numbered[i], strlen(numbered[i])) == 0) return false;
    return true;
}

bool onnx_is_trainable(const onnx_import *import, const onnx_tensor *tensor)
{
    if (import->options->leave_weights || !sdlf_dtype_is_float(onnx_type_dtype(tensor->type))) return false;
    return tensor->count > 1 || has_own_name(tensor);
}

/* True if it is read as the running mean or variance of a batch normalisation. */
static bool is_statistic(const onnx_import *import, const onnx_tensor *tensor)
{
    for (int n = 0; n < import->file->node_count; n++) {
        const Onnx__NodeProto *node = import->file->node[n];
        if (node->op_type == NULL || strcmp(node->op_type, "BatchNormalization") != 0) continue;
        for (size_t i = 3; i < node->n_input; i++)
            if (strcmp(node->input[i], tensor->name) == 0) return true;
    }
    return false;
}

static bool is_all(const onnx_tensor *tensor, double value)
{
    for (int64_t i = 0; i < tensor->count; i++) {
        double element;
        onnx_tensor_convert(tensor, i, 1, SDLF_FLOAT64, &element);
        if (element < value || element > value || tensor->uniform) return !(element < value || element > value);
    }
    return true;
}

void onnx_fill_scale(onnx_context *c, onnx_flow y, const char *parameter, const onnx_tensor *tensor, double neutral)
{
    static const onnx_tensor nothing = {.name = "", .type = ONNX_UNDEFINED};
    onnx_fill_with(c, y, parameter, (onnx_fill){.tensor = tensor != NULL ? *tensor : nothing, .value = neutral});
    if (!onnx_ok(c)) return;
    bool own = tensor != NULL && tensor->learned && has_own_name(tensor) && !is_statistic(c->import, tensor);
    if (own || (tensor != NULL && !is_all(tensor, neutral))) return;
    if (model_freeze(c->import->model, y.node.layer, parameter) != SDLF_OK) onnx_no_memory(c);
}
