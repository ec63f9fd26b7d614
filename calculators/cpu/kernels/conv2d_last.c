/* Convolution of activations that are channels last: which kernel, and weights made ready for it. See conv2d_last.h. */
#include "calculators/cpu/kernels/conv2d_last.h"

#include "calculators/cpu/conv2d_algorithms.h"
#include "calculators/cpu/kernels/depthwise.h"
#include "calculators/cpu/kernels/implicit.h"
#include "calculators/cpu/kernels/kernels.h"

static bool may_be_last(const sdlf_tensor *tensor)
{
    return !sdlf_tensor_present(tensor) || sdlf_tensor_is_channels_last(tensor);
}

/* Could all activations be taken as channels last? (With one channel, or of one pixel, they are row-major too.) */
static bool can_be_last(const sdlf_operation *operation)
{
    return may_be_last(&operation->in[0]) && may_be_last(&operation->in[3]) && may_be_last(&operation->out[0]);
}

/* Are they? Where it is left open, weights made ready for it say so. */
bool conv2d_is_last_cpu(const sdlf_operation *operation)
{
    return sdlf_operation_is_channels_last(operation) || operation->algorithm == CPU_CONV2D_IMPLICIT ||
           (sdlf_tensor_present(&operation->prepared) && cpu_conv2d_winograd(operation->algorithm) == 0);
}

static int64_t packed_size(const convolution *v)
{
    return depthwise_last_takes_cpu(v) ? depthwise_last_packed_size_cpu(v) : implicit_packed_size_cpu(v);
}

static void pack(const cpu_calculator *cpu, element *packed, const convolution *v, const element *w)
{
    if (depthwise_last_takes_cpu(v))
        depthwise_last_pack_cpu(packed, v, w);
    else
        implicit_pack_cpu(cpu, packed, v, w);
}

bool conv2d_last_supports_cpu(const sdlf_operation *operation, const convolution *v)
{
    bool named = operation->algorithm == CPU_CONV2D_AUTO || operation->algorithm == CPU_CONV2D_IMPLICIT;
    return named && can_be_last(operation) && (depthwise_last_takes_cpu(v) || implicit_takes_cpu(v));
}

/* Scratch space, and the laid out weights where they were not made ready. */
int64_t conv2d_last_space_cpu(const sdlf_operation *operation, const convolution *v)
{
    int64_t packed = sdlf_tensor_present(&operation->prepared) ? 0 : cpu_round_up(packed_size(v), LANES);
    return packed + (depthwise_last_takes_cpu(v) ? 0 : implicit_scratch_size_cpu(v));
}

void conv2d_last_forward_cpu(const cpu_calculator *cpu, const sdlf_operation *operation,
                             const convolution_forward *forward)
{
    const element *packed = operation->prepared.data;
    element *scratch = operation->workspace.data;
    if (!sdlf_tensor_present(&operation->prepared)) {
        pack(cpu, scratch, &forward->v, forward->w);
        packed = scratch;
        scratch += cpu_round_up(packed_size(&forward->v), LANES);
    }
    if (depthwise_last_takes_cpu(&forward->v))
        depthwise_last_forward_cpu(cpu, forward, packed);
    else
        implicit_forward_cpu(cpu, forward, packed, scratch);
}

int64_t conv2d_last_prepared_size_cpu(const sdlf_operation *operation, const convolution *v)
{
    return conv2d_last_supports_cpu(operation, v) ? packed_size(v) : 0;
}

void conv2d_last_prepare_cpu(const cpu_calculator *cpu, const sdlf_operation *operation, const convolution *v)
{
    pack(cpu, operation->prepared.data, v, input(operation, 1));
}
