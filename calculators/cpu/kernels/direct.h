/* SPDX-License-Identifier: MIT */
/* Direct convolution, for small images and filters: stride 1, no dilation, one group. Vectors run over output channels.
 *
 * Images are repacked in scratch space as [h][w][channel], including their padding, so that what one row of the window
 * reads at one position, S C values, is contiguous. Filters are packed as [r][s][c][filter], in blocks of up to
 * DIRECT_VECTORS vectors of filters. The input gradient is the same convolution, applied to dy with flipped filters.
 * The working set stays in the first- and second-level caches. direct_layout.c packs, direct.c has the microkernels,
 * direct_forward.c and direct_backward.c iterate over the images. */
#ifndef SDLF_CALCULATORS_CPU_KERNELS_DIRECT_H
#define SDLF_CALCULATORS_CPU_KERNELS_DIRECT_H

#include "calculators/cpu/kernels/convolution.h"

/* The register tile: output positions by vectors of filters. */
enum { DIRECT_VECTORS = 2, DIRECT_POSITIONS = TILE_ROWS };

/* One direction of the convolution: from images of `channels` channels to `filters` filters. */
typedef struct direct_filter {
    int64_t channels, filters, padded_filters; /* padded to whole vectors */
    int64_t r, run;                            /* rows of the window; s * channels */
    int64_t row;                               /* elements of a row of the packed image */
} direct_filter;

/* A packed image: its padded sides, and the offset of its first element in them. */
typedef struct direct_image {
    int64_t channels, height, width, top, left;
} direct_image;

static inline int64_t direct_image_size(const direct_image *image)
{
    return cpu_round_up(image->height * image->width * image->channels, LANES);
}

/* Whether this convolution is supported, and whether direct convolution is faster. */
bool direct_takes_cpu(const convolution *v);
bool direct_pays_cpu(const convolution *v);
/* Forward pass only: with many taps im2col costs more than vector lanes without a filter. */
bool direct_pays_forward_cpu(const convolution *v);

/* The packed image of the forward pass, and the packed gradient of the input-gradient pass. */
direct_image direct_input_image_cpu(const convolution *v);
direct_image direct_gradient_image_cpu(const convolution *v);
direct_filter direct_forward_filter_cpu(const convolution *v);
direct_filter direct_backward_filter_cpu(const convolution *v);

/* Elements of packed filters. */
int64_t direct_filter_size_cpu(const direct_filter *filter);

/* Packs w (K,C,R,S) for the forward pass, or flipped for the input gradient. */
void direct_pack_forward_cpu(const cpu_calculator *cpu, element *packed, const convolution *v, const element *w);
void direct_pack_backward_cpu(element *packed, const convolution *v, const element *w);

/* Packs x (channels,h,w): all of it, or `image->height` rows of the padded image from `first` on. `flat` has space for
 * channels * h * w elements. */
void direct_load_cpu(element *to, const direct_image *image, const element *x, int64_t channels, int64_t h, int64_t w,
                     element *flat);
void direct_load_rows_cpu(element *to, const direct_image *image, int64_t first, const element *x, int64_t channels,
                          int64_t h, int64_t w, element *flat);

/* out[position][padded_filters] = bias + convolution, at all p x q positions; out has space for DIRECT_POSITIONS more.
 * bias may be NULL, else it has padded_filters elements. */
void direct_convolve_cpu(element *out, const direct_filter *filter, const element *image, const element *packed,
                         const element *bias, int64_t p, int64_t q);

/* The same, then ReLU and max-pooling over 2x2 windows: p x q windows. marks (may be NULL): the mask, as elements. */
void direct_convolve_pool_cpu(element *out, element *marks, bool first_only, const direct_filter *filter,
                              const element *image, const element *packed, const element *bias, int64_t p, int64_t q);

/* sums[tap][padded_filters] += sum over all p x q positions of image value x gradient; taps in the order r, s, c.
 * gradient is packed, with rows of `gradient_row` elements. */
void direct_weights_cpu(element *sums, const direct_filter *filter, const element *image, const element *gradient,
                        int64_t gradient_row, int64_t p, int64_t q);

#endif
