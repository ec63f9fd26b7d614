/* SPDX-License-Identifier: MIT */
/* Eigenvalues and eigenvectors of a small symmetric matrix. */
#ifndef SDLF_FRAMEWORK_EIGEN_H
#define SDLF_FRAMEWORK_EIGEN_H

/* Of a (n x n, row by row, symmetric; overwritten): value[k] falls with k, and row k of vector (n x n) is the unit
 * eigenvector of it, whose largest element is positive. By Jacobi's rotations, in an order of their own: the same bits
 * for the same matrix. */
void eigen_of_symmetric(double *a, int n, double *value, double *vector);

#endif
