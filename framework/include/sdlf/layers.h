/* SPDX-License-Identifier: MIT */
/* The layers of SDLF: functions that append them to a model.
 *
 *   <sdlf/layers/windows.h>      convolutions and pooling
 *   <sdlf/layers/products.h>     matrix multiplication: fully connected layers, graph convolution
 *   <sdlf/layers/normalize.h>    normalisation over batches, channels, features
 *   <sdlf/layers/sequences.h>    embeddings, attention, recurrent layers
 *   <sdlf/layers/elementwise.h>  activations, dropout, functions of one, two or three elements
 *   <sdlf/layers/axes.h>         reductions, top k, gathering, resizing, softmax
 *   <sdlf/layers/shapes.h>       reshaping, transposition, concatenation, slices, padding
 *   <sdlf/layers/values.h>       constants and parameters, type conversion, quantisation
 *   <sdlf/layers/loss.h>         losses
 *
 * Common to all of them:
 * - A function takes its input nodes and returns output 0 of the new layer; output i > 0 is the node {layer, i}.
 * - `options` is borrowed and copied; NULL means all defaults. A member that is zero has its default. `name` is the
 *   layer's name, unique in its model; if it is NULL, the layer is named after its class.
 * - Shapes are row-major and include the batch N as axis 0, which the plan sets. Inputs have the network's floating
 *   type (float32, or float64 if the plan requests it) unless a layer says otherwise.
 * - Errors are deferred: the model records the first one and reports it when it is built (see model.h), so that calls
 *   can be chained. SDLF_ERROR_ARGUMENT: options out of range. SDLF_ERROR_SHAPE: inputs whose shapes or types do not
 *   fit.
 * - Every layer is differentiable unless it says that no gradient passes. layers/NAME.c has the formulas of both.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options and names are copied; nodes are values.
 * Errors: recorded in the model, as described above; no call fails by itself. */
#ifndef SDLF_LAYERS_H
#define SDLF_LAYERS_H

#include <sdlf/layer.h>
#include <sdlf/layers/axes.h>
#include <sdlf/layers/elementwise.h>
#include <sdlf/layers/loss.h>
#include <sdlf/layers/normalize.h>
#include <sdlf/layers/products.h>
#include <sdlf/layers/sequences.h>
#include <sdlf/layers/shapes.h>
#include <sdlf/layers/values.h>
#include <sdlf/layers/windows.h>
#include <sdlf/model.h>

#endif
