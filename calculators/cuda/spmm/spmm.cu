/* SPDX-License-Identifier: MIT */
/* spmm_csr: the matrix is arranged once if it is constant (the prepared form), else in the workspace before each run; then one
 * kernel processes the whole stream. spmm.cuh describes the algorithm. */
#include "calculators/cuda/spmm/spmm.cuh"

enum { BLOCK_BYTES = 1024 /* of shared memory that the system reserves per block */ };

static int64_t padded(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

int spmm_lanes(int64_t width, int64_t size)
{
    int lanes = 4;
    while (lanes < SPMM_WARP && lanes * 16 < width * size) lanes *= 2;
    return lanes;
}

/* As many warps as are resident at once, and no more than stages. */
static int count_warps(const cuda_calculator *calculator, int64_t stages, int groups, int64_t size)
{
    const size_t block = SPMM_WARPS * spmm_warp_bytes(static_cast<size_t>(groups), static_cast<size_t>(size));
    int64_t resident = calculator->shared_most / static_cast<int64_t>(block + BLOCK_BYTES);
    if (resident > SPMM_RESIDENT) resident = SPMM_RESIDENT;
    if (resident < 1) resident = 1;
    const int64_t blocks = resident * calculator->multiprocessors, wanted = (stages + SPMM_WARPS - 1) / SPMM_WARPS;
    return static_cast<int>(wanted < blocks ? wanted : blocks) * SPMM_WARPS;
}

/* The stream of a matrix, laid out from `base` on; NULL: only for its size. A chunk's rows are sorted, so a slice has no more
 * slots than the slice before it has elements for each group. Beyond the elements there are the slots of each chunk's first slice,
 * one for each slice of empty rows, the rest of the last slot of each single-row slice, and the rest of each chunk's last
 * stage. */
static spmm_stream lay_out(int64_t rows, int64_t stored, int64_t width, int64_t size, const cuda_calculator *calculator,
                           char *base)
{
    spmm_stream stream = {};
    const int64_t chunks = (rows + SPMM_CHUNK - 1) / SPMM_CHUNK;
    const int lanes = spmm_lanes(width, size), groups = SPMM_WARP / lanes;
    stream.groups = groups;
    stream.column_blocks = static_cast<int>((width * size + lanes * 16 - 1) / (lanes * 16));
    stream.cut_most = stored / (SPMM_HEAVY + 1);
    stream.part_most = stored / SPMM_HEAVY + stream.cut_most;
    stream.piece_most = stored / (SPMM_LIGHT + 1);
    if (stream.part_most > stream.piece_most) stream.piece_most = stream.part_most;
    stream.slice_most = chunks * (SPMM_CHUNK / groups) + stream.piece_most;
    int64_t slots = stored / groups + chunks * (SPMM_LIGHT + SPMM_CHUNK / groups) + stream.piece_most;
    stream.stage_most = slots / SPMM_STAGE + chunks + 1;
    stream.warps = count_warps(calculator, stream.stage_most, groups, size);
    const int64_t places = stream.stage_most * SPMM_STAGE * groups;
    int64_t heads = padded(sizeof *stream.counts);
    int64_t starts = heads + padded(stream.stage_most * static_cast<int64_t>(sizeof *stream.heads));
    int64_t columns = starts + padded((stream.warps + 1) * static_cast<int64_t>(sizeof *stream.starts));
    int64_t values = columns + padded(places * static_cast<int64_t>(sizeof *stream.columns));
    int64_t targets = values + padded(places * size);
    int64_t pieces = targets + padded(stream.slice_most * groups * static_cast<int64_t>(sizeof *stream.targets));
    int64_t cuts = pieces + padded(stream.piece_most * static_cast<int64_t>(sizeof *stream.pieces));
    int64_t cut_of_part = cuts + padded(stream.cut_most * static_cast<int64_t>(sizeof *stream.cuts));
    int64_t arrived = cut_of_part + padded(stream.part_most * static_cast<int64_t>(sizeof *stream.cut_of_part));
    stream.bytes =
        arrived + padded(stream.cut_most * stream.column_blocks * static_cast<int64_t>(sizeof *stream.arrived));
    if (base == nullptr) return stream;
    stream.counts = reinterpret_cast<spmm_counts *>(base);
    stream.heads = reinterpret_cast<spmm_head *>(base + heads);
    stream.starts = reinterpret_cast<spmm_start *>(base + starts);
    stream.columns = reinterpret_cast<int32_t *>(base + columns);
    stream.values = base + values;
    stream.targets = reinterpret_cast<int32_t *>(base + targets);
    stream.pieces = reinterpret_cast<spmm_piece *>(base + pieces);
    stream.cuts = reinterpret_cast<spmm_cut *>(base + cuts);
    stream.cut_of_part = reinterpret_cast<int32_t *>(base + cut_of_part);
    stream.arrived = reinterpret_cast<unsigned *>(base + arrived);
    return stream;
}

static spmm_stream stream_of(const sdlf_calculator *calculator, const sdlf_operation *op, char *base)
{
    const int64_t size = static_cast<int64_t>(sdlf_dtype_size(op->out[0].dtype));
    return lay_out(op->in[0].shape.dim[0], op->in[0].stored, op->out[0].shape.dim[1], size,
                   reinterpret_cast<const cuda_calculator *>(calculator), base);
}

static spmm_csr describe(const sdlf_calculator *calculator, const sdlf_operation *op, char *base)
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
    s.stream = stream_of(calculator, op, base);
    s.width = static_cast<int>(y.shape.dim[1]);
    s.log_softmax = op->spmm.log_softmax;
    s.activation = op->spmm.activation;
    return s;
}

/* Limit on the columns of y: groups of them are along the grid's second dimension. */
enum { WIDEST = 65535 * 2 * SPMM_WARP };

/* log_softmax requires that one group has all columns of a row at once. */
extern "C" bool spmm_csr_supports_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    int64_t width = op->out[0].shape.dim[1], rows = op->in[0].shape.dim[0];
    bool at_once = width * static_cast<int64_t>(sdlf_dtype_size(op->out[0].dtype)) <= 16 * SPMM_WARP;
    const spmm_stream stream = stream_of(base, op, nullptr);
    return width <= WIDEST && rows <= INT32_MAX - SPMM_CHUNK && stream.stage_most < INT32_MAX &&
           stream.slice_most < INT32_MAX && (at_once || !op->spmm.log_softmax);
}

extern "C" int64_t spmm_csr_prepared_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    return stream_of(base, op, nullptr).bytes;
}

extern "C" sdlf_status spmm_csr_prepare_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const spmm_csr s = describe(base, op, data_of<char>(op->prepared));
    cudaError_t error = spmm_arrange(calculator, &s, op->out[0].dtype);
    if (error != cudaSuccess) return cuda_check(error, "spmm_csr");
    const sdlf_status status = cuda_check_launch("spmm_csr");
    /* spmm_csr reads the stream before it waits for earlier kernels */
    return status == SDLF_OK ? cuda_check(cudaStreamSynchronize(calculator->stream), "spmm_csr, prepared") : status;
}

extern "C" int64_t spmm_csr_workspace_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    const spmm_stream stream = stream_of(base, op, nullptr);
    int64_t row = op->out[0].shape.dim[1] * static_cast<int64_t>(sdlf_dtype_size(op->out[0].dtype));
    return padded(stream.part_most * row) + (sdlf_tensor_present(&op->prepared) ? 0 : stream.bytes);
}

extern "C" sdlf_status spmm_csr_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    bool ready = sdlf_tensor_present(&op->prepared);
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    spmm_csr s = describe(base, op, data_of<char>(ready ? op->prepared : op->workspace));
    s.ready = ready;
    s.parts = data_of<char>(op->workspace) + (ready ? 0 : s.stream.bytes);
    cudaError_t error = ready ? cudaSuccess : spmm_arrange(calculator, &s, op->out[0].dtype);
    if (error != cudaSuccess) return cuda_check(error, "spmm_csr");
    if (op->out[0].dtype == SDLF_FLOAT32)
        spmm_run_stream_float32(calculator, &s);
    else
        spmm_run_stream_float64(calculator, &s);
    return cuda_check_launch("spmm_csr");
}
