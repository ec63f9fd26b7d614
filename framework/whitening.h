/* SPDX-License-Identifier: MIT */
/* Convolutions whose filters whiten patches of the data (initializer `whitening`). */
#ifndef SDLF_FRAMEWORK_WHITENING_H
#define SDLF_FRAMEWORK_WHITENING_H

#include <sdlf/dataset.h>

/* True if the model has such a convolution. */
bool sdlf_is_whitened(const sdlf_model *model);

/* For a built model: sets the weights of each such convolution from the first samples of the set, normalised.
 *
 * A patch is the C R S elements under a filter; A is the mean of x x' over the patches x of 5,000 samples, or fewer if
 * that takes long. With its eigenvectors u[0], u[1], ..., in order of descending eigenvalues, and K filters, filter k <
 * h = (K + 1) / 2 is u[k] / sqrt(eigenvalue + 0.0005), and filter h + k is its negative: each pair's output has
 * variance 1, and no sign is lost to an activation (Page 2018, Jordan 2024).
 *
 * Errors: SDLF_ERROR_ARGUMENT (its input is not one of the network's, or not the samples), SDLF_ERROR_MEMORY, and those
 * of reading samples. */
sdlf_status sdlf_whiten(sdlf_model *model, const sdlf_dataset *dataset);

#endif
