/* SPDX-License-Identifier: MIT */
/* spmm_csr in float32 (stream.cuh). */
#include "calculators/cuda/spmm/stream.cuh"

void spmm_run_stream_float32(const cuda_calculator *calculator, const spmm_csr *s)
{
    launch_stream<float>(calculator, s);
}
