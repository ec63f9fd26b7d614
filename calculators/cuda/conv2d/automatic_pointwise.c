/* The 1x1 convolution that "auto" takes, of row-major images: by a kernel of ours, or as a product of cuBLAS, whose second factor the
 * image is (two-step: without columns, and with them where there is a stride). Limits are from every rung's times on an H200, of the
 * layers of ResNet-18 and -50, MobileNetV2, DenseNet-121, ShuffleNetV2 and EfficientNet-B0 at batch 1, 8, 32 and 128.
 *
 * What cuBLAS's product costs beside itself: a pass over y where there is something to finish; in fp16 and bf16 rounding x, which moves it twice
 * more; in backward weights a dw of each image, and their sum. And it wants sizes that fill its tiles. */
#include "calculators/cuda/conv2d/automatic.h"
#include "calculators/cuda/conv2d/pointwise.h"
#include "calculators/cuda/conv2d/pointwise_warps.h"

/* FLOPs up to which tensor cores save nothing, and channels below which memory decides whatever computes. */
enum { SMALL_POINTWISE = 25000000, ROW_POINTWISE = 45000000, FEW_POINTWISE = 64 };

bool cuda_pointwise_is_small(int64_t channels, int64_t flops)
{
    return flops <= SMALL_POINTWISE || channels < FEW_POINTWISE;
}

bool cuda_is_unpadded_pointwise(const cuda_conv2d_asked *a)
{
    const sdlf_window2d *window = &a->g.window;
    for (int i = 0; i < 2; i++) {
        if (window->size[i] != 1 || window->padding_before[i] != 0 || window->padding_after[i] != 0) return false;
    }
    return a->g.groups == 1;
}

static bool takes(const cuda_conv2d_asked *a, int algorithm)
{
    return cuda_conv2d_takes(a->calculator, a->op, algorithm);
}

/* ---- forward ---- */

/* Results up to which `pointwise`, whose warps share sums, has no more of them than it has warps for. */
enum { FEW_RESULTS = 1 << 19, FEW_WIDE_RESULTS = 1 << 14, FEW_WIDE_DEPTH = 640 };

/* With a stride: FLOPs from which columns, which are fewer than x, are worth their way through memory. */
enum { STRIDED = 150000000 };

/* Planes of one pixel: a long sum is a thread's own in `pointwise`; weights, which cuBLAS reads anew for every image. */
enum { PIXEL_DEPTH = 480, PIXEL_WEIGHTS = 1 << 23 };

/* By warps that read the image themselves, in fp32: FLOPs from which they have enough to do; results so few that they have not even
 * then; and FLOPs from which cuBLAS is faster with nothing to finish, if filters fill 7/8 of its tiles of 128, or with 49 to 64 filters,
 * which two groups of warps do not share well. */
enum {
    WARPS_LEAST = 100000000,
    WARPS_RESULTS = 1 << 17,
    WARPS_PIXELS = 256,
    WARPS_LARGE = 1400000000,
    WARPS_EXPANDING = 4, /* times as many, where filters are more than channels */
    WARPS_SHARED_BADLY = 250000000,
    WARPS_REDUCED_BADLY = 500000000
};

/* The same in tf32: FLOPs from which; channels up to which memory decides; filters that cuBLAS's tiles are too tall for, of so many pixels. */
enum { TENSOR_WARPS_LEAST = 20000000, TENSOR_WARPS_THIN = 64, TENSOR_WARPS_FILTERS = 16, TENSOR_WARPS_PIXELS = 3000 };

/* In fp16 and bf16: FLOPs from which rounding x is worth its time if filters are as many as channels, and results from which it always is. */
enum { ROUNDED_LEAST = 250000000, ROUNDED_RESULTS = 3 << 20 };

static int by_warps(const cuda_conv2d_asked *a)
{
    return cuda_pointwise_warps_takes(a->calculator, a->op) ? POINTWISE_WARPS : TWO_STEP;
}

/* Do the filters fill 7/8 of tiles of 128? */
static bool fills_tiles(int64_t filters)
{
    return filters * 8 >= (filters + 127) / 128 * 128 * 7;
}

static int single(const cuda_conv2d_asked *a)
{
    const cuda_conv2d *g = &a->g;
    bool halved = g->filters > 48 && g->filters <= 64; /* two groups of warps, not full */
    if (a->flops < WARPS_LEAST) return a->results <= FEW_RESULTS ? POINTWISE : a->finishes ? by_warps(a) : TWO_STEP;
    if (a->results <= WARPS_RESULTS && a->pixels < WARPS_PIXELS) return TWO_STEP;
    if (a->results <= WARPS_RESULTS && a->quads) return POINTWISE;
    if (!a->finishes && halved && a->flops > WARPS_SHARED_BADLY) return TWO_STEP;
    int64_t large = (int64_t)WARPS_LARGE * (g->filters > g->channels ? WARPS_EXPANDING : 1);
    if (!a->finishes && a->quads && fills_tiles(g->filters) && a->flops > large) return TWO_STEP;
    if (halved && g->channels >= 3 * g->filters && a->flops > WARPS_REDUCED_BADLY) return TWO_STEP;
    return by_warps(a);
}

static int in_tf32(const cuda_conv2d_asked *a)
{
    const cuda_conv2d *g = &a->g;
    bool thin = g->channels >= g->filters && a->pixels >= TENSOR_WARPS_PIXELS &&
                g->filters <= (a->finishes ? 2 : 1) * TENSOR_WARPS_FILTERS;
    if (thin && cuda_pointwise_warps_takes(a->calculator, a->op)) return POINTWISE_WARPS;
    bool warps = a->finishes && cuda_pointwise_warps_takes(a->calculator, a->op);
    if (a->flops < (warps ? TENSOR_WARPS_LEAST : ROW_POINTWISE) && a->results <= FEW_RESULTS) return POINTWISE;
    bool light = a->finishes && (a->results <= FEW_RESULTS || g->channels <= TENSOR_WARPS_THIN);
    return light || !a->quads ? by_warps(a) : TWO_STEP;
}

static int in_halves(const cuda_conv2d_asked *a)
{
    const cuda_conv2d *g = &a->g;
    if (a->flops <= ROW_POINTWISE && a->results <= FEW_RESULTS) return POINTWISE;
    if (a->finishes && g->channels < FEW_POINTWISE) return AUTO;
    bool square = g->filters >= g->channels && a->flops >= ROUNDED_LEAST;
    bool many = a->results >= ROUNDED_RESULTS && (g->filters >= FEW_POINTWISE || g->channels < FEW_POINTWISE);
    return a->quads && (square || many) ? TWO_STEP : AUTO;
}

static int forward(const cuda_conv2d_asked *a)
{
    const cuda_conv2d *g = &a->g;
    if (!cuda_pointwise_takes(a->calculator, a->op)) return AUTO;
    if (!takes(a, TWO_STEP)) return POINTWISE;
    bool plain = g->window.stride[0] == 1 && g->window.stride[1] == 1;
    if (!plain && a->flops < STRIDED) return POINTWISE;
    if (!plain) return cuda_prefers_two_step(a) ? TWO_STEP : AUTO;
    bool long_sums = !a->half && g->channels >= PIXEL_DEPTH && g->batch * g->filters * g->channels <= PIXEL_WEIGHTS;
    if (g->height * g->width == 1) return long_sums ? TWO_STEP : POINTWISE;
    if (a->wide) {
        bool few = a->results <= FEW_WIDE_RESULTS && g->channels <= FEW_WIDE_DEPTH;
        return few ? POINTWISE : TWO_STEP;
    }
    return a->exact ? single(a) : a->half ? in_halves(a) : in_tf32(a);
}

/* In tf32: filters enough for a tile, and so few that patches leave multiprocessors without one, over so many pixels. Up to FEW_PIXELS
 * that is so of all of them, from twice as many channels on; beyond, of few, from three times as many on. */
enum {
    PREFERRED_LEAST_FILTERS = 32,
    PREFERRED_FILTERS = 160,
    PREFERRED_FEW_FILTERS = 64,
    PREFERRED_DEPTH_MOST = 960,
    PREFERRED_PIXELS_LEAST = 1024,
    PREFERRED_FEW_PIXELS = 2048,
    PREFERRED_PIXELS = 8192,
    PREFERRED_FLOPS = 400000000
};

bool cuda_pointwise_prefers_warps(const cuda_conv2d_asked *a)
{
    const cuda_conv2d *g = &a->g;
    if (a->exact || a->half || !cuda_is_unpadded_pointwise(a)) return false;
    if (a->pixels < PREFERRED_PIXELS_LEAST || a->pixels > PREFERRED_PIXELS || a->flops > PREFERRED_FLOPS) return false;
    bool few = a->pixels <= PREFERRED_FEW_PIXELS;
    if (g->filters <= PREFERRED_LEAST_FILTERS || g->filters > (few ? PREFERRED_FILTERS : PREFERRED_FEW_FILTERS))
        return false;
    if (g->channels < (few ? 2 : 3) * g->filters || g->channels >= PREFERRED_DEPTH_MOST) return false;
    return cuda_pointwise_warps_takes(a->calculator, a->op);
}

/* ---- backward ---- */

/* Sums that are a thread's own: FLOPs and weights of backward weights, and, where dy would be rounded, filters of backward input. */
enum { DIRECT_FLOPS = 1 << 18, DIRECT_WEIGHTS = 1024, DIRECT_FILTERS = 64 };

/* Numbers that dw of all images are, of planes of one pixel, up to which adding them is nothing. */
enum { PIXEL_PARTS = 1 << 19 };

static int backward_input(const cuda_conv2d_asked *a)
{
    if (!takes(a, POINTWISE)) return cuda_prefers_two_step(a) ? TWO_STEP : AUTO; /* a stride */
    return a->half && a->area == 1 && a->g.filters <= DIRECT_FILTERS ? DIRECT : POINTWISE;
}

static int backward_weights(const cuda_conv2d_asked *a)
{
    bool own = a->area == 1 && a->g.channels * a->g.filters <= DIRECT_WEIGHTS && a->flops <= DIRECT_FLOPS;
    if (own) return DIRECT;
    bool few = a->area == 1 && !a->half && a->g.batch * a->g.channels * a->g.filters <= PIXEL_PARTS;
    return !few && !cuda_prefers_two_step(a) ? AUTO : takes(a, POINTWISE) ? POINTWISE : TWO_STEP;
}

int cuda_pointwise_automatic(const cuda_conv2d_asked *a)
{
    switch (a->op->kind) {
    case SDLF_CONV2D_FORWARD: return forward(a);
    case SDLF_CONV2D_BACKWARD_INPUT: return backward_input(a);
    default: return backward_weights(a);
    }
}
