/* Sums of numbers of 16 bits: two are added in float32, and the sum is rounded to nearest, ties to even. */
#include "communicators/mpi/halves.h"

#include <string.h>

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- bfloat16: the upper half of a float32 ---- */

static uint16_t to_bfloat16(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet : rounded); /* NaN stays one */
}

static void add_bfloat16(void *from, void *to, int *count, MPI_Datatype *type)
{
    const uint16_t *a = from;
    uint16_t *b = to;
    (void)type;
    for (int i = 0; i < *count; i++)
        b[i] = to_bfloat16(float_of((uint32_t)a[i] << 16) + float_of((uint32_t)b[i] << 16));
}

/* ---- float16: 5 bits of exponent, 10 of mantissa ---- */

/* The exponent's bias is changed by a product, which also brings numbers below the normal ones right. */
static float from_float16(uint16_t half)
{
    uint32_t rest = (uint32_t)(half & 0x7FFF) << 13;
    uint32_t bits = bits_of(float_of(rest) * 0x1p112f);
    if (rest >= 0x0F800000) bits = rest | 0x7F800000; /* infinity, NaN */
    return float_of(bits | (uint32_t)(half & 0x8000) << 16);
}

static uint16_t to_float16(float value)
{
    uint32_t bits = bits_of(value), size = bits & 0x7FFFFFFF, half;
    if (size > 0x7F800000) {
        half = 0x7E00;
    } else if (size >= 0x477FF000) { /* 65520 and more round to infinity */
        half = 0x7C00;
    } else if (size < 0x38800000) { /* below the normal ones: a sum with 0.5 rounds where its last bit is 2^-24 */
        half = bits_of(float_of(size) + 0.5f) - 0x3F000000;
    } else {
        half = (size + 0xC8000FFF + (size >> 13 & 1)) >> 13;
    }
    return (uint16_t)(half | (bits >> 16 & 0x8000));
}

static void add_float16(void *from, void *to, int *count, MPI_Datatype *type)
{
    const uint16_t *a = from;
    uint16_t *b = to;
    (void)type;
    for (int i = 0; i < *count; i++) b[i] = to_float16(from_float16(a[i]) + from_float16(b[i]));
}

void mpi_halves_make(mpi_halves *halves)
{
    MPI_Type_contiguous(2, MPI_BYTE, &halves->type);
    MPI_Type_commit(&halves->type);
    MPI_Op_create(add_float16, 1, &halves->add_float16);
    MPI_Op_create(add_bfloat16, 1, &halves->add_bfloat16);
}

void mpi_halves_free(mpi_halves *halves)
{
    MPI_Op_free(&halves->add_float16);
    MPI_Op_free(&halves->add_bfloat16);
    MPI_Type_free(&halves->type);
}

MPI_Datatype mpi_type_of(const mpi_halves *halves, sdlf_dtype dtype)
{
    if (dtype == SDLF_FLOAT64) return MPI_DOUBLE;
    return dtype == SDLF_FLOAT32 ? MPI_FLOAT : halves->type;
}

MPI_Op mpi_sum_of(const mpi_halves *halves, sdlf_dtype dtype)
{
    return dtype == SDLF_FLOAT16 ? halves->add_float16 : dtype == SDLF_BFLOAT16 ? halves->add_bfloat16 : MPI_SUM;
}
