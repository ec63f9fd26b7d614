/* SPDX-License-Identifier: MIT */
/* Eigenvalues and eigenvectors of a small symmetric matrix. */
#ifndef SDLF_FRAMEWORK_EIGEN_H
#define SDLF_FRAMEWORK_EIGEN_H

/* For a (n x n, row by row, symmetric; overwritten): value[k] descends with k, and row k of vector (n x n) is the unit
 * eigenvector of value[k], with its largest element positive. Uses Jacobi rotations in a fixed order: the same matrix
 * gives the same bits. */
void eigen_of_symmetric(double *a, int n, double *value, double *vector);

#endif
