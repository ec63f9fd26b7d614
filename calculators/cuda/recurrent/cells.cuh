/* SPDX-License-Identifier: MIT */
/* The cells of lstm and gru, and their gradients, for one unit of one sample. Formulas: <sdlf/operations/recurrent.h>. */
#ifndef SDLF_CALCULATORS_CUDA_RECURRENT_CELLS_CUH
#define SDLF_CALCULATORS_CUDA_RECURRENT_CELLS_CUH

#include "calculators/cuda/kernels.cuh"

/* lstm: from gates i, f, g, o to the state h; c is updated. */
template <typename T> static __device__ __forceinline__ T lstm_state(T i, T f, T g, T o, T &cell)
{
    cell = f * cell + i * g;
    return o * tanh(cell);
}

/* gru: h' from z, n and h. */
template <typename T> static __device__ __forceinline__ T gru_state(T update, T fresh, T before)
{
    return fresh + update * (before - fresh);
}

/* What a step's gradient needs of the forward pass, and dy (0: none). kept: c' or q; before: c or h. */
template <typename T, int GATES> struct cell_inputs {
    T gate[GATES], kept, before, dy;
};

/* The step's gradients: da; for gru, also the third of db. */
template <typename T, int GATES> struct cell_gradient {
    T da[GATES], db;
};

/* dh includes dy; `carried` holds dc and is set to the gradient for the previous step. */
template <typename T>
static __device__ __forceinline__ cell_gradient<T, 4> cell_gradient_of(const cell_inputs<T, 4> &x, T dh, T &carried)
{
    const T i = x.gate[0], f = x.gate[1], g = x.gate[2], o = x.gate[3], squashed = tanh(x.kept);
    const T dc = carried + dh * o * (T(1) - squashed * squashed);
    carried = dc * f;
    return {{dc * g * i * (T(1) - i), dc * x.before * f * (T(1) - f), dc * i * (T(1) - g * g),
             dh * squashed * o * (T(1) - o)},
            T(0)};
}

/* `carried` is set to dh z. */
template <typename T>
static __device__ __forceinline__ cell_gradient<T, 3> cell_gradient_of(const cell_inputs<T, 3> &x, T dh, T &carried)
{
    const T r = x.gate[0], z = x.gate[1], fresh = x.gate[2];
    const T dn = dh * (T(1) - z) * (T(1) - fresh * fresh);
    carried = dh * z;
    return {{dn * x.kept * r * (T(1) - r), dh * (x.before - fresh) * z * (T(1) - z), dn}, dn * r};
}

#endif
