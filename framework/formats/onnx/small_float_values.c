/* SPDX-License-Identifier: MIT */
/* The values of floats of 8 bits and fewer. See small_floats.h. */
#include <math.h>

#include "framework/formats/onnx/small_floats.h"

#define FORMAT(e, m, b, largest, beyond, nan)                                                                          \
    {                                                                                                                  \
        .mantissa = (m), .bits = (e) + (m), .bias = (b), .max = (largest), .over = (beyond), .none = (nan)             \
    }
static const struct format {
    int mantissa, bits; /* `bits`: without the sign */
    int bias;
    float max;
    int over, none; /* the bits of an overflow, and of NaN */
} formats[ONNX_TYPE_COUNT] = {
    [ONNX_FLOAT8E4M3FN] = FORMAT(4, 3, 7, 448, 0x7f, 0x7f),
    [ONNX_FLOAT8E4M3FNUZ] = FORMAT(4, 3, 8, 240, 0x80, 0x80),
    [ONNX_FLOAT8E5M2] = FORMAT(5, 2, 15, 57344, 0x7c, 0x7f),
    [ONNX_FLOAT8E5M2FNUZ] = FORMAT(5, 2, 16, 57344, 0x80, 0x80),
    [ONNX_FLOAT4E2M1] = FORMAT(2, 1, 1, 6, 0x07, 0), /* it has neither: NaN is 0 */
    [ONNX_FLOAT8E8M0] = FORMAT(8, 0, 127, 0x1p127f, 0xff, 0xff),
};

bool onnx_type_is_small_float(int type)
{
    return type > 0 && type < ONNX_TYPE_COUNT && formats[type].bits > 0;
}

float onnx_small_float_decode(onnx_type type, uint8_t bits)
{
    const struct format *f = &formats[type];
    int exponent = (bits & ((1 << f->bits) - 1)) >> f->mantissa, mantissa = bits & ((1 << f->mantissa) - 1);
    bool finest = f->over == 0x7c && exponent == 31; /* only float8e5m2 has infinity, and several NaN */
    if (bits == f->none && f->none != 0) return NAN;
    if ((bits | 0x80) == 0xff && type == ONNX_FLOAT8E4M3FN) return NAN;
    if (finest) return mantissa != 0 ? NAN : bits >= 0x80 ? -INFINITY : INFINITY;
    if (type == ONNX_FLOAT8E8M0) return ldexpf(1, exponent - f->bias);
    float value = exponent == 0 ? ldexpf((float)mantissa, 1 - f->bias - f->mantissa)
                                : ldexpf((float)(mantissa + (1 << f->mantissa)), exponent - f->bias - f->mantissa);
    return bits >> f->bits != 0 ? -value : value;
}

/* A power of 2, encoded by its exponent alone. */
static uint8_t encode_power(double number, onnx_rounding rounding)
{
    int exponent;
    if (isnan(number) || number < 0) return 0xff;
    if (number > 0x1p127) return rounding.overflows ? 0xff : 0xfe;
    if (number <= 0x1p-127) return 0;
    double part = frexp(number, &exponent); /* in [0.5, 1) */
    exponent--;
    if (part > 0.5 && (rounding.mode == ONNX_UP || (rounding.mode == ONNX_NEAREST && part >= 0.75))) exponent++;
    return (uint8_t)(exponent + 127);
}

uint8_t onnx_small_float_encode(onnx_type type, double number, onnx_rounding rounding)
{
    const struct format *f = &formats[type];
    if (type == ONNX_FLOAT8E8M0) return encode_power(number, rounding);
    if (isnan(number)) return (uint8_t)f->none;
    int lowest = 1 - f->bias, sign = signbit(number) ? 1 << f->bits : 0;
    double size = fmin(fabs(number), 1e30);
    int exponent = size > 0 ? ilogb(size) : lowest;
    if (exponent < lowest) exponent = lowest;
    double rounded = ldexp(rint(ldexp(size, f->mantissa - exponent)), exponent - f->mantissa);
    if (rounded > (double)f->max) {
        if (rounding.overflows && f->over == f->none && f->none == 0x80) return 0x80;
        if (rounding.overflows) return (uint8_t)(sign | f->over);
        rounded = (double)f->max;
    }
    exponent = rounded > 0 ? ilogb(rounded) : lowest;
    if (exponent < lowest) exponent = lowest;
    int mantissa = (int)ldexp(rounded, f->mantissa - exponent); /* with the leading 1, except for subnormals */
    int bits = ((exponent - lowest) << f->mantissa) + mantissa;
    if (bits == 0 && f->none == 0x80) return 0; /* it has a single zero */
    return (uint8_t)(sign | bits);
}

onnx_rounding onnx_rounding_of(onnx_context *c)
{
    onnx_rounding rounding = {.overflows = !onnx_flag(c, "saturate", true), .mode = ONNX_UP};
    onnx_word mode = onnx_text(c, "round_mode", "up");
    if (mode.text[0] == 'n') rounding.mode = ONNX_NEAREST;
    if (mode.text[0] == 'd') rounding.mode = ONNX_DOWN;
    return rounding;
}

/* ---- as layers ---- */

/* 2 to the power of `floor(log2 |x|)`, clamped to [from, to], times 2^-shift; if x is close to a power of 2, rounding
 * in the logarithm may give the power below or above. */
static onnx_flow power_below(onnx_context *c, onnx_flow x, int from, int to, int shift)
{
    onnx_tensor table = onnx_new_tensor(c, ONNX_FLOAT, sdlf_shape(to - from + 1));
    for (int i = from; i <= to && onnx_ok(c); i++) ((float *)table.data)[i - from] = ldexpf(1, i - shift);
    onnx_flow at = onnx_function(c, SDLF_UNARY_LOG, onnx_function(c, SDLF_UNARY_ABS, x));
    at = onnx_function(c, SDLF_UNARY_FLOOR, onnx_with_number(c, "mul", at, 1.4426950408889634));
    at = onnx_with_number(c, "max", onnx_cast(c, at, SDLF_INT64), from); /* a cast to integers may be far below it */
    at = onnx_with_number(c, "sub", onnx_with_number(c, "min", at, to), from);
    return onnx_gather(c, onnx_constant_layer(c, &table), at, 0);
}

/* Rounds x to a power of 2: to the one below, determined exactly, or the next. */
static onnx_flow round_power(onnx_context *c, onnx_flow x, onnx_rounding rounding)
{
    onnx_flow low = power_below(c, x, -126, 127, 0);
    low = onnx_choose(c, onnx_elementwise(c, "greater", low, x), onnx_with_number(c, "mul", low, 0.5), low);
    onnx_flow next = onnx_with_number(c, "mul", low, 2);
    low = onnx_choose(c, onnx_elementwise(c, "less_equal", next, x), next, low);
    next = onnx_with_number(c, "mul", low, 2);
    onnx_flow y = low;
    if (rounding.mode == ONNX_UP) y = onnx_choose(c, onnx_elementwise(c, "greater", x, low), next, low);
    if (rounding.mode == ONNX_NEAREST)
        y = onnx_choose(c, onnx_elementwise(c, "less_equal", onnx_with_number(c, "mul", low, 1.5), x), next, low);
    onnx_flow most = onnx_number(c, SDLF_FLOAT32, 0x1p127), none = onnx_number(c, SDLF_FLOAT32, (double)NAN);
    y = onnx_choose(c, onnx_elementwise(c, "greater", x, most), rounding.overflows ? none : most, y);
    onnx_flow fits =
        onnx_elementwise(c, "greater_equal", x, onnx_number(c, SDLF_FLOAT32, 0)); /* neither negative nor NaN */
    return onnx_choose(c, fits, y, none);
}

onnx_flow onnx_small_float_round(onnx_context *c, onnx_flow x, onnx_type type, onnx_rounding rounding)
{
    const struct format *f = &formats[type];
    if (!onnx_ok(c)) return x;
    if (type == ONNX_FLOAT8E8M0) return round_power(c, x, rounding);
    int exponent = ilogbf(f->max);
    onnx_flow step = power_below(c, x, 1 - f->bias, exponent, f->mantissa); /* if one power off, x is near a value */
    onnx_flow y =
        onnx_elementwise(c, "mul", onnx_function(c, SDLF_UNARY_ROUND, onnx_elementwise(c, "div", x, step)), step);
    if (type == ONNX_FLOAT4E2M1) { /* NaN is 0 */
        onnx_flow number = onnx_elementwise(c, "equal", y, y);
        y = onnx_choose(c, number, y, onnx_number(c, SDLF_FLOAT32, 0));
    }
    if (!rounding.overflows || type == ONNX_FLOAT4E2M1)
        return onnx_layer(c, "clip", &(sdlf_clip_options){.low = -f->max, .high = f->max}, &y, 1);
    double over = f->over == 0x7c ? (double)INFINITY : (double)NAN;
    onnx_flow low = onnx_number(c, SDLF_FLOAT32, -over), high = onnx_number(c, SDLF_FLOAT32, over);
    onnx_flow inside =
        onnx_choose(c, onnx_elementwise(c, "less", y, onnx_number(c, SDLF_FLOAT32, (double)-f->max)), low, y);
    return onnx_choose(c, onnx_elementwise(c, "greater", y, onnx_number(c, SDLF_FLOAT32, (double)f->max)), high,
                       inside);
}
