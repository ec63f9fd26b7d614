/* SPDX-License-Identifier: MIT */
/* Multi-tensor launches: one kernel for many tensors. The list of tensors is the kernel's parameter; a block processes a piece of one tensor. */
#ifndef SDLF_CALCULATORS_CUDA_MULTI_TENSOR_CUH
#define SDLF_CALCULATORS_CUDA_MULTI_TENSOR_CUH

#include "calculators/cuda/kernels.cuh"

enum { LIST_THREADS = 256, LIST_EACH = 4, LIST_PIECE = LIST_THREADS * LIST_EACH };

/* Entry has `count`, the elements of its tensor; Common is what all share. The list fits the 4 KB parameter limit that all architectures have. */
template <typename Entry, typename Common> struct tensor_list {
    static constexpr int MOST = static_cast<int>((4096 - sizeof(Common) - 16) / (sizeof(Entry) + sizeof(int)));
    Common common;
    int tensors, blocks;
    int first[MOST]; /* first block of each tensor */
    Entry of[MOST];

    bool is_full() const
    {
        return tensors == MOST;
    }

    void add(const Entry &entry)
    {
        first[tensors] = blocks;
        of[tensors++] = entry;
        blocks += static_cast<int>((entry.count + LIST_PIECE - 1) / LIST_PIECE);
    }

    /* The index of the tensor that this block processes a piece of. */
    __device__ __forceinline__ int mine() const
    {
        int low = 0, high = tensors; /* first[low] <= block < first[high] */
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            (first[middle] <= static_cast<int>(blockIdx.x) ? low : high) = middle;
        }
        return low;
    }
};

/* Launch the kernel on make(operations[i]) for all i, in as few launches as the lists' capacity allows; entries of 0 elements are left out. */
template <typename List, typename Make>
static void launch_lists(const cuda_calculator *calculator, void (*kernel)(List), List list,
                         const sdlf_operation *const *operations, int count, Make make)
{
    list.tensors = list.blocks = 0;
    for (int i = 0; i < count; i++) {
        const auto entry = make(operations[i]);
        if (entry.count > 0) list.add(entry);
        if (list.blocks == 0 || (i + 1 < count && !list.is_full())) continue;
        launch_overlapped(calculator, kernel, static_cast<unsigned>(list.blocks), LIST_THREADS, 0, list);
        list.tensors = list.blocks = 0;
    }
}

#endif
