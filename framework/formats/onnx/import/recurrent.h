/* SPDX-License-Identifier: MIT */
/* Shared by the converters of LSTM, GRU and RNN. */
#ifndef SDLF_FORMATS_ONNX_RECURRENT_H
#define SDLF_FORMATS_ONNX_RECURRENT_H

#include "framework/formats/onnx/import/compose.h"

/* x, (N, hidden), with axes of 1 inserted at `first` and `second` of the result; -1: none. */
onnx_flow onnx_recurrent_with_axes(onnx_context *c, onnx_flow x, int first, int second);

/* An initial state, (directions, N, hidden), or with layout 1 (N, directions, hidden), as (N, hidden). */
onnx_flow onnx_recurrent_state(onnx_context *c, int input, int direction, int64_t hidden, bool batch_first);

/* Converts LSTM and GRU to the layers lstm and gru, one per direction. False: not convertible; nothing was created. */
bool onnx_recurrent_as_layers(onnx_context *c, int gates, int directions);

#endif
