/* SPDX-License-Identifier: MIT */
/* binary, binary_backward, select. A grid-stride loop, one thread per element; moves each operand once. */
#include "calculators/cuda/arithmetic.cuh"
#include "calculators/cuda/nhwc/nhwc.h"
#include "calculators/cuda/strided.cuh"
#include "calculators/integer_functions.h"

enum { THREADS = 256 };

/* Dispatch on the element type, numeric or bool: with_number(dtype, [&](auto zero) { using T = decltype(zero); ... }). */
template <typename Function> static void with_number(sdlf_dtype dtype, Function function)
{
    switch (dtype) {
    case SDLF_FLOAT32: function(0.0f); break;
    case SDLF_FLOAT64: function(0.0); break;
    case SDLF_INT32: function(int32_t(0)); break;
    case SDLF_INT64: function(int64_t(0)); break;
    case SDLF_INT8: function(int8_t(0)); break;
    default: function(uint8_t(0)); break; /* uint8 and bool */
    }
}

/* ---- y = a op b ---- */

/* In 64 bits; the result type keeps the low bits. */
static __device__ int64_t integer_arithmetic(sdlf_binary_function function, int64_t a, int64_t b)
{
    const uint64_t s = static_cast<uint64_t>(a), t = static_cast<uint64_t>(b);
    switch (function) {
    case SDLF_BINARY_ADD: return static_cast<int64_t>(s + t);
    case SDLF_BINARY_SUBTRACT: return static_cast<int64_t>(s - t);
    case SDLF_BINARY_MULTIPLY: return static_cast<int64_t>(s * t);
    case SDLF_BINARY_DIVIDE: return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(0 - s) : a / b;
    case SDLF_BINARY_POWER: return sdlf_integer_power(a, b);
    case SDLF_BINARY_MINIMUM: return a < b ? a : b;
    case SDLF_BINARY_REMAINDER: return sdlf_integer_remainder(a, b);
    case SDLF_BINARY_MODULO: return sdlf_integer_modulo(a, b);
    case SDLF_BINARY_BIT_AND: return a & b;
    case SDLF_BINARY_BIT_OR: return a | b;
    case SDLF_BINARY_BIT_XOR: return a ^ b;
    case SDLF_BINARY_SHIFT_LEFT: return sdlf_integer_shift_left(a, b);
    case SDLF_BINARY_SHIFT_RIGHT: return sdlf_integer_shift_right(a, b);
    default: return a > b ? a : b;
    }
}

static __device__ int32_t arithmetic(sdlf_binary_function function, int32_t a, int32_t b)
{
    return static_cast<int32_t>(integer_arithmetic(function, a, b));
}

static __device__ int64_t arithmetic(sdlf_binary_function function, int64_t a, int64_t b)
{
    return integer_arithmetic(function, a, b);
}

static __device__ int8_t arithmetic(sdlf_binary_function function, int8_t a, int8_t b)
{
    return static_cast<int8_t>(integer_arithmetic(function, a, b));
}

static __device__ uint8_t arithmetic(sdlf_binary_function function, uint8_t a, uint8_t b)
{
    return static_cast<uint8_t>(integer_arithmetic(function, a, b));
}

template <typename T> static __device__ bool compare(sdlf_binary_function function, T a, T b)
{
    switch (function) {
    case SDLF_BINARY_EQUAL: return a == b;
    case SDLF_BINARY_LESS: return a < b;
    case SDLF_BINARY_LESS_EQUAL: return a <= b;
    case SDLF_BINARY_AND: return a != T(0) && b != T(0);
    case SDLF_BINARY_OR: return a != T(0) || b != T(0);
    default: return (a != T(0)) != (b != T(0)); /* xor */
    }
}

/* An absent a or b (NULL) is the scalar `number`. */
template <typename T, typename Index>
static __global__ void binary(const T *a, const T *b, T number, void *y, strided<2> at, int64_t count,
                              sdlf_binary_function function)
{
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        int64_t place[2];
        strided_places(at, static_cast<Index>(i), place);
        T s = a != nullptr ? a[place[0]] : number, t = b != nullptr ? b[place[1]] : number;
        if (function >= SDLF_BINARY_EQUAL)
            static_cast<uint8_t *>(y)[i] = compare(function, s, t);
        else
            static_cast<T *>(y)[i] = arithmetic(function, s, t);
    }
}

template <typename T> static T number_of(sdlf_dtype dtype, double scalar)
{
    T number;
    sdlf_convert(dtype, &number, SDLF_FLOAT64, &scalar, 1);
    return number;
}

extern "C" sdlf_status binary_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    if (sdlf_operation_storage(op) != SDLF_NONE) return binary_nhwc_cuda(base, op);
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor *const operand[2] = {&op->in[0], &op->in[1]};
    const bool has_a = sdlf_tensor_present(operand[0]), has_b = sdlf_tensor_present(operand[1]);
    const sdlf_dtype dtype = operand[has_a ? 0 : 1]->dtype;
    int64_t count = sdlf_tensor_count(&op->out[0]);
    if (count == 0) return SDLF_OK;
    strided<2> at = strided_of<2>(op->out[0].shape, operand);
    with_number(dtype, [&](auto zero) {
        with_index(count, [&](auto index) {
            using T = decltype(zero);
            using Index = decltype(index);
            binary<T, Index><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
                has_a ? data_of<T>(op->in[0]) : nullptr, has_b ? data_of<T>(op->in[1]) : nullptr,
                number_of<T>(dtype, op->binary.scalar), op->out[0].data, at, count, op->binary.function);
        });
    });
    return cuda_check_launch("binary");
}

/* ---- da and db ---- */

template <typename T>
static __device__ void derivatives(sdlf_binary_function function, T a, T b, bool wants_b, T *by_a, T *by_b)
{
    *by_a = *by_b = T(1);
    switch (function) {
    case SDLF_BINARY_SUBTRACT: *by_b = T(-1); break;
    case SDLF_BINARY_MULTIPLY: *by_a = b, *by_b = a; break;
    case SDLF_BINARY_DIVIDE: *by_a = T(1) / b, *by_b = -a / (b * b); break;
    case SDLF_BINARY_POWER:
        *by_a = b * pow(a, b - T(1));
        *by_b = wants_b && a != T(0) ? pow(a, b) * log(a) : T(0);
        break;
    case SDLF_BINARY_MINIMUM: *by_a = a < b ? T(1) : a == b ? T(0.5) : T(0), *by_b = T(1) - *by_a; break;
    case SDLF_BINARY_MAXIMUM: *by_a = a > b ? T(1) : a == b ? T(0.5) : T(0), *by_b = T(1) - *by_a; break;
    case SDLF_BINARY_PRELU: *by_a = a < T(0) ? b : T(1), *by_b = a < T(0) ? a : T(0); break;
    case SDLF_BINARY_REMAINDER: *by_b = -trunc(a / b); break;
    case SDLF_BINARY_MODULO: *by_b = -floor(a / b); break;
    default: break;
    }
}

template <typename T, typename Index>
static __global__ void binary_backward(const T *a, const T *b, T number, const T *dy, T *da, T *db, strided<2> at,
                                       int64_t count, sdlf_binary_function function)
{
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        int64_t place[2];
        strided_places(at, static_cast<Index>(i), place);
        T s = a != nullptr ? a[place[0]] : number, t = b != nullptr ? b[place[1]] : number, by_a, by_b;
        derivatives(function, s, t, db != nullptr, &by_a, &by_b);
        T gradient = dy[i];
        if (da != nullptr) da[i] = gradient * by_a;
        if (db != nullptr) db[i] = gradient * by_b;
    }
}

extern "C" sdlf_status binary_backward_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor *const operand[2] = {&op->in[0], &op->in[1]};
    const sdlf_tensor &dy = op->in[2];
    int64_t count = sdlf_tensor_count(&dy);
    if (count == 0) return SDLF_OK;
    strided<2> at = strided_of<2>(dy.shape, operand);
    with_float(dy.dtype, [&](auto zero) {
        with_index(count, [&](auto index) {
            using T = decltype(zero);
            using Index = decltype(index);
            auto data = [](const sdlf_tensor &x) { return sdlf_tensor_present(&x) ? data_of<T>(x) : nullptr; };
            binary_backward<T, Index><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
                data(op->in[0]), data(op->in[1]), static_cast<T>(op->binary.scalar), data_of<T>(dy), data(op->out[0]),
                data(op->out[1]), at, count, op->binary.function);
        });
    });
    return cuda_check_launch("binary_backward");
}

/* ---- y = condition ? a : b, as raw bits ---- */

template <typename T, typename Index>
static __global__ void select(const uint8_t *condition, const T *a, const T *b, T *y, strided<3> at, int64_t count)
{
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        int64_t place[3];
        strided_places(at, static_cast<Index>(i), place);
        T s = a != nullptr ? a[place[1]] : T(0), t = b != nullptr ? b[place[2]] : T(0);
        y[i] = condition[place[0]] ? s : t;
    }
}

template <typename Function> static void with_size(size_t size, Function function)
{
    switch (size) {
    case 1: function(uint8_t(0)); break;
    case 2: function(uint16_t(0)); break;
    case 4: function(uint32_t(0)); break;
    default: function(uint64_t(0)); break;
    }
}

extern "C" sdlf_status select_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_tensor *const operand[3] = {&op->in[0], &op->in[1], &op->in[2]};
    int64_t count = sdlf_tensor_count(&op->out[0]);
    if (count == 0) return SDLF_OK;
    strided<3> at = strided_of<3>(op->out[0].shape, operand);
    with_size(sdlf_dtype_size(op->out[0].dtype), [&](auto zero) {
        with_index(count, [&](auto index) {
            using T = decltype(zero);
            using Index = decltype(index);
            auto data = [](const sdlf_tensor &x) { return sdlf_tensor_present(&x) ? data_of<T>(x) : nullptr; };
            select<T, Index><<<cuda_blocks(calculator, count, THREADS), THREADS, 0, calculator->stream>>>(
                data_of<uint8_t>(op->in[0]), data(op->in[1]), data(op->in[2]), data_of<T>(op->out[0]), at, count);
        });
    });
    return cuda_check_launch("select");
}
