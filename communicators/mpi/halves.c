/* SPDX-License-Identifier: MIT */
/* Sums of 16-bit floating-point values: added in float32, then rounded to nearest, ties to even. */
#include "communicators/mpi/halves.h"

#include "framework/float16.h"

static void add_bfloat16(void *from, void *to, int *count, MPI_Datatype *type)
{
    const uint16_t *a = from;
    uint16_t *b = to;
    (void)type;
    for (int i = 0; i < *count; i++) b[i] = sdlf_to_bfloat16(sdlf_from_bfloat16(a[i]) + sdlf_from_bfloat16(b[i]));
}

static void add_float16(void *from, void *to, int *count, MPI_Datatype *type)
{
    const uint16_t *a = from;
    uint16_t *b = to;
    (void)type;
    for (int i = 0; i < *count; i++) b[i] = sdlf_to_float16(sdlf_from_float16(a[i]) + sdlf_from_float16(b[i]));
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
