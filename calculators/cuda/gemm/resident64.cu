/* c (m,n) = alpha a (m,k) b (k,n) in float64 for tall a, even k up to 128 and n up to 16, on tensor cores: all of b stays in
 * registers, and a's fragments come straight from memory, a tile of 8 rows ahead. From compute capability 9.0 on.
 *
 * Moves 8 (m k + m n) bytes: 325 MB for 281,903 x 128 by 128 x 16, 0.077 ms at 4.2 TB/s or 150,000 cycles. 8 warps a multiprocessor
 * have 16 reads of 512 bytes each under way, 64 kB; the tensor cores multiply for 34,000 cycles.
 *
 * mma.m8n8k4: lane 4 g + t has number t of row g of a's 8 x 4, number t of column g of b's 4 x 8, and of the sums' row g columns 2 t and
 * 2 t + 1. Which inner numbers are the four is ours to choose: lane t reads neighbours 8 s + 2 t and 8 s + 2 t + 1, 16 bytes, and
 * gives the first to one product and the second to the next. Sums of even and odd numbers are apart, so that two products
 * of a column are under way, and are added in the end: one order, always. A fragment that has been multiplied is asked for anew at once,
 * of the next tile. */
#include "calculators/cuda/gemm/tall.h"
#include "calculators/cuda/kernels.cuh"

enum {
    WARP = 32,
    WARPS = 4,
    RESIDENT = 2 /* blocks */,
    ROWS = 8,
    TILES = 2, /* of 8 columns */
    STEP = 8,  /* inner numbers of two products */
    CHUNK = 32,
    MOST_CHUNKS = 4
};

typedef struct tall {
    const double *a, *b;
    double *c, alpha;
    int64_t m;
    int n, k;
    bool pairs; /* pairs of columns of c begin at multiples of 16 bytes */
} tall;

/* c += a b. */
[[maybe_unused]] static __device__ __forceinline__ void mma_f64(double (&c)[2], double a, double b)
{
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(c[0]), "+d"(c[1])
        : "d"(a), "d"(b));
#endif
}

/* Volatile: it stays where it is, between products. */
[[maybe_unused]] static __device__ __forceinline__ double2 read_pair(const double *from)
{
    double2 x;
    asm volatile("ld.global.nc.v2.f64 {%0,%1}, [%2];" : "=d"(x.x), "=d"(x.y) : "l"(from));
    return x;
}

/* k is at most 32 CHUNKS; WHOLE: it is that. */
template <int CHUNKS, bool WHOLE>
static __global__ void __launch_bounds__(WARPS *WARP, RESIDENT) gemm_resident64(const __grid_constant__ tall g)
{
#if __CUDA_ARCH__ >= 900
    enum { STEPS = CHUNKS * CHUNK / STEP };
    const int lane = threadIdx.x % WARP, down = lane / 4, across = lane % 4;
    const int step = static_cast<int>(gridDim.x) * WARPS, tiles = static_cast<int>((g.m + ROWS - 1) / ROWS);
    const int k = WHOLE ? CHUNKS * CHUNK : g.k;
    int tile = static_cast<int>(blockIdx.x) * WARPS + threadIdx.x / WARP;
    /* Behind the last row: that one again. */
    const auto row_of = [&](int of) {
        const int64_t row = static_cast<int64_t>(of) * ROWS + down;
        return g.a + (row < g.m ? row : g.m - 1) * k + across * 2;
    };
    const auto read = [&](const double *from, int s) {
        return WHOLE || s * STEP + across * 2 < k ? read_pair(from + s * STEP) : make_double2(0, 0);
    };
    let_next_start();
    if (tile >= tiles) return;
    double2 x[STEPS];
#pragma unroll
    for (int s = 0; s < STEPS; s++) x[s] = read(row_of(tile), s);
    double b[STEPS][2][TILES];
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
#pragma unroll
        for (int i = 0; i < 2 * TILES; i++) {
            const int p = s * STEP + across * 2 + i / TILES, q = i % TILES * 8 + down;
            b[s][i / TILES][i % TILES] = p < k && q < g.n ? g.alpha * g.b[p * g.n + q] : 0.0;
        }
    }
    for (; tile < tiles; tile += step) {
        const double *next = row_of(tile + step < tiles ? tile + step : tile);
        double sum[2][TILES][2] = {};
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
#pragma unroll
            for (int j = 0; j < TILES; j++) {
                mma_f64(sum[0][j], x[s].x, b[s][0][j]);
                mma_f64(sum[1][j], x[s].y, b[s][1][j]);
            }
            x[s] = read(next, s);
        }
        const int64_t row = static_cast<int64_t>(tile) * ROWS + down;
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            const int column = j * 8 + across * 2;
            const double2 result = make_double2(sum[0][j][0] + sum[1][j][0], sum[0][j][1] + sum[1][j][1]);
            double *to = g.c + row * g.n + column;
            if (row >= g.m || column >= g.n) continue;
            if (g.pairs) {
                *reinterpret_cast<double2 *>(to) = result;
            } else {
                to[0] = result.x;
                if (column + 1 < g.n) to[1] = result.y;
            }
        }
    }
#endif
}

/* ---- launching ---- */

extern "C" bool gemm_resident64_fits(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const int64_t m = op->in[0].shape.dim[0], k = op->in[1].shape.dim[0], n = op->in[1].shape.dim[1];
    return cuda_is_built_for(calculator, 90) && op->out[0].dtype == SDLF_FLOAT64 && m <= INT32_MAX && n >= 1 &&
           n <= 8 * TILES && k >= 2 && k <= MOST_CHUNKS * CHUNK && k % 2 == 0;
}

/* As gemm_resident's: the kernel before it has ended, the one behind it may start meanwhile. */
template <int CHUNKS> static void launch(const cuda_calculator *calculator, const tall &g)
{
    const int64_t wanted = (g.m + ROWS * WARPS - 1) / (ROWS * WARPS), most = RESIDENT * calculator->multiprocessors;
    const unsigned blocks = static_cast<unsigned>(wanted < most ? wanted : most);
    if (g.k == CHUNKS * CHUNK)
        gemm_resident64<CHUNKS, true><<<blocks, WARPS * WARP, 0, calculator->stream>>>(g);
    else
        gemm_resident64<CHUNKS, false><<<blocks, WARPS * WARP, 0, calculator->stream>>>(g);
}

extern "C" sdlf_status gemm_resident64_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    tall g = {};
    g.a = data_of<double>(op->in[0]);
    g.b = data_of<double>(op->in[1]);
    g.c = data_of<double>(op->out[0]);
    g.alpha = op->gemm.alpha;
    g.m = op->out[0].shape.dim[0];
    g.n = static_cast<int>(op->out[0].shape.dim[1]);
    g.k = static_cast<int>(op->in[0].shape.dim[1]);
    g.pairs = reinterpret_cast<uintptr_t>(g.c) % 16 == 0 && g.n % 2 == 0;
    switch ((g.k + CHUNK - 1) / CHUNK) {
    case 1: launch<1>(calculator, g); break;
    case 2: launch<2>(calculator, g); break;
    case 3: launch<3>(calculator, g); break;
    default: launch<MOST_CHUNKS>(calculator, g); break;
    }
    return cuda_check_launch("gemm");
}
