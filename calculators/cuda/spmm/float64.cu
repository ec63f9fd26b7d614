/* SPDX-License-Identifier: MIT */
/* spmm_csr in float64 (stream.cuh). */
#include "calculators/cuda/spmm/stream.cuh"

void spmm_run_stream_float64(const cuda_calculator *calculator, const spmm_csr *s)
{
    launch_stream<double>(calculator, s);
}
