/* SPDX-License-Identifier: MIT */
/* Gradients after a max-pool, from the marked positions only. See direct_sparse.h.
 *
 * 4 C R S FLOPs a mark for both gradients, against 4 C R S a position in the dense path: a quarter of the work after a
 * 2x2 pool, half of the time, because each value is loaded once for one multiply-add. */
#include "calculators/cpu/kernels/direct_sparse.h"

bool sparse_takes_cpu(const convolution *v)
{
    return v->s * v->c >= LANES && v->r * cpu_divide_up(v->s * v->c, LANES) <= SPARSE_MOST_SLOTS - SPARSE_SLOTS;
}

sparse_filter sparse_filter_of_cpu(const convolution *v)
{
    direct_image image = direct_input_image_cpu(v);
    sparse_filter filter = {.row_vectors = cpu_divide_up(v->s * v->c, LANES)};
    filter.slots = v->r * filter.row_vectors;
    filter.padded_slots = cpu_round_up(filter.slots, SPARSE_SLOTS);
    for (int64_t i = 0; i < filter.slots; i++) {
        filter.offset[i] = i / filter.row_vectors * image.width * image.channels + i % filter.row_vectors * LANES;
    }
    return filter;
}

/* ---- the marks ---- */

static int64_t mark_limit(const convolution *v, const direct_pool *pool)
{
    return v->k * pool->p * pool->q * 3 / 2;
}

int64_t sparse_marks_size_cpu(const convolution *v, const direct_pool *pool)
{
    int64_t bytes = 2 * mark_limit(v, pool) * (int64_t)sizeof(sparse_mark);
    bytes += (v->k + 1 + v->p_q + 1) * (int64_t)sizeof(int32_t);
    return cpu_round_up(cpu_divide_up(bytes, (int64_t)sizeof(element)), LANES);
}

sparse_marks sparse_marks_of_cpu(const convolution *v, const direct_pool *pool, element *scratch)
{
    sparse_marks marks = {.limit = mark_limit(v, pool), .by_filter = (sparse_mark *)(void *)scratch};
    marks.by_position = marks.by_filter + marks.limit;
    marks.filter_start = (int32_t *)(marks.by_position + marks.limit);
    marks.position_start = marks.filter_start + v->k + 1;
    return marks;
}

/* Adds the marks of one window of filter k; returns the new count, or -1 if they are full. */
static int64_t mark_window(const sparse_marks *marks, int64_t count, const direct_pool *pool, sparse_mark mark,
                           int64_t row, int64_t right, int64_t q, unsigned bits)
{
    int64_t columns = pool->window[1];
    for (int i = 0; bits >> i; i++) {
        if (!(bits >> i & 1)) continue;
        if (count == marks->limit) return -1;
        int64_t down = i / columns, across = i % columns;
        sparse_mark *to = &marks->by_filter[count++];
        *to = mark;
        to->position += (int32_t)(down * q + across);
        to->at += down * row + across * right;
    }
    return count;
}

static void sort_by_position(const sparse_marks *marks, int64_t count, int64_t positions)
{
    int32_t *start = marks->position_start, total = 0;
    memset(start, 0, (size_t)(positions + 1) * sizeof *start);
    for (int64_t i = 0; i < count; i++) start[marks->by_filter[i].position]++;
    for (int64_t i = 0; i <= positions; i++) {
        int32_t here = start[i];
        start[i] = total;
        total += here;
    }
    for (int64_t i = 0; i < count; i++) marks->by_position[start[marks->by_filter[i].position]++] = marks->by_filter[i];
    for (int64_t i = positions; i > 0; i--) start[i] = start[i - 1]; /* the starts have moved to the ends */
    start[0] = 0;
}

bool sparse_mark_cpu(sparse_marks *marks, const convolution *v, const direct_pool *pool, const element *dy,
                     const uint8_t *mask)
{
    direct_image image = direct_input_image_cpu(v);
    int64_t count = 0, right = image.channels, row = image.width * right;
    for (int64_t k = 0; k < v->k; k++) {
        marks->filter_start[k] = (int32_t)count;
        for (int64_t p = 0; p < pool->p; p++) {
            for (int64_t q = 0; q < pool->q; q++, dy++, mask++) {
                if (*mask == 0) continue;
                int64_t top = p * pool->window[0], left = q * pool->window[1];
                sparse_mark mark_here = {.at = top * row + left * right,
                                         .k = (int32_t)k,
                                         .position = (int32_t)(top * v->q + left),
                                         .share = *dy / (element)__builtin_popcount(*mask)};
                count = mark_window(marks, count, pool, mark_here, row, right, v->q, *mask);
                if (count < 0) return false;
            }
        }
    }
    marks->filter_start[v->k] = (int32_t)count;
    sort_by_position(marks, count, v->p_q);
    return true;
}

/* ---- the products ---- */

void sparse_pack_cpu(element *packed, const convolution *v, const sparse_filter *filter, const element *w)
{
    int64_t size = filter->padded_slots * LANES;
    memset(packed, 0, (size_t)(v->k * size) * sizeof *packed);
    for (int64_t k = 0; k < v->k; k++) {
        for (int64_t c = 0; c < v->c; c++) {
            for (int64_t r = 0; r < v->r; r++) {
                for (int64_t s = 0; s < v->s; s++) {
                    packed[k * size + r * filter->row_vectors * LANES + s * v->c + c] = *w++;
                }
            }
        }
    }
}

void sparse_weights_cpu(element *sums, const convolution *v, const sparse_filter *filter, const sparse_marks *marks,
                        const element *image)
{
    for (int64_t k = 0; k < v->k; k++) {
        const sparse_mark *first = marks->by_filter + marks->filter_start[k];
        const sparse_mark *last = marks->by_filter + marks->filter_start[k + 1];
        for (int64_t slot = 0; slot < filter->slots && first < last; slot += SPARSE_SLOTS) {
            vector sum[SPARSE_SLOTS];
            const element *x[SPARSE_SLOTS];
            for (int i = 0; i < SPARSE_SLOTS; i++) {
                sum[i] = (vector){0};
                x[i] = image + filter->offset[slot + i]; /* 0 past the last slot */
            }
            for (const sparse_mark *mark = first; mark < last; mark++) {
                for (int i = 0; i < SPARSE_SLOTS; i++) sum[i] += mark->share * load(x[i] + mark->at);
            }
            element *to = sums + (k * filter->padded_slots + slot) * LANES;
            for (int i = 0; i < SPARSE_SLOTS; i++) store(to + i * LANES, load(to + i * LANES) + sum[i]);
        }
    }
}

void sparse_input_cpu(element *image, const convolution *v, const sparse_filter *filter, const sparse_marks *marks,
                      const element *packed)
{
    int64_t size = filter->padded_slots * LANES;
    for (int64_t position = 0; position < v->p_q; position++) {
        const sparse_mark *first = marks->by_position + marks->position_start[position];
        const sparse_mark *last = marks->by_position + marks->position_start[position + 1];
        for (int64_t slot = 0; slot < filter->slots && first < last; slot += SPARSE_SLOTS) {
            vector sum[SPARSE_SLOTS];
            for (int i = 0; i < SPARSE_SLOTS; i++) sum[i] = (vector){0};
            for (const sparse_mark *mark = first; mark < last; mark++) {
                const element *w = packed + mark->k * size + slot * LANES;
                for (int i = 0; i < SPARSE_SLOTS; i++) sum[i] += mark->share * load(w + i * LANES);
            }
            element *to = image + first->at;
            for (int i = 0; i < SPARSE_SLOTS && slot + i < filter->slots; i++) {
                element *there = to + filter->offset[slot + i];
                store(there, load(there) + sum[i]);
            }
        }
    }
}
