/* SPDX-License-Identifier: MIT */
/* IDX: the format of the MNIST files.
 *
 *     byte 0, 1   0
 *     byte 2      element type: 0x08 unsigned byte (the only one supported), 0x09 signed byte, 0x0B int16,
 *                 0x0C int32, 0x0D float32, 0x0E float64
 *     byte 3      rank
 *     byte 4...   the dimensions, 32 bits each, big endian, outermost first
 *     then        the elements, row-major, and nothing after them
 *
 * The header is checked against the size of the file before it is trusted: a plain file must have exactly the size that
 * follows from its header, a gzip file must be large enough to decompress to it. */
#include "datasets/idx.h"

#include <inttypes.h>

#include <sdlf/dataset.h>

#include "framework/formats/budget.h"
#include "framework/formats/byte_stream.h"

enum { IDX_UNSIGNED_BYTE = 0x08 };

static const char *type_name(unsigned char type)
{
    switch (type) {
    case IDX_UNSIGNED_BYTE: return "unsigned byte";
    case 0x09: return "signed byte";
    case 0x0B: return "int16";
    case 0x0C: return "int32";
    case 0x0D: return "float32";
    case 0x0E: return "float64";
    default: return "no type of the format";
    }
}

/* Read all `count` bytes of the part named `what`, or report where the file ends. */
static sdlf_status read_exactly(sdlf_byte_stream *stream, void *bytes, size_t count, const char *what)
{
    size_t found = 0;
    int64_t start = stream->offset;
    sdlf_status status = sdlf_byte_stream_read(stream, bytes, count, &found);
    if (status != SDLF_OK || found == count) return status;
    return sdlf_fail(SDLF_ERROR_FORMAT,
                     "%s: byte %" PRId64 ": expected %zu bytes of %s from byte %" PRId64
                     ", found the end of the file after %zu",
                     stream->name, stream->offset, count, what, start, found);
}

static sdlf_status read_magic(sdlf_byte_stream *stream, int *rank)
{
    unsigned char magic[4];
    sdlf_status status = read_exactly(stream, magic, sizeof magic, "IDX magic number");
    if (status != SDLF_OK) return status;
    if (magic[0] != 0 || magic[1] != 0) {
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: byte 0: expected 0x00 0x00 (an IDX file, plain or gzip), found 0x%02x 0x%02x",
                         stream->name, magic[0], magic[1]);
    }
    if (magic[2] != IDX_UNSIGNED_BYTE) {
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: byte 2: expected element type 0x08 (unsigned byte), found 0x%02x (%s)",
                         stream->name, magic[2], type_name(magic[2]));
    }
    if (magic[3] < 1 || magic[3] > SDLF_MAX_RANK) {
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: byte 3: expected a rank of 1 to %d, found %d", stream->name,
                         SDLF_MAX_RANK, magic[3]);
    }
    *rank = magic[3];
    return SDLF_OK;
}

static sdlf_status read_shape(sdlf_byte_stream *stream, int rank, sdlf_shape *shape)
{
    unsigned char field[4 * SDLF_MAX_RANK];
    sdlf_status status = read_exactly(stream, field, 4 * (size_t)rank, "IDX dimensions");
    if (status != SDLF_OK) return status;
    shape->rank = rank;
    for (int i = 0; i < rank; i++) {
        const unsigned char *b = field + 4 * i;
        shape->dim[i] = (int64_t)b[0] << 24 | (int64_t)b[1] << 16 | (int64_t)b[2] << 8 | b[3];
        if (shape->dim[i] == 0) {
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: byte %d: expected dimension %d to be at least 1, found 0",
                             stream->name, sdlf_idx_header_size(i), i);
        }
    }
    return SDLF_OK;
}

/* Check that a file of this size can hold that many elements, before allocating memory for them. */
static sdlf_status check_size(const sdlf_byte_stream *stream, sdlf_shape shape)
{
    int64_t header = sdlf_idx_header_size(shape.rank);
    int64_t count = sdlf_shape_count(shape);
    if (count < 0 || count > INT64_MAX - header || (uint64_t)count > SIZE_MAX) {
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: byte 4: dimensions %s: more bytes than can be addressed", stream->name,
                         sdlf_shape_print(shape).text);
    }
    if (!stream->compressed && header + count != stream->size) {
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: byte %" PRId64 ": expected the end of the file there (a header of %" PRId64
                         " bytes and %s elements), found a file of %" PRId64 " bytes",
                         stream->name, header + count, header, sdlf_shape_print(shape).text, stream->size);
    }
    if (header + count > sdlf_byte_stream_capacity(stream)) {
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: byte 4: dimensions %s: expected at most %" PRId64 " bytes (what %" PRId64
                         " bytes of gzip can hold), found %" PRId64,
                         stream->name, sdlf_shape_print(shape).text, sdlf_byte_stream_capacity(stream), stream->size,
                         header + count);
    }
    return SDLF_OK;
}

/* Check the memory budget of a gzip file, which may expand a thousandfold. */
static sdlf_status check_budget(const sdlf_byte_stream *stream, sdlf_shape shape)
{
    read_budget budget;
    if (!stream->compressed) return SDLF_OK;
    sdlf_status status = read_budget_make(&budget, stream->size, 0);
    if (status == SDLF_OK) status = read_budget_check(&budget, sdlf_shape_count(shape), "its elements");
    return sdlf_fail_context(status, "%s", stream->name);
}

static sdlf_status read_header(sdlf_byte_stream *stream, sdlf_shape *shape)
{
    int rank = 0;
    sdlf_status status = read_magic(stream, &rank);
    if (status == SDLF_OK) status = read_shape(stream, rank, shape);
    return status == SDLF_OK ? check_size(stream, *shape) : status;
}

static sdlf_status read_tensor(sdlf_tensor *tensor, sdlf_byte_stream *stream)
{
    size_t found = 0;
    unsigned char beyond;
    sdlf_shape shape = {0};
    sdlf_status status = read_header(stream, &shape);
    if (status == SDLF_OK) status = check_budget(stream, shape);
    if (status == SDLF_OK) status = read_tensor_create(tensor, SDLF_UINT8, shape, stream->name);
    if (status != SDLF_OK) return status;
    status = read_exactly(stream, tensor->data, (size_t)sdlf_tensor_count(tensor), "elements");
    if (status == SDLF_OK) status = sdlf_byte_stream_read(stream, &beyond, 1, &found);
    if (status == SDLF_OK && found > 0) {
        status = sdlf_fail(SDLF_ERROR_FORMAT,
                           "%s: byte %" PRId64 ": expected the end of the file after %s elements, found more bytes",
                           stream->name, stream->offset - 1, sdlf_shape_print(shape).text);
    }
    if (status != SDLF_OK) {
        sdlf_tensor_release(tensor, NULL);
        *tensor = (sdlf_tensor){0};
    }
    return status;
}

sdlf_status sdlf_idx_parse(sdlf_tensor *tensor, const void *bytes, size_t size, const char *name)
{
    if (tensor == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_idx_parse: tensor is NULL");
    if (bytes == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_idx_parse: bytes is NULL");
    if (name == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_idx_parse: name is NULL");
    sdlf_byte_stream stream;
    *tensor = (sdlf_tensor){0};
    sdlf_status status = sdlf_byte_stream_wrap(&stream, bytes, size, name);
    if (status != SDLF_OK) return status;
    status = read_tensor(tensor, &stream);
    sdlf_byte_stream_release(&stream);
    return status;
}

sdlf_status sdlf_idx_read(sdlf_tensor *tensor, const char *path)
{
    if (tensor == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_idx_read: tensor is NULL");
    if (path == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_idx_read: path is NULL");
    sdlf_byte_stream stream;
    *tensor = (sdlf_tensor){0};
    sdlf_status status = sdlf_byte_stream_open(&stream, path);
    if (status != SDLF_OK) return status;
    status = read_tensor(tensor, &stream);
    sdlf_byte_stream_release(&stream);
    return status;
}

sdlf_status sdlf_idx_read_outline(sdlf_tensor *tensor, const char *path)
{
    sdlf_byte_stream stream;
    sdlf_shape shape = {0};
    *tensor = (sdlf_tensor){0};
    sdlf_status status = sdlf_byte_stream_open(&stream, path);
    if (status != SDLF_OK) return status;
    status = read_header(&stream, &shape);
    if (status == SDLF_OK) *tensor = sdlf_tensor_view(SDLF_UINT8, shape, NULL);
    sdlf_byte_stream_release(&stream);
    return status;
}
