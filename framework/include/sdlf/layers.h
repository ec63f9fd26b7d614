/* SPDX-License-Identifier: MIT */
/* The layers that come with SDLF, as calls that append them to a model.
 *
 *   <sdlf/layers/windows.h>      convolutions and pooling
 *   <sdlf/layers/products.h>     products of matrices: fully connected layers, graph convolution
 *   <sdlf/layers/normalize.h>    normalisation over batches, channels, features
 *   <sdlf/layers/sequences.h>    embeddings, attention, recurrent layers
 *   <sdlf/layers/elementwise.h>  activations, dropout, functions of one, two or three elements
 *   <sdlf/layers/axes.h>         reductions, top k, gathering, resizing, softmax
 *   <sdlf/layers/shapes.h>       reshaping, transposition, concatenation, slices, padding
 *   <sdlf/layers/values.h>       constants and parameters, conversions of type, quantisation
 *   <sdlf/layers/loss.h>         losses
 *
 * What holds for all of them:
 * - Each takes the nodes it reads and returns the node it makes; output i > 0 of a layer is the node {layer, i}.
 * - `options` is borrowed and copied; NULL means all defaults. A member left at zero means its default. `name` is the
 *   layer's, unique in its model; left out, the layer is named after its class.
 * - Shapes are row-major and include the batch N, as axis 0, which the plan sets. Inputs are of the network's floating
 *   type (float32, or float64 in a plan that asks for it) unless a layer says otherwise.
 * - Nothing is checked at once: the first error is kept in the model and reported when it is built (see model.h), so
 *   calls can be chained. Errors: SDLF_ERROR_ARGUMENT for options out of range, SDLF_ERROR_SHAPE for inputs that do not
 *   fit.
 * - Each has the gradient of its formula, unless it says that none passes. layers/NAME.c has both.
 *
 * Threads: one thread at a time works on a model.
 * Ownership: options and names are copied; nodes are values.
 * Errors: kept in the model, as said above; no call fails by itself. */
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
