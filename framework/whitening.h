/* SPDX-License-Identifier: MIT */
/* Convolutions whose filters whiten patches of the data (initializer `whitening`). */
#ifndef SDLF_FRAMEWORK_WHITENING_H
#define SDLF_FRAMEWORK_WHITENING_H

#include <sdlf/dataset.h>

/* Has the model such a convolution? */
bool sdlf_is_whitened(const sdlf_model *model);

/* Of a model that is built: the weights of each become what the first samples of the set, normalised, say.
 *
 * A patch is C R S elements, as a filter sees them; A is the mean of x x' over the patches x of 5,000 samples, fewer
 * where that takes long. With its eigenvectors u[0], u[1], ..., of eigenvalues that fall, and K filters, filter k < h =
 * (K + 1) / 2 is u[k] / sqrt(eigenvalue + 0.0005), and filter h + k is minus that: the output of each pair has variance
 * 1, and loses no sign to an activation (Page 2018, Jordan 2024).
 *
 * Errors: SDLF_ERROR_ARGUMENT (its input is none of the network, or not the samples), SDLF_ERROR_MEMORY, what reading
 * samples says. */
sdlf_status sdlf_whiten(sdlf_model *model, const sdlf_dataset *dataset);

#endif
