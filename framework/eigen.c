/* SPDX-License-Identifier: MIT */
/* See eigen.h. Cyclic Jacobi (Golub and Van Loan, Matrix computations, 8.5): each rotation zeroes one element off the
 * diagonal. */
#include "framework/eigen.h"

#include <math.h>

enum { SWEEPS = 60 }; /* ten suffice in practice */

/* Rotates rows p and q of m: p' = c p - s q, q' = s p + c q. */
static void turn_rows(double *m, int n, int p, int q, double c, double s)
{
    for (int i = 0; i < n; i++) {
        double a = m[p * n + i], b = m[q * n + i];
        m[p * n + i] = c * a - s * b;
        m[q * n + i] = s * a + c * b;
    }
}

static void turn_columns(double *m, int n, int p, int q, double c, double s)
{
    for (int i = 0; i < n; i++) {
        double a = m[i * n + p], b = m[i * n + q];
        m[i * n + p] = c * a - s * b;
        m[i * n + q] = s * a + c * b;
    }
}

static void rotate(double *a, double *vector, int n, int p, int q)
{
    double off = a[p * n + q];
    if (off == 0) return;
    double theta = (a[q * n + q] - a[p * n + p]) / (2 * off);
    double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1), s = t * c;
    turn_rows(a, n, p, q, c, s);
    turn_columns(a, n, p, q, c, s);
    a[p * n + q] = a[q * n + p] = 0;
    turn_rows(vector, n, p, q, c, s);
}

static double size_off_diagonal(const double *a, int n)
{
    double sum = 0;
    for (int p = 0; p < n; p++)
        for (int q = p + 1; q < n; q++) sum += a[p * n + q] * a[p * n + q];
    return sum;
}

static void exchange(double *value, double *vector, int n, int i, int j)
{
    double kept = value[i];
    value[i] = value[j], value[j] = kept;
    for (int k = 0; k < n; k++) {
        kept = vector[i * n + k];
        vector[i * n + k] = vector[j * n + k], vector[j * n + k] = kept;
    }
}

static void point_up(double *row, int n)
{
    int largest = 0;
    for (int k = 1; k < n; k++)
        if (fabs(row[k]) > fabs(row[largest])) largest = k;
    for (int k = 0, down = row[largest] < 0; k < n && down; k++) row[k] = -row[k];
}

void eigen_of_symmetric(double *a, int n, double *value, double *vector)
{
    for (int i = 0; i < n * n; i++) vector[i] = i % (n + 1) == 0 ? 1 : 0;
    for (int sweep = 0; sweep < SWEEPS && size_off_diagonal(a, n) > 0; sweep++)
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++) rotate(a, vector, n, p, q);
    for (int i = 0; i < n; i++) value[i] = a[i * n + i];
    for (int i = 0; i < n; i++) {
        int largest = i;
        for (int j = i + 1; j < n; j++)
            if (value[j] > value[largest]) largest = j;
        if (largest != i) exchange(value, vector, n, i, largest);
        point_up(vector + (long)i * n, n);
    }
}
