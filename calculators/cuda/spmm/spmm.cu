/* spmm_csr: the matrix is arranged once where it stays (the prepared form), else in the workspace before each run; then two kernels
 * compute, one for all lines and one for rows that are cut. The idea is in spmm/spmm.cuh. */
#include "calculators/cuda/spmm/spmm.cuh"

enum { HEAVY_BLOCKS = 8 /* a multiprocessor */ };

static int64_t padded(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* The lists for a matrix, laid out from `base` on; null: for its size alone. */
static spmm_lines lay_out(int64_t rows, int64_t stored, char *base)
{
    spmm_lines lines = {};
    lines.light_count = (rows + SPMM_CHUNK - 1) / SPMM_CHUNK * SPMM_CHUNK;
    lines.heavy_most = stored / (SPMM_LIGHT + 1);
    lines.cut_most = stored / (SPMM_HEAVY + 1);
    lines.part_most = stored / SPMM_HEAVY + lines.cut_most;
    if (lines.part_most > lines.heavy_most) lines.heavy_most = lines.part_most;
    int64_t light = padded(3 * sizeof *lines.counts);
    int64_t heavy = light + padded(lines.light_count * static_cast<int64_t>(sizeof *lines.light));
    int64_t cuts = heavy + padded(lines.heavy_most * static_cast<int64_t>(sizeof *lines.heavy));
    lines.bytes = cuts + padded(lines.cut_most * static_cast<int64_t>(sizeof *lines.cuts));
    if (base == nullptr) return lines;
    lines.counts = reinterpret_cast<int32_t *>(base);
    lines.light = reinterpret_cast<spmm_line *>(base + light);
    lines.heavy = reinterpret_cast<spmm_line *>(base + heavy);
    lines.cuts = reinterpret_cast<spmm_cut *>(base + cuts);
    return lines;
}

static spmm_lines lines_of(const sdlf_operation *op, char *base)
{
    return lay_out(op->in[0].shape.dim[0], op->in[0].stored, base);
}

static spmm_csr describe(const cuda_calculator *calculator, const sdlf_operation *op, char *base)
{
    const sdlf_tensor &a = op->in[0], &y = op->out[0];
    spmm_csr s = {};
    s.offsets = sdlf_csr_offsets(&a);
    s.columns = sdlf_csr_columns(&a);
    s.values = sdlf_csr_values(&a);
    s.x = op->in[1].data;
    s.bias = op->in[2].data;
    s.y = y.data;
    s.rows = a.shape.dim[0];
    s.stored = a.stored;
    s.lines = lines_of(op, base);
    s.width = static_cast<int>(y.shape.dim[1]);
    s.heavy_blocks = s.lines.heavy_most > 0 ? HEAVY_BLOCKS * calculator->multiprocessors : 0;
    s.log_softmax = op->spmm.log_softmax;
    s.activation = op->spmm.activation;
    return s;
}

/* A row's log_softmax is taken where one group has all of its columns at once. */
extern "C" bool spmm_csr_supports_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    int64_t width = op->out[0].shape.dim[1], rows = op->in[0].shape.dim[0];
    bool at_once = width * static_cast<int64_t>(sdlf_dtype_size(op->out[0].dtype)) <= 16 * SPMM_WARP;
    return width <= INT32_MAX - 1024 && rows <= INT32_MAX - SPMM_CHUNK &&
           lines_of(op, nullptr).heavy_most < INT32_MAX && (at_once || !op->spmm.log_softmax);
}

extern "C" int64_t spmm_csr_prepared_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    return lines_of(op, nullptr).bytes;
}

extern "C" sdlf_status spmm_csr_prepare_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const spmm_csr s = describe(calculator, op, data_of<char>(op->prepared));
    cudaError_t error = spmm_arrange(&s, calculator->stream);
    return error == cudaSuccess ? cuda_check_launch("spmm_csr") : cuda_check(error, "spmm_csr");
}

extern "C" int64_t spmm_csr_workspace_cuda(const sdlf_calculator *, const sdlf_operation *op)
{
    const spmm_lines lines = lines_of(op, nullptr);
    int64_t row = op->out[0].shape.dim[1] * static_cast<int64_t>(sdlf_dtype_size(op->out[0].dtype));
    return padded(lines.part_most * row) + (sdlf_tensor_present(&op->prepared) ? 0 : lines.bytes);
}

extern "C" sdlf_status spmm_csr_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    bool ready = sdlf_tensor_present(&op->prepared);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    spmm_csr s = describe(calculator, op, data_of<char>(ready ? op->prepared : op->workspace));
    s.parts = data_of<char>(op->workspace) + (ready ? 0 : s.lines.bytes);
    cudaError_t error = ready ? cudaSuccess : spmm_arrange(&s, calculator->stream);
    if (error != cudaSuccess) return cuda_check(error, "spmm_csr");
    if (op->out[0].dtype == SDLF_FLOAT32)
        spmm_add_lines_float32(&s, calculator->stream);
    else
        spmm_add_lines_float64(&s, calculator->stream);
    spmm_add_cuts(&s, op->out[0].dtype, calculator->multiprocessors, calculator->stream);
    return cuda_check_launch("spmm_csr");
}
