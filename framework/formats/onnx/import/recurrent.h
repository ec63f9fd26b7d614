/* SPDX-License-Identifier: MIT */
/* What LSTM, GRU and RNN share on their way into layers. */
#ifndef SDLF_FORMATS_ONNX_RECURRENT_H
#define SDLF_FORMATS_ONNX_RECURRENT_H

#include "framework/formats/onnx/import/compose.h"

/* x, (N, hidden), with axes of 1 at `first` and `second` of the result; -1: none. */
onnx_flow onnx_recurrent_with_axes(onnx_context *c, onnx_flow x, int first, int second);

/* A starting state, (directions, N, hidden), or with layout 1 (N, directions, hidden), as (N, hidden). */
onnx_flow onnx_recurrent_state(onnx_context *c, int input, int direction, int64_t hidden, bool batch_first);

/* LSTM and GRU as the layers lstm and gru, one for each direction. False: that they are not, and nothing was made. */
bool onnx_recurrent_as_layers(onnx_context *c, int gates, int directions);

#endif
