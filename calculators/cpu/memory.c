/* SPDX-License-Identifier: MIT */
/* fill, copy, and gather_batch of integers: moving elements of any dtype. Contracts: <sdlf/operation.h>.
 *
 * copy reduces its operands to the fewest dimensions that describe both (neighbours that are contiguous in memory are merged), then
 * iterates over rows of the innermost one: memcpy where both sides are contiguous and of one dtype, else element by element; operands that
 * are contiguous along different dimensions are transposed in blocks (copy_transpose.c). Moves each operand once; the floor is the bytes
 * over the copy bandwidth. */
#include "calculators/cpu/copy.h"
#include "calculators/next_batch.h"
#include "calculators/shuffle.h"

#include <string.h>

enum { BLOCK_BYTES = 1 << 16, CONVERT_BLOCK = 512 };

/* ---- fill ---- */

typedef struct fill_context {
    char *y;
    int64_t bytes;
    const char *pattern; /* one element's bytes, repeated over a block */
} fill_context;

static void fill_block(void *context, int64_t index, int thread)
{
    const fill_context *fill = context;
    int64_t first = index * BLOCK_BYTES;
    (void)thread;
    memcpy(fill->y + first, fill->pattern, (size_t)cpu_min(BLOCK_BYTES, fill->bytes - first));
}

sdlf_status cpu_fill(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *y = &operation->out[0];
    char pattern[BLOCK_BYTES];
    fill_context fill = {.y = y->data, .bytes = sdlf_tensor_bytes(y), .pattern = pattern};
    size_t size = sdlf_dtype_size(y->dtype), used = size;
    size_t wanted = (size_t)cpu_min(BLOCK_BYTES, fill.bytes);
    if (wanted == 0) return SDLF_OK;
    sdlf_convert(y->dtype, pattern, SDLF_FLOAT64, &operation->fill.value, 1);
    while (used < wanted) { /* double the filled part */
        size_t more = used < wanted - used ? used : wanted - used;
        memcpy(pattern + used, pattern, more);
        used += more;
    }
    cpu_parallel_exact(cpu_from(calculator), cpu_divide_up(fill.bytes, BLOCK_BYTES), fill.bytes / 16, fill_block,
                       &fill);
    return SDLF_OK;
}

/* ---- copy ---- */

/* Drops dimensions of size 1; merges neighbours contiguous in both operands. At least one dimension remains. */
static void collapse(cpu_copy_context *copy, const sdlf_tensor *x, const sdlf_tensor *y)
{
    copy->rank = 0;
    for (int i = 0; i < x->shape.rank; i++) {
        int64_t dim = x->shape.dim[i], x_stride = x->stride[i] * copy->x_size, y_stride = y->stride[i] * copy->y_size;
        if (dim == 1) continue;
        int last = copy->rank - 1;
        if (last >= 0 && copy->x_stride[last] == dim * x_stride && copy->y_stride[last] == dim * y_stride) {
            copy->dim[last] *= dim;
        } else {
            copy->dim[++last] = dim;
            copy->rank++;
        }
        copy->x_stride[last] = x_stride;
        copy->y_stride[last] = y_stride;
    }
    if (copy->rank == 0) {
        copy->dim[0] = 1;
        copy->x_stride[0] = copy->x_size;
        copy->y_stride[0] = copy->y_size;
        copy->rank = 1;
    }
}

/* Splits one long run into rows that threads can share. */
static void split_run(cpu_copy_context *copy)
{
    int64_t piece = BLOCK_BYTES / copy->x_size;
    if (copy->rank != 1 || copy->dim[0] < 2 * piece || copy->dim[0] % piece != 0) return;
    copy->rank = 2;
    copy->dim[1] = piece;
    copy->dim[0] /= piece;
    copy->x_stride[1] = copy->x_stride[0];
    copy->y_stride[1] = copy->y_stride[0];
    copy->x_stride[0] *= piece;
    copy->y_stride[0] *= piece;
}

static void move_elements(char *y, int64_t y_stride, const char *x, int64_t x_stride, int64_t size, int64_t count)
{
    switch (size) {
    case 1:
        for (int64_t i = 0; i < count; i++) y[i * y_stride] = x[i * x_stride];
        break;
    case 4:
        for (int64_t i = 0; i < count; i++) memcpy(y + i * y_stride, x + i * x_stride, 4);
        break;
    case 8:
        for (int64_t i = 0; i < count; i++) memcpy(y + i * y_stride, x + i * x_stride, 8);
        break;
    default:
        for (int64_t i = 0; i < count; i++) memcpy(y + i * y_stride, x + i * x_stride, (size_t)size);
        break;
    }
}

static void convert_elements(const cpu_copy_context *copy, char *y, int64_t y_stride, const char *x, int64_t x_stride,
                             int64_t count)
{
    char in[CONVERT_BLOCK * 8], out[CONVERT_BLOCK * 8];
    for (int64_t i = 0; i < count; i += CONVERT_BLOCK) {
        int64_t some = cpu_min(CONVERT_BLOCK, count - i);
        const char *source = x + i * x_stride;
        char *target = y + i * y_stride;
        if (x_stride != copy->x_size) {
            move_elements(in, copy->x_size, source, x_stride, copy->x_size, some);
            source = in;
        }
        if (y_stride == copy->y_size) {
            sdlf_convert(copy->to, target, copy->from, source, some);
        } else {
            sdlf_convert(copy->to, out, copy->from, source, some);
            move_elements(target, y_stride, out, copy->y_size, copy->y_size, some);
        }
    }
}

static void copy_row(const cpu_copy_context *copy, char *y, const char *x)
{
    int inner = copy->rank - 1;
    int64_t count = copy->dim[inner], x_stride = copy->x_stride[inner], y_stride = copy->y_stride[inner];
    if (copy->from != copy->to) {
        convert_elements(copy, y, y_stride, x, x_stride, count);
    } else if (x_stride == copy->x_size && y_stride == copy->y_size) {
        memmove(y, x, (size_t)(count * copy->x_size));
    } else {
        move_elements(y, y_stride, x, x_stride, copy->x_size, count);
    }
}

/* If the innermost dimension is short, make the longest one along which x or y is contiguous the innermost; not if few
 * rows would remain, which threads could not share, and whose passes over y would not stay in the cache. */
static void lengthen_rows(cpu_copy_context *copy, int64_t count)
{
    enum { SHORT = 16, FEW_ROWS = 64 };
    int last = copy->rank - 1, longest = last;
    bool both = copy->x_stride[last] == copy->x_size && copy->y_stride[last] == copy->y_size;
    if (copy->dim[last] >= SHORT || both) return;
    for (int i = 0; i < last; i++) {
        bool contiguous = copy->x_stride[i] == copy->x_size || copy->y_stride[i] == copy->y_size;
        if (contiguous && copy->dim[i] > copy->dim[longest] && count / copy->dim[i] >= FEW_ROWS) longest = i;
    }
    int64_t dim = copy->dim[longest], x_stride = copy->x_stride[longest], y_stride = copy->y_stride[longest];
    for (int i = longest; i < last; i++) {
        copy->dim[i] = copy->dim[i + 1];
        copy->x_stride[i] = copy->x_stride[i + 1];
        copy->y_stride[i] = copy->y_stride[i + 1];
    }
    copy->dim[last] = dim;
    copy->x_stride[last] = x_stride;
    copy->y_stride[last] = y_stride;
}

static void copy_rows(void *context, int64_t index, int thread)
{
    const cpu_copy_context *copy = context;
    int64_t first = index * copy->rows_per_task, last = cpu_min(first + copy->rows_per_task, copy->rows);
    int64_t rest = first, place[SDLF_MAX_RANK], x_offset = 0, y_offset = 0;
    (void)thread;
    for (int i = copy->rank - 2; i >= 0; i--) {
        place[i] = rest % copy->dim[i];
        x_offset += place[i] * copy->x_stride[i];
        y_offset += place[i] * copy->y_stride[i];
        rest /= copy->dim[i];
    }
    for (int64_t row = first; row < last; row++) {
        copy_row(copy, copy->y + y_offset, copy->x + x_offset);
        for (int i = copy->rank - 2; i >= 0; i--) { /* the next row */
            x_offset += copy->x_stride[i];
            y_offset += copy->y_stride[i];
            if (++place[i] < copy->dim[i]) break;
            x_offset -= copy->dim[i] * copy->x_stride[i];
            y_offset -= copy->dim[i] * copy->y_stride[i];
            place[i] = 0;
        }
    }
}

/* ---- a few planes, interleaved: an image from NCHW to NHWC ---- */

enum { PLANES_MOST = 16, PLANE_PIECE = 1024 };

/* True for y[i, c] = x[c, i], few c, 4-byte elements: the innermost two dimensions and at most one outside. */
static bool interleaves(const cpu_copy_context *copy)
{
    int c = copy->rank - 1, i = c - 1;
    return (copy->rank == 2 || copy->rank == 3) && copy->from == copy->to && copy->x_size == 4 &&
           copy->dim[c] <= PLANES_MOST && copy->x_stride[i] == 4 && copy->y_stride[c] == 4 &&
           copy->y_stride[i] == 4 * copy->dim[c];
}

/* Three planes, mostly RGB images, at once: the compiler assembles output vectors in registers. */
static void interleave_three(char *restrict y, const char *restrict a, const char *restrict b, const char *restrict c,
                             int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        memcpy(y + 12 * i, a + 4 * i, 4);
        memcpy(y + 12 * i + 4, b + 4 * i, 4);
        memcpy(y + 12 * i + 8, c + 4 * i, 4);
    }
}

static void interleave_piece(void *context, int64_t index, int thread)
{
    const cpu_copy_context *copy = context;
    int64_t planes = copy->dim[copy->rank - 1], length = copy->dim[copy->rank - 2];
    int64_t pieces = cpu_divide_up(length, PLANE_PIECE), outer = index / pieces, first = index % pieces * PLANE_PIECE;
    int64_t last = cpu_min(first + PLANE_PIECE, length);
    const char *x = copy->x + (copy->rank == 3 ? outer * copy->x_stride[0] : 0);
    char *y = copy->y + (copy->rank == 3 ? outer * copy->y_stride[0] : 0);
    (void)thread;
    if (planes == 3) {
        int64_t plane = copy->x_stride[copy->rank - 1];
        x += first * 4;
        interleave_three(y + first * planes * 4, x, x + plane, x + 2 * plane, last - first);
        return;
    }
    for (int64_t c = 0; c < planes; c++)
        move_elements(y + (first * planes + c) * 4, planes * 4, x + c * copy->x_stride[copy->rank - 1] + first * 4, 4,
                      4, last - first);
}

sdlf_status cpu_copy(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *y = &operation->out[0];
    int64_t count = sdlf_tensor_count(x);
    if (count == 0) return SDLF_OK;
    cpu_copy_context copy = {.from = x->dtype,
                             .to = y->dtype,
                             .x = x->data,
                             .y = y->data,
                             .x_size = (int64_t)sdlf_dtype_size(x->dtype),
                             .y_size = (int64_t)sdlf_dtype_size(y->dtype)};
    collapse(&copy, x, y);
    if (interleaves(&copy)) {
        int64_t pieces = cpu_divide_up(copy.dim[copy.rank - 2], PLANE_PIECE) * (copy.rank == 3 ? copy.dim[0] : 1);
        cpu_parallel_static_exact(cpu_from(calculator), pieces, count / 2, interleave_piece, &copy);
        return SDLF_OK;
    }
    if (cpu_copy_transposes(&copy)) {
        cpu_copy_transposed(cpu_from(calculator), &copy, count);
        return SDLF_OK;
    }
    lengthen_rows(&copy, count);
    split_run(&copy);
    int64_t row_bytes = copy.dim[copy.rank - 1] * copy.x_size;
    copy.rows = count / copy.dim[copy.rank - 1];
    copy.rows_per_task = cpu_max(1, BLOCK_BYTES / row_bytes);
    cpu_parallel_static_exact(cpu_from(calculator), cpu_divide_up(copy.rows, copy.rows_per_task), count / 2, copy_rows,
                              &copy);
    return SDLF_OK;
}

/* ---- gather_batch of integers ---- */

sdlf_status cpu_gather_integers(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const sdlf_tensor *x = &operation->in[0], *index = &operation->in[1], *y = &operation->out[0];
    int64_t rows = index->shape.dim[0];
    int64_t bytes = rows ? sdlf_tensor_bytes(y) / rows : 0;
    const int32_t *row = index->data;
    (void)calculator; /* a few bytes a row: labels */
    for (int64_t n = 0; n < rows && bytes > 0; n++) {
        memcpy((char *)y->data + n * bytes, (const char *)x->data + row[n] * bytes, (size_t)bytes);
    }
    return SDLF_OK;
}

sdlf_status cpu_next_batch(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return sdlf_next_batch_on_host(operation);
}

sdlf_status cpu_shuffle(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return sdlf_shuffle_on_host(operation);
}
