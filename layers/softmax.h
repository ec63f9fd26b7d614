/* SPDX-License-Identifier: MIT */
/* Shared by softmax and log_softmax: the axis, the shapes, and the operands of their operations. */
#ifndef SDLF_LAYERS_SOFTMAX_H
#define SDLF_LAYERS_SOFTMAX_H

#include "layers/views.h"

/* The fields of sdlf_softmax_options. */
extern const sdlf_field sdlf_softmax_fields[];

/* One floating-point input that has the axis; an output like it. */
sdlf_status sdlf_softmax_infer(const sdlf_layer *layer, sdlf_signature *signature);

/* Emits y from x by the operation of that kind; and dx from y and dy. */
sdlf_status sdlf_softmax_emit(const sdlf_layer *layer, sdlf_layer_context *context, sdlf_operation_kind kind);
sdlf_status sdlf_softmax_emit_backward(const sdlf_layer *layer, sdlf_layer_context *context, sdlf_operation_kind kind);

#endif
