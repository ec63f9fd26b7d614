/* spmm_csr in float32 (spmm/lines.cuh). */
#include "calculators/cuda/spmm/lines.cuh"

void spmm_add_lines_float32(const spmm_csr *s, cudaStream_t stream)
{
    launch_lines<float>(s, stream);
}
