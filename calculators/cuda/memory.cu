/* SPDX-License-Identifier: MIT */
/* fill and copy: any dtype, any strides, with conversion. Moves every element once.
 *
 * Contiguous copies of one dtype are a plain memory copy. Other copies without conversion move raw bits, in units of up to 16
 * bytes: as many elements as are contiguous on both sides. Where the innermost axes of x and y differ, as in a transposition, tiles
 * of 32 x 32 pass through shared memory (copy_tiles.cuh), so that accesses on both sides are coalesced. Conversions have one thread
 * per element. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "calculators/cuda/copy_tiles.cuh"
#include "calculators/cuda/strided.cuh"

enum { THREADS = 256 };

/* ---- one element, through a wide type (float64 or int64) that holds every source exactly, as sdlf_convert does ---- */

static __device__ bool is_floating(sdlf_dtype dtype)
{
    return dtype <= SDLF_BFLOAT16;
}

static __device__ double load_float(sdlf_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case SDLF_FLOAT32: return static_cast<const float *>(data)[i];
    case SDLF_FLOAT16: return __half2float(static_cast<const __half *>(data)[i]);
    case SDLF_BFLOAT16: return __bfloat162float(static_cast<const __nv_bfloat16 *>(data)[i]);
    default: return static_cast<const double *>(data)[i];
    }
}

static __device__ int64_t load_integer(sdlf_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case SDLF_UINT8: return static_cast<const uint8_t *>(data)[i];
    case SDLF_INT8: return static_cast<const int8_t *>(data)[i];
    case SDLF_BOOL: return static_cast<const uint8_t *>(data)[i] != 0;
    case SDLF_INT32: return static_cast<const int32_t *>(data)[i];
    default: return static_cast<const int64_t *>(data)[i];
    }
}

static __device__ double saturate(double x, double low, double high)
{
    return x != x ? 0 : x < low ? low : x > high ? high : x;
}

static __device__ void store_float(sdlf_dtype dtype, void *data, int64_t i, double x)
{
    switch (dtype) {
    case SDLF_FLOAT32: static_cast<float *>(data)[i] = static_cast<float>(x); break;
    case SDLF_FLOAT64: static_cast<double *>(data)[i] = x; break;
    case SDLF_FLOAT16: static_cast<__half *>(data)[i] = __double2half(x); break;
    case SDLF_BFLOAT16: static_cast<__nv_bfloat16 *>(data)[i] = __double2bfloat16(x); break;
    case SDLF_UINT8: static_cast<uint8_t *>(data)[i] = static_cast<uint8_t>(saturate(x, 0, 255)); break;
    case SDLF_INT8: static_cast<int8_t *>(data)[i] = static_cast<int8_t>(saturate(x, -128, 127)); break;
    case SDLF_BOOL: static_cast<uint8_t *>(data)[i] = x != 0; break;
    case SDLF_INT32: static_cast<int32_t *>(data)[i] = __double2int_rz(saturate(x, -0x1p31, 0x1p31 - 1)); break;
    default: static_cast<int64_t *>(data)[i] = __double2ll_rz(x != x ? 0 : x); break; /* saturates by itself */
    }
}

static __device__ void store_integer(sdlf_dtype dtype, void *data, int64_t i, int64_t x)
{
    switch (dtype) {
    case SDLF_FLOAT32: static_cast<float *>(data)[i] = __ll2float_rn(x); break;
    case SDLF_FLOAT64: static_cast<double *>(data)[i] = __ll2double_rn(x); break;
    case SDLF_FLOAT16: static_cast<__half *>(data)[i] = __ll2half_rn(x); break;
    case SDLF_BFLOAT16: static_cast<__nv_bfloat16 *>(data)[i] = __ll2bfloat16_rn(x); break;
    case SDLF_UINT8: static_cast<uint8_t *>(data)[i] = static_cast<uint8_t>(x < 0 ? 0 : x > 255 ? 255 : x); break;
    case SDLF_INT8: static_cast<int8_t *>(data)[i] = static_cast<int8_t>(x < -128 ? -128 : x > 127 ? 127 : x); break;
    case SDLF_BOOL: static_cast<uint8_t *>(data)[i] = x != 0; break;
    case SDLF_INT32:
        static_cast<int32_t *>(data)[i] = static_cast<int32_t>(x < INT32_MIN   ? INT32_MIN
                                                               : x > INT32_MAX ? INT32_MAX
                                                                               : x);
        break;
    default: static_cast<int64_t *>(data)[i] = x; break;
    }
}

/* ---- kernels ---- */

template <typename Bits, typename Index> static __global__ void fill(Bits *y, strided<1> to, int64_t count, Bits value)
{
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        int64_t place[1];
        strided_places(to, static_cast<Index>(i), place);
        y[place[0]] = value;
    }
}

template <typename Bits, typename Index>
static __global__ void move_bits(const Bits *x, Bits *y, strided<2> at, int64_t count)
{
    wait_and_launch_dependent_grids();
#pragma unroll 2
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        int64_t place[2];
        strided_places(at, static_cast<Index>(i), place);
        y[place[1]] = x[place[0]];
    }
}

template <typename Index>
static __global__ void convert(sdlf_dtype from_dtype, const void *x, sdlf_dtype to_dtype, void *y, strided<2> at,
                               int64_t count)
{
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        int64_t place[2];
        strided_places(at, static_cast<Index>(i), place);
        if (is_floating(from_dtype))
            store_float(to_dtype, y, place[1], load_float(from_dtype, x, place[0]));
        else
            store_integer(to_dtype, y, place[1], load_integer(from_dtype, x, place[0]));
    }
}

/* One kernel stands for all: the build compiles them for the same architectures. Where the driver JIT-compiled PTX, the
 * binary's version is newer than the PTX's. */
extern "C" cudaError_t cuda_kernel_architecture(int *architecture)
{
    cudaFuncAttributes attributes = {};
    cudaError_t error = cudaFuncGetAttributes(&attributes, convert<uint32_t>);
    *architecture =
        attributes.ptxVersion < attributes.binaryVersion ? -attributes.ptxVersion : attributes.binaryVersion;
    return error;
}

/* ---- launching ---- */

/* Call function(zero of an unsigned type of that many bytes). */
template <typename Function> static void with_bits(size_t size, Function function)
{
    switch (size) {
    case 1: function(uint8_t(0)); break;
    case 2: function(uint16_t(0)); break;
    case 4: function(uint32_t(0)); break;
    case 8: function(uint64_t(0)); break;
    default: function(make_uint4(0, 0, 0, 0)); break;
    }
}

/* Regroup the innermost axis into units of several elements, as many as are contiguous and aligned in every operand, at most `units`; returns
 * that number. size: of an element of each operand. */
template <int Operands>
static int64_t widen(strided<Operands> &at, const uintptr_t (&address)[Operands], const size_t (&size)[Operands],
                     int64_t units)
{
    int last = at.rank - 1;
    for (int k = 0; k < Operands; k++) {
        if (last < 0 || at.stride[k][last] != 1) return 1;
    }
    auto fits = [&](int64_t by) {
        bool whole = at.dim[last] % by == 0;
        for (int k = 0; k < Operands; k++) {
            whole = whole && address[k] % (static_cast<size_t>(by) * size[k]) == 0;
            for (int axis = 0; axis < last; axis++) whole = whole && at.stride[k][axis] % by == 0;
        }
        return whole;
    };
    while (units > 1 && !fits(units)) units /= 2;
    at.dim[last] /= units;
    for (int k = 0; k < Operands; k++) {
        for (int axis = 0; axis < last; axis++) at.stride[k][axis] /= units;
    }
    strided_ready(at);
    return units;
}

/* The bits of `value` in that dtype, repeated to fill a value of type Bits. */
template <typename Bits> static Bits pattern(sdlf_dtype dtype, double value)
{
    Bits bits;
    unsigned char *to = reinterpret_cast<unsigned char *>(&bits);
    size_t size = sdlf_dtype_size(dtype);
    for (size_t at = 0; at < sizeof bits; at += size) sdlf_convert(dtype, to + at, SDLF_FLOAT64, &value, 1);
    return bits;
}

extern "C" sdlf_status fill_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &y = op->out[0];
    const sdlf_tensor *const operand[] = {&y};
    const uintptr_t address[] = {reinterpret_cast<uintptr_t>(y.data)};
    size_t size = sdlf_dtype_size(y.dtype);
    if (sdlf_tensor_count(&y) == 0) return SDLF_OK;
    strided<1> to = strided_of<1>(y.shape, operand);
    int64_t units = widen(to, address, {size}, 16 / (int64_t)size), count = sdlf_tensor_count(&y) / units;
    with_bits(size * (size_t)units, [&](auto zero) {
        with_index(count, [&](auto index) {
            using Bits = decltype(zero);
            fill<Bits, decltype(index)><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
                static_cast<Bits *>(y.data), to, count, pattern<Bits>(y.dtype, op->fill.value));
        });
    });
    return cuda_check_launch("fill");
}

static void copy_bits(const cuda_calculator *calculator, const sdlf_tensor &x, const sdlf_tensor &y, strided<2> at)
{
    const uintptr_t address[] = {reinterpret_cast<uintptr_t>(x.data), reinterpret_cast<uintptr_t>(y.data)};
    size_t size = sdlf_dtype_size(x.dtype);
    copy_tiling tiling;
    if (copy_tiling_of(tiling, at)) {
        with_bits(size, [&](auto zero) {
            using Bits = decltype(zero);
            copy_tiles_launch(calculator, static_cast<const Bits *>(x.data), static_cast<Bits *>(y.data), tiling);
        });
        return;
    }
    int64_t units = widen(at, address, {size, size}, 16 / (int64_t)size), count = sdlf_tensor_count(&y) / units;
    with_bits(size * (size_t)units, [&](auto zero) {
        with_index(count, [&](auto index) {
            using Bits = decltype(zero);
            launch_overlapped(calculator, move_bits<Bits, decltype(index)>, cuda_blocks(calculator, count, THREADS),
                              THREADS, 0, static_cast<const Bits *>(x.data), static_cast<Bits *>(y.data), at, count);
        });
    });
}

/* ---- between float32 and 16 bits: conversions in plans whose activations are stored in 16 bits ---- */

template <typename From, typename To>
static __global__ void convert_floats(const From *x, To *y, strided<2> at, int64_t count)
{
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        int64_t place[2];
        strided_places(at, static_cast<uint32_t>(i), place);
        y[place[1]] = static_cast<To>(x[place[0]]);
    }
}

/* A thread converts four adjacent elements; offsets and count are in units of four. */
template <typename From, typename To>
static __global__ void convert_fours(const From *x, To *y, strided<2> at, int64_t count)
{
    struct alignas(4 * sizeof(From)) from_four {
        From at[4];
    };
    struct alignas(4 * sizeof(To)) to_four {
        To at[4];
    };
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        int64_t place[2];
        strided_places(at, static_cast<uint32_t>(i), place);
        const from_four from = reinterpret_cast<const from_four *>(x)[place[0]];
        to_four to;
#pragma unroll
        for (int v = 0; v < 4; v++) to.at[v] = static_cast<To>(from.at[v]);
        reinterpret_cast<to_four *>(y)[place[1]] = to;
    }
}

template <typename From, typename To>
static void launch_conversion(const cuda_calculator *calculator, const From *x, To *y, const strided<2> &at,
                              int64_t count)
{
    copy_tiling tiling;
    strided<2> fours = at;
    const uintptr_t address[] = {reinterpret_cast<uintptr_t>(x), reinterpret_cast<uintptr_t>(y)};
    if (copy_tiling_of(tiling, at))
        copy_tiles_launch(calculator, x, y, tiling);
    else if (widen(fours, address, {sizeof(From), sizeof(To)}, 4) == 4)
        launch_overlapped(calculator, convert_fours<From, To>, cuda_blocks(calculator, count / 4, THREADS), THREADS, 0,
                          x, y, fours, count / 4);
    else
        launch_overlapped(calculator, convert_floats<From, To>, cuda_blocks(calculator, count, THREADS), THREADS, 0, x,
                          y, at, count);
}

/* False if it is another conversion. */
static bool convert_storage(const cuda_calculator *calculator, const sdlf_tensor &x, const sdlf_tensor &y,
                            const strided<2> &at, int64_t count)
{
    const bool narrows = x.dtype == SDLF_FLOAT32;
    const sdlf_dtype narrow = narrows ? y.dtype : x.dtype;
    if (count > INT32_MAX || (!narrows && y.dtype != SDLF_FLOAT32)) return false;
    if (narrow != SDLF_FLOAT16 && narrow != SDLF_BFLOAT16) return false;
    auto with = [&](auto zero) {
        using T = decltype(zero);
        if (narrows)
            launch_conversion(calculator, static_cast<const float *>(x.data), static_cast<T *>(y.data), at, count);
        else
            launch_conversion(calculator, static_cast<const T *>(x.data), static_cast<float *>(y.data), at, count);
    };
    if (narrow == SDLF_BFLOAT16)
        with(__nv_bfloat16());
    else
        with(__half());
    return true;
}

extern "C" sdlf_status copy_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    const sdlf_tensor *const operand[] = {&x, &y};
    int64_t count = sdlf_tensor_count(&y);
    if (count == 0) return SDLF_OK;
    if (x.dtype == y.dtype && sdlf_tensor_is_contiguous(&x) && sdlf_tensor_is_contiguous(&y))
        return cuda_check(cudaMemcpyAsync(y.data, x.data, (size_t)sdlf_tensor_bytes(&x), cudaMemcpyDeviceToDevice,
                                          calculator->stream),
                          "copy");
    const strided<2> at = strided_of<2>(y.shape, operand);
    if (x.dtype == y.dtype)
        copy_bits(calculator, x, y, at);
    else if (!convert_storage(calculator, x, y, at, count))
        with_index(count, [&](auto index) {
            convert<decltype(index)><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
                x.dtype, x.data, y.dtype, y.data, at, count);
        });
    return cuda_check_launch("copy");
}
