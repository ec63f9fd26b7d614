/* SPDX-License-Identifier: MIT */
/* Convolution of NHWC activations: kernel selection, and prepacked weights. See conv2d_nhwc.h. */
#include "calculators/cpu/kernels/conv2d_nhwc.h"

#include "calculators/cpu/conv2d_algorithms.h"
#include "calculators/cpu/kernels/depthwise.h"
#include "calculators/cpu/kernels/grouped.h"
#include "calculators/cpu/kernels/implicit.h"
#include "calculators/cpu/kernels/kernels.h"
#include "calculators/cpu/kernels/stem.h"
#include "calculators/cpu/kernels/winograd.h"

enum { FEW_SUMS = 6 };

static bool may_be_nhwc(const sdlf_tensor *tensor)
{
    return !sdlf_tensor_present(tensor) || sdlf_tensor_is_channels_last(tensor);
}

/* True if all activations can be treated as NHWC. (With one channel or one pixel they are also row-major.) */
static bool can_be_nhwc(const sdlf_operation *operation)
{
    return may_be_nhwc(&operation->in[0]) && may_be_nhwc(&operation->in[3]) && may_be_nhwc(&operation->out[0]);
}

/* True if they are treated as NHWC. Where the layout is ambiguous, prepacked weights decide. */
bool conv2d_is_nhwc_cpu(const sdlf_operation *operation)
{
    return sdlf_operation_is_channels_last(operation) || operation->algorithm == CPU_CONV2D_IMPLICIT ||
           cpu_conv2d_winograd(operation->algorithm) != 0 || sdlf_tensor_present(&operation->prepared);
}

/* True if x is row-major (NCHW) with more than one channel and pixel, while y is NHWC. */
static bool reads_row_major(const sdlf_operation *operation)
{
    return !sdlf_tensor_is_channels_last(&operation->in[0]) && sdlf_tensor_is_contiguous(&operation->in[0]);
}

/* The kernels: see depthwise.h, grouped.h, winograd.h, stem.h and implicit.h. */
typedef struct nhwc_kernel {
    enum { DEPTHWISE, GROUPED, WINOGRAD, STEM, IMPLICIT } kernel;
    int m; /* of Winograd F(m,3) */
} nhwc_kernel;

static nhwc_kernel automatic_way(const convolution *v)
{
    if (depthwise_nhwc_takes_cpu(v)) return (nhwc_kernel){.kernel = DEPTHWISE};
    if (grouped_takes_cpu(v)) return (nhwc_kernel){.kernel = GROUPED};
    if (winograd_takes_cpu(v) && winograd_pays_cpu(v)) return (nhwc_kernel){WINOGRAD, 2};
    return (nhwc_kernel){.kernel = IMPLICIT};
}

static nhwc_kernel select_kernel(const sdlf_operation *operation, const convolution *v)
{
    int m = cpu_conv2d_winograd(operation->algorithm);
    if (m > 0) return (nhwc_kernel){WINOGRAD, m};
    nhwc_kernel way = automatic_way(v);
    if (way.kernel == DEPTHWISE || way.kernel == GROUPED) return way;
    if (way.kernel == WINOGRAD && operation->algorithm == CPU_CONV2D_AUTO) return way;
    if (sdlf_operation_is_mixed(operation) && reads_row_major(operation) && stem_takes_cpu(v))
        return (nhwc_kernel){.kernel = STEM};
    return (nhwc_kernel){.kernel = IMPLICIT};
}

bool conv2d_nhwc_pays_cpu(const convolution *v)
{
    bool strides = v->stride[0] > 1 || v->stride[1] > 1, overlaps = v->stride[0] < v->r && v->stride[1] < v->s;
    if (v->c == 1 && v->k == 1 && v->groups > 1) return depthwise_nhwc_takes_cpu(v);
    if (v->k >= LANES || implicit_fills_cpu(v)) return true;
    if (!strides) return v->r_s > 1 && (v->c > LANES || v->c * v->k > FEW_SUMS * LANES);
    return v->c * v->k > 4 || v->p_q < (overlaps ? 8192 : 400);
}

int conv2d_nhwc_automatic_cpu(const sdlf_operation *operation, const convolution *v)
{
    return select_kernel(operation, v).kernel == WINOGRAD ? CPU_CONV2D_WINOGRAD_2 : CPU_CONV2D_IMPLICIT;
}

static int64_t packed_size(nhwc_kernel way, const convolution *v)
{
    switch (way.kernel) {
    case DEPTHWISE: return depthwise_nhwc_packed_size_cpu(v);
    case GROUPED: return grouped_packed_size_cpu(v);
    case WINOGRAD: return winograd_packed_size_cpu(v, way.m);
    default: return implicit_packed_size_cpu(v);
    }
}

/* The weights of depthwise, Winograd and stem kernels are row-major. */
static void pack(const cpu_calculator *cpu, nhwc_kernel way, element *packed, const convolution *v,
                 const implicit_weights *w)
{
    switch (way.kernel) {
    case DEPTHWISE: depthwise_nhwc_pack_cpu(packed, v, w->w); break;
    case GROUPED: grouped_pack_cpu(packed, v, w); break;
    case WINOGRAD: winograd_pack_cpu(cpu, packed, v, w->w, way.m); break;
    case STEM: stem_pack_cpu(packed, v, w->w); break;
    default: implicit_pack_cpu(cpu, packed, v, w);
    }
}

bool conv2d_nhwc_supports_cpu(const sdlf_operation *operation, const convolution *v)
{
    bool named = operation->algorithm == CPU_CONV2D_AUTO || operation->algorithm == CPU_CONV2D_IMPLICIT;
    if (sdlf_operation_is_mixed(operation) && reads_row_major(operation))
        return named && (select_kernel(operation, v).kernel == STEM ||
                         (select_kernel(operation, v).kernel == IMPLICIT && implicit_takes_row_major_cpu(v)));
    if (!can_be_nhwc(operation)) return false;
    if (cpu_conv2d_winograd(operation->algorithm)) return winograd_takes_cpu(v);
    return named && conv2d_nhwc_takes_cpu(v);
}

/* Scratch space, including the packed weights if they were not prepacked. */
static im2col_space space_of(nhwc_kernel way, const convolution *v, bool row_major, bool prepared)
{
    im2col_space space = {0};
    if (way.kernel == WINOGRAD) space = winograd_space_cpu(v, way.m);
    if (way.kernel == STEM) space.each = stem_scratch_size_cpu(v);
    if (way.kernel == IMPLICIT) space.shared = implicit_scratch_size_cpu(v, row_major);
    if (!prepared) space.shared += cpu_round_up(packed_size(way, v), LANES);
    return space;
}

/* `packed`: the prepacked weights; NULL: w is packed into scratch. */
static void run(const cpu_calculator *cpu, nhwc_kernel way, const convolution_forward *forward, const element *packed,
                const implicit_weights *w, element *scratch, bool row_major)
{
    const convolution *v = &forward->v;
    if (packed == NULL) {
        pack(cpu, way, scratch, v, w);
        packed = scratch;
        scratch += cpu_round_up(packed_size(way, v), LANES);
    }
    switch (way.kernel) {
    case DEPTHWISE: depthwise_nhwc_forward_cpu(cpu, forward, packed); break;
    case GROUPED: grouped_forward_cpu(cpu, forward, packed); break;
    case WINOGRAD: winograd_forward_cpu(cpu, forward, way.m, packed, scratch); break;
    case STEM: stem_forward_cpu(cpu, forward, packed, scratch); break;
    default: implicit_forward_cpu(cpu, forward, packed, scratch, row_major);
    }
}

im2col_space conv2d_nhwc_space_cpu(const sdlf_operation *operation, const convolution *v)
{
    bool prepared = sdlf_tensor_present(&operation->prepared);
    return space_of(select_kernel(operation, v), v, reads_row_major(operation), prepared);
}

void conv2d_nhwc_forward_cpu(const cpu_calculator *cpu, const sdlf_operation *operation,
                             const convolution_forward *forward)
{
    implicit_weights w = implicit_weights_of(&forward->v, forward->w);
    run(cpu, select_kernel(operation, &forward->v), forward, operation->prepared.data, &w, operation->workspace.data,
        reads_row_major(operation));
}

bool conv2d_nhwc_takes_cpu(const convolution *v)
{
    return depthwise_nhwc_takes_cpu(v) || grouped_takes_cpu(v) || implicit_takes_cpu(v);
}

int64_t conv2d_nhwc_automatic_size_cpu(const convolution *v)
{
    return packed_size(automatic_way(v), v);
}

void conv2d_nhwc_automatic_pack_cpu(const cpu_calculator *cpu, element *packed, const convolution *v,
                                    const implicit_weights *w)
{
    pack(cpu, automatic_way(v), packed, v, w);
}

im2col_space conv2d_nhwc_automatic_space_cpu(const convolution *v, bool prepared)
{
    return space_of(automatic_way(v), v, false, prepared);
}

void conv2d_nhwc_automatic_forward_cpu(const cpu_calculator *cpu, const convolution_forward *forward,
                                       const element *packed, const implicit_weights *w, element *scratch)
{
    run(cpu, automatic_way(&forward->v), forward, packed, w, scratch, false);
}

/* True for one filter on possibly row-major images, where prepacked weights would force a transposition to NHWC. */
static bool stays_row_major(const sdlf_operation *operation, const convolution *v)
{
    return operation->algorithm == CPU_CONV2D_AUTO && v->groups * v->k == 1 && v->p_q > 1 &&
           !sdlf_operation_is_channels_last(operation) && !conv2d_nhwc_pays_cpu(v);
}

int64_t conv2d_nhwc_prepared_size_cpu(const sdlf_operation *operation, const convolution *v)
{
    if (stays_row_major(operation, v)) return 0;
    return conv2d_nhwc_supports_cpu(operation, v) ? packed_size(select_kernel(operation, v), v) : 0;
}

void conv2d_nhwc_prepare_cpu(const cpu_calculator *cpu, const sdlf_operation *operation, const convolution *v)
{
    implicit_weights w = implicit_weights_of(v, input(operation, 1));
    pack(cpu, select_kernel(operation, v), operation->prepared.data, v, &w);
}
