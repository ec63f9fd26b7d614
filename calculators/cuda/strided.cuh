/* SPDX-License-Identifier: MIT */
/* Iterates over operands of one shape with arbitrary strides. Adjacent axes that are contiguous in every operand are merged.
 * Where the element count fits in 32 bits, indices are 32-bit and decomposed by fast integer division (divider.cuh). */
#ifndef SDLF_CALCULATORS_CUDA_STRIDED_CUH
#define SDLF_CALCULATORS_CUDA_STRIDED_CUH

#include "calculators/cuda/divider.cuh"

template <int Operands> struct strided {
    int rank; /* 0: one element */
    int64_t dim[SDLF_MAX_RANK];
    int64_t stride[Operands][SDLF_MAX_RANK]; /* in elements */
    divider<int32_t> by[SDLF_MAX_RANK];      /* divisors dim[], used where the element count fits in 32 bits */
};

/* Must be called after sizes have changed. */
template <int Operands> static void strided_ready(strided<Operands> &at)
{
    for (int axis = 0; axis < at.rank; axis++) {
        if (at.dim[axis] > 0 && at.dim[axis] <= INT32_MAX) at.by[axis] = divider<int32_t>(at.dim[axis]);
    }
}

/* Absent operands have strides of 0. */
template <int Operands> static strided<Operands> strided_of(const sdlf_shape &shape, const sdlf_tensor *const *operand)
{
    strided<Operands> made = {};
    for (int axis = 0; axis < shape.rank; axis++) {
        int64_t dim = shape.dim[axis];
        if (dim == 1) continue;
        int last = made.rank - 1;
        bool merges = last >= 0;
        for (int k = 0; k < Operands; k++) {
            int64_t stride = sdlf_tensor_present(operand[k]) ? operand[k]->stride[axis] : 0;
            merges = merges && made.stride[k][last] == dim * stride;
        }
        if (merges)
            made.dim[last] *= dim;
        else
            made.dim[last = made.rank++] = dim;
        for (int k = 0; k < Operands; k++)
            made.stride[k][last] = sdlf_tensor_present(operand[k]) ? operand[k]->stride[axis] : 0;
    }
    strided_ready(made);
    return made;
}

/* The offset of element i in every operand. */
template <typename Index, int Operands>
static __device__ __forceinline__ void strided_places(const strided<Operands> &at, Index i, int64_t *place)
{
    for (int k = 0; k < Operands; k++) place[k] = 0;
    for (int axis = at.rank - 1; axis > 0; axis--) {
        Index within;
        if constexpr (sizeof(Index) == sizeof(int32_t)) {
            int32_t rest;
            i = static_cast<Index>(divide(static_cast<int32_t>(i), at.by[axis], rest));
            within = static_cast<Index>(rest);
        } else {
            Index dim = static_cast<Index>(at.dim[axis]);
            within = i % dim;
            i /= dim;
        }
        for (int k = 0; k < Operands; k++) place[k] += static_cast<int64_t>(within) * at.stride[k][axis];
    }
    for (int k = 0; k < Operands && at.rank > 0; k++) place[k] += static_cast<int64_t>(i) * at.stride[k][0];
}

/* Call function(zero of the index type for `count` elements). */
template <typename Function> static void with_index(int64_t count, Function function)
{
    if (count <= INT32_MAX)
        function(uint32_t(0));
    else
        function(int64_t(0));
}

#endif
