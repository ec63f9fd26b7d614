/* SPDX-License-Identifier: MIT */
/* Quantised values: quantize, dequantize, quantized_conv2d, quantized_add, quantized_pool2d. Integers are summed in
 * int32, modulo 2^32; all else is float32, with every operation rounded, so that all calculators are bit-identical. */
#include <math.h>

#include "calculators/reference/reference.h"

static int get_byte(const sdlf_tensor *tensor, int64_t i)
{
    return tensor->dtype == SDLF_INT8 ? ((const int8_t *)tensor->data)[i] : ((const uint8_t *)tensor->data)[i];
}

/* clamp(round(v) + zero) */
static void put_rounded(const sdlf_tensor *y, int64_t i, float v, int zero, float low, float high)
{
    float rounded = rintf(v) + (float)zero;
    int whole = (int)(rounded > low ? (rounded < high ? rounded : high) : low);
    if (y->dtype == SDLF_INT8)
        ((int8_t *)y->data)[i] = (int8_t)whole;
    else
        ((uint8_t *)y->data)[i] = (uint8_t)whole;
}

sdlf_status quantize_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_quantize_options *o = &operation->quantize;
    const float *x = operation->in[0].data;
    for (int64_t i = 0; i < sdlf_tensor_count(&operation->in[0]); i++)
        put_rounded(&operation->out[0], i, x[i] / o->scale, o->zero, o->low, o->high);
    return SDLF_OK;
}

sdlf_status dynamic_quantize_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const float *x = operation->in[0].data;
    float low = 0, high = 0, *scale = operation->out[1].data;
    for (int64_t i = 0; i < sdlf_tensor_count(&operation->in[0]); i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    *scale = low == high ? 1 : (high - low) / 255;
    put_rounded(&operation->out[2], 0, -low / *scale, 0, 0, 255);
    for (int64_t i = 0; i < sdlf_tensor_count(&operation->in[0]); i++)
        put_rounded(&operation->out[0], i, x[i] / *scale, get_byte(&operation->out[2], 0), 0, 255);
    return SDLF_OK;
}

sdlf_status dequantize_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_quantize_options *o = &operation->quantize;
    float *y = operation->out[0].data;
    for (int64_t i = 0; i < sdlf_tensor_count(&operation->in[0]); i++)
        y[i] = (float)(get_byte(&operation->in[0], i) - o->zero) * o->scale;
    return SDLF_OK;
}

/* The accumulator of filter k's window at (p, q). */
static int32_t window_sum(const sdlf_operation *operation, int64_t n, int64_t k, int64_t p, int64_t q)
{
    const sdlf_quantized_conv2d_options *o = &operation->quantized_conv2d;
    const sdlf_tensor *x = &operation->in[0], *w = &operation->in[1];
    const int64_t *size = w->shape.dim;
    int64_t first = k / (size[0] / o->groups) * size[1];
    const sdlf_tensor *zero = &operation->in[4];
    int x_zero = sdlf_tensor_present(zero) ? get_byte(zero, 0) : o->x_zero;
    uint32_t sum = sdlf_tensor_present(&operation->in[2]) ? (uint32_t)((const int32_t *)operation->in[2].data)[k] : 0;
    for (int64_t c = 0; c < size[1]; c++) {
        for (int64_t r = 0; r < size[2]; r++) {
            for (int64_t s = 0; s < size[3]; s++) {
                int64_t row = window_input(&o->window, 0, p, r), column = window_input(&o->window, 1, q, s);
                if (!inside(x, row, column)) continue;
                int difference = get_byte(x, at4(x, n, first + c, row, column)) - x_zero;
                sum += (uint32_t)(difference * get_byte(w, at4(w, k, c, r, s)));
            }
        }
    }
    return (int32_t)sum;
}

sdlf_status quantized_conv2d_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_quantized_conv2d_options *o = &operation->quantized_conv2d;
    const sdlf_tensor *y = &operation->out[0];
    const float *multiplier = operation->in[3].data;
    const int64_t *dim = y->shape.dim;
    for (int64_t n = 0; n < dim[0]; n++) {
        for (int64_t k = 0; k < dim[1]; k++) {
            for (int64_t p = 0; p < dim[2]; p++) {
                for (int64_t q = 0; q < dim[3]; q++) {
                    int32_t sum = window_sum(operation, n, k, p, q);
                    int64_t at = at4(y, n, k, p, q);
                    if (y->dtype == SDLF_INT32) {
                        ((int32_t *)y->data)[at] = sum;
                        continue;
                    }
                    float v = (float)sum * multiplier[k];
                    if (y->dtype == SDLF_FLOAT32)
                        ((float *)y->data)[at] = v < o->low ? o->low : v > o->high ? o->high : v;
                    else
                        put_rounded(y, at, v, o->y_zero, o->low, o->high);
                }
            }
        }
    }
    return SDLF_OK;
}

sdlf_status quantized_add_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_quantized_add_options *o = &operation->quantized_add;
    const sdlf_tensor *a = &operation->in[0], *b = &operation->in[1];
    for (int64_t i = 0; i < sdlf_tensor_count(a); i++) {
        float v = (float)(get_byte(a, i) - o->a_zero) * o->a_scale;
        if (sdlf_tensor_present(b)) {
            float second = (float)(get_byte(b, i) - o->b_zero) * o->b_scale;
            v = v + second;
        }
        put_rounded(&operation->out[0], i, v, o->y_zero, o->low, o->high);
    }
    return SDLF_OK;
}

/* The value of the window of (p, q), before rounding. */
static float window_value(const sdlf_operation *operation, int64_t n, int64_t c, int64_t p, int64_t q)
{
    const sdlf_quantized_pool2d_options *o = &operation->quantized_pool2d;
    const sdlf_tensor *x = &operation->in[0];
    int largest = -256, sum = 0, count = 0;
    for (int64_t r = 0; r < o->window.size[0]; r++) {
        for (int64_t s = 0; s < o->window.size[1]; s++) {
            int64_t row = window_input(&o->window, 0, p, r), column = window_input(&o->window, 1, q, s);
            if (!inside(x, row, column)) continue;
            int difference = get_byte(x, at4(x, n, c, row, column)) - o->x_zero;
            if (difference > largest) largest = difference;
            sum += difference;
            count++;
        }
    }
    if (!o->average) return (float)largest * o->scale;
    if (o->count_padding) count = o->window.size[0] * o->window.size[1];
    float share = o->scale / (float)count;
    return (float)sum * share;
}

sdlf_status quantized_pool2d_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_quantized_pool2d_options *o = &operation->quantized_pool2d;
    const sdlf_tensor *y = &operation->out[0];
    const int64_t *dim = y->shape.dim;
    for (int64_t n = 0; n < dim[0]; n++)
        for (int64_t c = 0; c < dim[1]; c++)
            for (int64_t p = 0; p < dim[2]; p++)
                for (int64_t q = 0; q < dim[3]; q++)
                    put_rounded(y, at4(y, n, c, p, q), window_value(operation, n, c, p, q), o->y_zero, o->low, o->high);
    return SDLF_OK;
}
