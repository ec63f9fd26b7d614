/* spmm_csr in float64 (spmm/lines.cuh). */
#include "calculators/cuda/spmm/lines.cuh"

void spmm_add_lines_float64(const spmm_csr *s, cudaStream_t stream)
{
    launch_lines<double>(s, stream);
}
