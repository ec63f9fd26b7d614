/* SPDX-License-Identifier: MIT */
/* The cells of one step of lstm and gru, after the GEMM. A grid-stride loop, one thread per unit of a sample; moves a, gates and kept values once. */
#include "calculators/cuda/recurrent/cells.cuh"
#include "calculators/cuda/recurrent/recurrent.h"

enum { CELL_THREADS = 256 };

static __device__ __forceinline__ int64_t place_at(const recurrent_arguments &p, int t)
{
    return p.reverse ? p.steps - 1 - t : t;
}

template <typename T>
static __device__ __forceinline__ T *element(const recurrent_rows &x, int64_t place, int64_t sample, int64_t column)
{
    return static_cast<T *>(x.data) + place * x.step + sample * x.sample + column;
}

template <typename T, int GATES> static __global__ void cells_forward(recurrent_arguments p, recurrent_cells cells)
{
    const int64_t place = place_at(p, cells.step), units = p.units, count = p.samples * units;
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        const int64_t n = i / units, j = i % units;
        const T *product = static_cast<const T *>(cells.product) + n * GATES * units + j;
        T *h = static_cast<T *>(cells.h) + i, gate[GATES], kept = 0;
        for (int g = 0; g < GATES; g++) gate[g] = *element<const T>(p.a, place, n, g * units + j);
        for (int g = 0; g < 2; g++) gate[g] = sigmoid(gate[g] + product[g * units]);
        if constexpr (GATES == 4) {
            gate[2] = tanh(gate[2] + product[2 * units]), gate[3] = sigmoid(gate[3] + product[3 * units]);
            T *cell = static_cast<T *>(cells.carried) + i;
            kept = *cell;
            *h = lstm_state(gate[0], gate[1], gate[2], gate[3], kept);
            *cell = kept;
        } else {
            kept = product[2 * units];
            gate[2] = tanh(gate[2] + gate[0] * kept);
            *h = gru_state(gate[1], gate[2], *h);
        }
        *element<T>(p.y, place, n, j) = *h;
        if (p.kept.data != nullptr) *element<T>(p.kept, place, n, j) = kept;
        for (int g = 0; g < GATES && p.gates.data != nullptr; g++)
            *element<T>(p.gates, place, n, g * units + j) = gate[g];
    }
}

template <typename T, int GATES> static __global__ void cells_backward(recurrent_arguments p, recurrent_cells cells)
{
    const int t = cells.step;
    const int64_t place = place_at(p, t), units = p.units, count = p.samples * units;
    const recurrent_rows &states = GATES == 4 ? p.kept : p.y, &first = GATES == 4 ? p.c0 : p.h0;
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < count; i += grid_step()) {
        const int64_t n = i / units, j = i % units;
        cell_inputs<T, GATES> x = {};
        for (int g = 0; g < GATES; g++) x.gate[g] = *element<const T>(p.gates, place, n, g * units + j);
        x.kept = *element<const T>(p.kept, place, n, j);
        if (t > 0)
            x.before = *element<const T>(states, place_at(p, t - 1), n, j);
        else if (first.data != nullptr)
            x.before = *element<const T>(first, 0, n, j);
        T dh = cells.first ? T(0) : static_cast<const T *>(cells.h)[i];
        T carried = GATES == 4 ? static_cast<const T *>(cells.carried)[i] : T(0);
        if (!p.last_only || t == p.steps - 1) dh += *element<const T>(p.dy, place, n, j);
        const cell_gradient<T, GATES> made = cell_gradient_of(x, dh, carried);
        static_cast<T *>(cells.carried)[i] = carried;
        for (int g = 0; g < GATES; g++) {
            *element<T>(p.da, place, n, g * units + j) = made.da[g];
            if (GATES == 3) *element<T>(p.db, place, n, g * units + j) = g == 2 ? made.db : made.da[g];
        }
        if (t > 0) continue;
        if (GATES == 4 && p.dc0.data != nullptr) *element<T>(p.dc0, 0, n, j) = carried;
    }
}

template <typename T> static __global__ void take_state(recurrent_rows from, T *to, int64_t units, int64_t count)
{
    wait_and_launch_dependent_grids();
    for (int64_t i = grid_first(); i < count; i += grid_step())
        to[i] = from.data != nullptr ? *element<const T>(from, 0, i / units, i % units) : T(0);
}

/* Launch kernel(arguments...) with one thread for each of N H elements. */
template <typename... Parameters, typename... Arguments>
static sdlf_status launch_cells(const cuda_calculator *calculator, const recurrent_arguments *p,
                                void (*kernel)(Parameters...), Arguments... arguments)
{
    const int64_t count = static_cast<int64_t>(p->samples) * p->units;
    launch_overlapped(calculator, kernel, dim3(cuda_blocks(calculator, count, CELL_THREADS)), dim3(CELL_THREADS), 0,
                      arguments...);
    return cuda_check_launch("recurrent_cells");
}

extern "C" sdlf_status recurrent_cells_forward(const cuda_calculator *calculator, const recurrent_arguments *p,
                                               sdlf_dtype dtype, recurrent_cells cells)
{
    sdlf_status status = SDLF_OK;
    with_float(dtype, [&](auto zero) {
        using T = decltype(zero);
        status = launch_cells(calculator, p, cells.gates == 4 ? cells_forward<T, 4> : cells_forward<T, 3>, *p, cells);
    });
    return status;
}

extern "C" sdlf_status recurrent_cells_backward(const cuda_calculator *calculator, const recurrent_arguments *p,
                                                sdlf_dtype dtype, recurrent_cells cells)
{
    sdlf_status status = SDLF_OK;
    with_float(dtype, [&](auto zero) {
        using T = decltype(zero);
        status = launch_cells(calculator, p, cells.gates == 4 ? cells_backward<T, 4> : cells_backward<T, 3>, *p, cells);
    });
    return status;
}

extern "C" sdlf_status recurrent_take_state(const cuda_calculator *calculator, const recurrent_arguments *p,
                                            sdlf_dtype dtype, recurrent_rows from, void *to)
{
    sdlf_status status = SDLF_OK;
    const int64_t count = static_cast<int64_t>(p->samples) * p->units;
    with_float(dtype, [&](auto zero) {
        using T = decltype(zero);
        status = launch_cells(calculator, p, take_state<T>, from, static_cast<T *>(to), static_cast<int64_t>(p->units),
                              count);
    });
    return status;
}
