/* SPDX-License-Identifier: MIT */
/* Reductions, argmin and argmax, and top-k. */
#include "framework/formats/onnx/export/export.h"

void export_reduce(onnx_export *e)
{
    static const char *const types[SDLF_REDUCE_LAYER_FUNCTION_COUNT] = {
        [SDLF_REDUCE_LAYER_SUM] = "ReduceSum",        [SDLF_REDUCE_LAYER_MEAN] = "ReduceMean",
        [SDLF_REDUCE_LAYER_MAX] = "ReduceMax",        [SDLF_REDUCE_LAYER_MIN] = "ReduceMin",
        [SDLF_REDUCE_LAYER_PRODUCT] = "ReduceProd",   [SDLF_REDUCE_LAYER_L1] = "ReduceL1",
        [SDLF_REDUCE_LAYER_L2] = "ReduceL2",          [SDLF_REDUCE_LAYER_SUM_SQUARES] = "ReduceSumSquare",
        [SDLF_REDUCE_LAYER_LOG_SUM] = "ReduceLogSum", [SDLF_REDUCE_LAYER_LOG_SUM_EXP] = "ReduceLogSumExp",
    };
    const sdlf_reduce_options *options = export_options(e);
    bool as_input = e->opset >= 18 || options->function == SDLF_REDUCE_LAYER_SUM; /* else they are an attribute */
    const char *axes = as_input && options->axes.rank > 0 ? export_shape(e, options->axes) : "";
    export_attribute last = {0};
    if (!as_input && options->axes.rank > 0) last = export_integers("axes", options->axes);
    export_node(e, types[options->function], (const char *const[]){export_in(e, 0), axes, NULL},
                (const export_attribute[]){export_integer("keepdims", options->keep), last, {0}});
}

void export_arg_reduce(onnx_export *e)
{
    const sdlf_arg_reduce_layer_options *options = export_options(e);
    export_node(e, options->smallest ? "ArgMin" : "ArgMax", (const char *const[]){export_in(e, 0), NULL},
                (const export_attribute[]){
                    export_integer("axis", options->axis),
                    export_integer("keepdims", options->keep),
                    export_integer("select_last_index", options->last),
                    {0},
                });
}

void export_top_k(onnx_export *e)
{
    const sdlf_top_k_layer_options *options = export_options(e);
    e->layer[e->position].wanted[1] = true; /* the operator always has both outputs */
    export_node(e, "TopK",
                (const char *const[]){export_in(e, 0), export_list_integers(e, &(int64_t){options->k}, 1), NULL},
                (const export_attribute[]){
                    export_integer("axis", options->axis),
                    export_integer("largest", !options->smallest),
                    export_integer("sorted", 1),
                    {0},
                });
}
