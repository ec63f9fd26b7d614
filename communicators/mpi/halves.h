/* SPDX-License-Identifier: MIT */
/* Sums of 16-bit floating-point values, for which MPI has no types. */
#ifndef SDLF_COMMUNICATORS_MPI_HALVES_H
#define SDLF_COMMUNICATORS_MPI_HALVES_H

#include <mpi.h>

#include <sdlf/dtype.h>

typedef struct mpi_halves {
    MPI_Datatype type; /* two bytes */
    MPI_Op add_float16, add_bfloat16;
} mpi_halves;

/* Call between MPI_Init and MPI_Finalize. */
void mpi_halves_make(mpi_halves *halves);
void mpi_halves_free(mpi_halves *halves);

/* The MPI type of a floating-point dtype, and the operation that sums it. */
MPI_Datatype mpi_type_of(const mpi_halves *halves, sdlf_dtype dtype);
MPI_Op mpi_sum_of(const mpi_halves *halves, sdlf_dtype dtype);

#endif
