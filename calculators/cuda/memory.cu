/* fill and copy: any dtype, any strides, conversion on the way. Contiguous copies of one dtype are a plain memory copy;
 * the rest is a thread an element, striding, which divides the element's number into coordinates. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "calculators/cuda/kernels.cuh"

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

/* Where element `i` of a row-major walk over the shape lies. */
struct layout {
    int rank;
    int64_t dim[SDLF_MAX_RANK], stride[SDLF_MAX_RANK];
};

static layout layout_of(const sdlf_tensor &tensor)
{
    layout made = {};
    made.rank = tensor.shape.rank;
    for (int i = 0; i < made.rank; i++) {
        made.dim[i] = tensor.shape.dim[i];
        made.stride[i] = tensor.stride[i];
    }
    return made;
}

static __device__ int64_t place(const layout &at, int64_t i)
{
    int64_t offset = 0;
    for (int axis = at.rank - 1; axis >= 0; axis--) {
        offset += i % at.dim[axis] * at.stride[axis];
        i /= at.dim[axis];
    }
    return offset;
}

static __global__ void fill(sdlf_dtype dtype, void *y, layout to, int64_t count, double value)
{
    for (int64_t i = grid_first(); i < count; i += grid_step()) store_float(dtype, y, place(to, i), value);
}

static __global__ void copy(sdlf_dtype from_dtype, const void *x, layout from, sdlf_dtype to_dtype, void *y, layout to,
                            int64_t count)
{
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        int64_t source = place(from, i), target = place(to, i);
        if (is_floating(from_dtype))
            store_float(to_dtype, y, target, load_float(from_dtype, x, source));
        else
            store_integer(to_dtype, y, target, load_integer(from_dtype, x, source));
    }
}

/* One kernel speaks for all: the build makes them for the same architectures. Where the driver translated the intermediate
 * code, the code is newer than what it was translated from. */
extern "C" cudaError_t cuda_kernel_architecture(int *architecture)
{
    cudaFuncAttributes attributes = {};
    cudaError_t error = cudaFuncGetAttributes(&attributes, fill);
    *architecture =
        attributes.ptxVersion < attributes.binaryVersion ? -attributes.ptxVersion : attributes.binaryVersion;
    return error;
}

extern "C" sdlf_status fill_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &y = op->out[0];
    int64_t count = sdlf_tensor_count(&y);
    if (count == 0) return SDLF_OK;
    fill<<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(y.dtype, y.data, layout_of(y),
                                                                                      count, op->fill.value);
    return cuda_check_launch("fill");
}

extern "C" sdlf_status copy_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor &x = op->in[0], &y = op->out[0];
    int64_t count = sdlf_tensor_count(&y);
    if (count == 0) return SDLF_OK;
    if (x.dtype == y.dtype && sdlf_tensor_is_contiguous(&x) && sdlf_tensor_is_contiguous(&y))
        return cuda_check(cudaMemcpyAsync(y.data, x.data, (size_t)sdlf_tensor_bytes(&x), cudaMemcpyDeviceToDevice,
                                          calculator->stream),
                          "copy");
    copy<<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
        x.dtype, x.data, layout_of(x), y.dtype, y.data, layout_of(y), count);
    return cuda_check_launch("copy");
}
