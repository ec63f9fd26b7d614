/* SPDX-License-Identifier: MIT */
/* The parameters that all NHWC depthwise convolution kernels share. Pairs are of height and width. */
#ifndef SDLF_CALCULATORS_CUDA_NHWC_DEPTHWISE_CUH
#define SDLF_CALCULATORS_CUDA_NHWC_DEPTHWISE_CUH

#include "calculators/cuda/conv2d/conv2d.h"
#include "calculators/cuda/divider.cuh"
#include "calculators/cuda/nhwc/nhwc.h"
#include "calculators/cuda/nhwc/vector8.cuh"

struct depthwise_conv {
    sdlf_dtype dtype;                        /* of images and weights */
    int batch, height, width, rows, columns; /* of the input image; of the output */
    int channels, vectors;                   /* vectors: of 8 channels */
    int size[2], stride[2], padding[2], dilation[2];
    const float *bias; /* NULL: none */
    const void *x, *w, *residual;
    void *y;
    sdlf_activation activation;
    int across, flipped; /* across: vectors (or pairs) per block; flipped: taps run from the last to the first */
    bool by_taps;        /* w is (R,S,C), not (C,R,S); only in the TMA kernel */
    bool ready;          /* w was prepacked, and waited for, before anything ran */
    int64_t runs;
    divider<int32_t> run_columns, run_rows;
};

static inline depthwise_conv depthwise_conv_of(const sdlf_operation *op)
{
    const cuda_conv2d conv = cuda_conv2d_geometry(op);
    depthwise_conv g = {};
    g.batch = static_cast<int>(conv.batch);
    g.height = static_cast<int>(conv.height);
    g.width = static_cast<int>(conv.width);
    g.rows = static_cast<int>(conv.out_height);
    g.columns = static_cast<int>(conv.out_width);
    g.dtype = op->in[0].dtype;
    g.channels = static_cast<int>(conv.channels);
    g.vectors = g.channels / VECTOR;
    for (int i = 0; i < 2; i++) {
        g.size[i] = conv.window.size[i];
        g.stride[i] = conv.window.stride[i];
        g.padding[i] = conv.window.padding_before[i];
        g.dilation[i] = conv.window.dilation[i];
    }
    if (op->kind == SDLF_CONV2D_FORWARD) {
        g.bias = optional<float>(op->in[2]);
        g.residual = optional<void>(op->in[3]);
        g.activation = op->conv2d.activation;
    } else if (op->kind == SDLF_CONV2D_BACKWARD_INPUT) {
        g.residual = optional<void>(op->in[2]);
    }
    return g;
}

/* True if it has size x size taps, no dilation, and this stride both ways. */
static inline bool depthwise_conv_is_square(const depthwise_conv &g, int size, int stride)
{
    return g.size[0] == size && g.size[1] == size && g.stride[0] == stride && g.stride[1] == stride &&
           g.dilation[0] == 1 && g.dilation[1] == 1;
}

/* How many of `count` columns a block has, up to `most`: such that the last block of a row is as full as possible; few only if there are few. */
static inline int depthwise_conv_across(int count, int most)
{
    int best = 1, least = count;
    for (int across = 1; across <= most && across <= count; across++) {
        const int lacking = (count + across - 1) / across * across - count;
        if (lacking <= least && (across > most / 4 || count <= most / 4)) best = across, least = lacking;
    }
    return best;
}

/* 3x3 filters with strides of 1 and 2 if there are many pixels, C a multiple of 4 and addresses multiples of 16 bytes: fprop, or dgrad with a stride
 * of 1. False if it is not supported. */
template <typename T> bool depthwise_tma_launch(const cuda_calculator *calculator, const depthwise_conv &g);

/* 3x3 filters with a stride of 1, and 5x5; 12 output columns or more if the stride is 1: fprop, or dgrad of stride 1. False if not supported. */
template <typename T> bool depthwise_sliding_launch(const cuda_calculator *calculator, const depthwise_conv &g);

/* dgrad with strides other than 1; dy and dx as g.x and g.y. */
template <typename T> void depthwise_dgrad_strided_launch(const cuda_calculator *calculator, const depthwise_conv &g);

/* wgrad; x and dy as g.x and g.y. */
int64_t depthwise_weights_workspace(const depthwise_conv &g);
template <typename T>
void depthwise_weights_launch(const cuda_calculator *calculator, const depthwise_conv &g, float *splits, float *dw);

#endif
