#include "framework/formats/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/atomic_file.h"
#include "framework/formats/little_endian.h"
#include "framework/formats/read_file.h"

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* The header's text on the way through it. */
typedef struct npy_header {
    const char *at, *end;
    const char *name; /* of the file */
} npy_header;

typedef struct npy_type {
    const char *code;
    sdlf_dtype dtype;
} npy_type;

/* The first of a dtype is what is written; the last of a code is what is read: bools become bytes. */
static const npy_type types[] = {
    {"<f4", SDLF_FLOAT32}, {"<f8", SDLF_FLOAT64}, {"<f2", SDLF_FLOAT16}, {"|u1", SDLF_UINT8}, {"|i1", SDLF_INT8},
    {"<i4", SDLF_INT32},   {"<i8", SDLF_INT64},   {"|b1", SDLF_BOOL},    {"|b1", SDLF_UINT8},
};
enum { TYPES = sizeof types / sizeof types[0] };

/* ---- reading ---- */

static void skip_blanks(npy_header *header)
{
    while (header->at < header->end && (*header->at == ' ' || *header->at == '\n' || *header->at == '\t')) header->at++;
}

static bool take(npy_header *header, char wanted)
{
    skip_blanks(header);
    if (header->at == header->end || *header->at != wanted) return false;
    header->at++;
    return true;
}

static sdlf_status malformed(const npy_header *header, const char *expected)
{
    int left = (int)(header->end - header->at < 20 ? header->end - header->at : 20);
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy header: expected %s, found '%.*s'", header->name, expected, left,
                     header->at);
}

/* A quoted string without escapes, shorter than `size`. */
static sdlf_status take_text(npy_header *header, char *text, size_t size, const char *expected)
{
    skip_blanks(header);
    char quote = header->at < header->end ? *header->at : '\0';
    if (quote != '\'' && quote != '"') return malformed(header, expected);
    const char *first = header->at + 1, *last = memchr(first, quote, (size_t)(header->end - first));
    if (last == NULL || (size_t)(last - first) >= size) return malformed(header, expected);
    memcpy(text, first, (size_t)(last - first));
    text[last - first] = '\0';
    header->at = last + 1;
    return SDLF_OK;
}

static sdlf_status take_shape(npy_header *header, sdlf_shape *shape)
{
    *shape = SDLF_SCALAR;
    if (!take(header, '(')) return malformed(header, "'shape' in parentheses");
    while (!take(header, ')')) {
        int64_t side = 0;
        int digits = 0;
        for (skip_blanks(header); header->at < header->end && *header->at >= '0' && *header->at <= '9'; header->at++) {
            if (side > (INT64_MAX - 9) / 10) return malformed(header, "a side that 63 bits can hold");
            side = 10 * side + (*header->at - '0');
            digits++;
        }
        if (digits == 0) return malformed(header, "a side of 'shape'");
        if (shape->rank == SDLF_MAX_RANK)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy header: expected at most %d dimensions, found more",
                             header->name, SDLF_MAX_RANK);
        shape->dim[shape->rank++] = side;
        if (take(header, ',')) continue;
        if (!take(header, ')')) return malformed(header, "',' or ')' in 'shape'");
        break;
    }
    return SDLF_OK;
}

static sdlf_status take_type(npy_header *header, sdlf_dtype *dtype)
{
    char code[16];
    sdlf_status status = take_text(header, code, sizeof code, "'descr' in quotes");
    if (status != SDLF_OK) return status;
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i].code, code) == 0) *dtype = types[i].dtype;
    }
    if (*dtype != SDLF_NONE) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT,
                     "%s: .npy header: element type '%s', expected <f2, <f4, <f8, |u1, |i1, |b1, <i4 or <i8",
                     header->name, code);
}

static sdlf_status take_order(npy_header *header)
{
    skip_blanks(header);
    size_t left = (size_t)(header->end - header->at);
    bool column_major = left >= 4 && memcmp(header->at, "True", 4) == 0;
    if (!column_major && !(left >= 5 && memcmp(header->at, "False", 5) == 0))
        return malformed(header, "True or False for 'fortran_order'");
    header->at += column_major ? 4 : 5;
    if (!column_major) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT,
                     "%s: .npy: expected row-major order, found column-major (save it with numpy.ascontiguousarray)",
                     header->name);
}

/* {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } in any order, each key once. */
static sdlf_status parse_header(npy_header *header, sdlf_dtype *dtype, sdlf_shape *shape)
{
    static const char *const keys[3] = {"descr", "fortran_order", "shape"};
    bool seen[3] = {false, false, false};
    *dtype = SDLF_NONE;
    if (!take(header, '{')) return malformed(header, "'{'");
    while (!take(header, '}')) {
        char key[16];
        sdlf_status status = take_text(header, key, sizeof key, "descr, fortran_order or shape");
        if (status != SDLF_OK) return status;
        int which = 0;
        while (which < 3 && strcmp(key, keys[which]) != 0) which++;
        if (which == 3 || seen[which])
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy header: %s key '%s'", header->name,
                             which == 3 ? "unknown" : "repeated", key);
        if (!take(header, ':')) return malformed(header, "':'");
        seen[which] = true;
        status = which == 0 ? take_type(header, dtype) : which == 1 ? take_order(header) : take_shape(header, shape);
        if (status != SDLF_OK) return status;
        if (take(header, ',')) continue;
        if (!take(header, '}')) return malformed(header, "',' or '}'");
        break;
    }
    for (int i = 0; i < 3; i++) {
        if (!seen[i]) return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy header: '%s' is missing", header->name, keys[i]);
    }
    return SDLF_OK;
}

/* Where the header's text lies, from the magic string and the version. */
static sdlf_status find_header(npy_header *header, const unsigned char *bytes, size_t size)
{
    if (size < 10 || memcmp(bytes, magic, sizeof magic) != 0)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: not a .npy file: it does not begin with \\x93NUMPY", header->name);
    int version = bytes[6];
    if (version < 1 || version > 3)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy version %d, expected 1 to 3", header->name, version);
    size_t start = version == 1 ? 10 : 12, length = (size_t)(bytes[8] | bytes[9] << 8);
    if (size < start) return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy: the file ends within its header", header->name);
    if (version > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > size - start)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy: expected a header of %zu bytes, found %zu", header->name, length,
                         size - start);
    header->at = (const char *)bytes + start;
    header->end = header->at + length;
    return SDLF_OK;
}

sdlf_status npy_parse(sdlf_tensor *tensor, const void *bytes, size_t size, const char *name)
{
    *tensor = (sdlf_tensor){.dtype = SDLF_NONE};
    npy_header header = {.name = name};
    sdlf_dtype dtype;
    sdlf_shape shape = SDLF_SCALAR;
    sdlf_status status = find_header(&header, bytes, size);
    if (status != SDLF_OK) return status;
    const char *data = header.end;
    status = parse_header(&header, &dtype, &shape);
    if (status != SDLF_OK) return status;
    sdlf_tensor wanted = sdlf_tensor_view(dtype, shape, NULL);
    int64_t count = sdlf_tensor_bytes(&wanted), found = (int64_t)(size - (size_t)(data - (const char *)bytes));
    if (count < 0)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy: %s of shape %s takes more bytes than there can be", name,
                         sdlf_dtype_name(dtype), sdlf_shape_print(shape).text);
    if (count != found)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy: %s of shape %s takes %" PRId64 " bytes, found %" PRId64, name,
                         sdlf_dtype_name(dtype), sdlf_shape_print(shape).text, count, found);
    status = sdlf_tensor_create(tensor, NULL, dtype, shape);
    if (status != SDLF_OK) return sdlf_fail_context(status, "%s", name);
    if (count > 0) memcpy(tensor->data, data, (size_t)count);
    if (!host_is_little_endian())
        reverse_elements(tensor->data, sdlf_dtype_size(dtype), (size_t)sdlf_tensor_count(tensor));
    return SDLF_OK;
}

sdlf_status npy_read(sdlf_tensor *tensor, const char *path)
{
    *tensor = (sdlf_tensor){.dtype = SDLF_NONE};
    char *bytes;
    size_t size;
    sdlf_status status = read_file(&bytes, &size, path, SIZE_MAX / 4);
    if (status != SDLF_OK) return status;
    status = npy_parse(tensor, bytes, size, path);
    free(bytes);
    return status;
}

/* ---- writing ---- */

static const char *code_of(sdlf_dtype dtype)
{
    for (int i = 0; i < TYPES; i++) {
        if (types[i].dtype == dtype) return types[i].code;
    }
    return NULL;
}

/* Version 1.0, padded with blanks so that the elements begin at a multiple of 64. Returns the bytes before them. */
static size_t print_header(char *text, size_t size, const sdlf_tensor *tensor, const char *code)
{
    size_t used = 10;
    used += (size_t)snprintf(text + used, size - used, "{'descr': '%s', 'fortran_order': False, 'shape': (", code);
    for (int i = 0; i < tensor->shape.rank; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, i > 0 ? ", " : "", tensor->shape.dim[i]);
    used += (size_t)snprintf(text + used, size - used, "%s), }", tensor->shape.rank == 1 ? "," : "");
    size_t end = (used + 1 + 63) / 64 * 64;
    memset(text + used, ' ', end - 1 - used);
    text[end - 1] = '\n';
    memcpy(text, magic, sizeof magic);
    text[6] = 1;
    text[7] = 0;
    text[8] = (char)((end - 10) & 0xff);
    text[9] = (char)((end - 10) >> 8);
    return end;
}

sdlf_status npy_write(const sdlf_tensor *tensor, const char *path)
{
    const char *code = code_of(tensor->dtype);
    if (code == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: .npy has no element type for %s", path,
                         sdlf_dtype_name(tensor->dtype));
    if (!sdlf_tensor_is_contiguous(tensor) || !host_is_little_endian())
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: only row-major tensors of a little-endian machine can be written",
                         path);
    char header[512];
    size_t length = print_header(header, sizeof header, tensor, code);
    atomic_file file;
    sdlf_status status = atomic_file_open(&file, path);
    if (status != SDLF_OK) return status;
    status = atomic_file_write(&file, header, length);
    if (status == SDLF_OK && sdlf_tensor_bytes(tensor) > 0)
        status = atomic_file_write(&file, tensor->data, (size_t)sdlf_tensor_bytes(tensor));
    if (status == SDLF_OK) return atomic_file_commit(&file);
    atomic_file_abandon(&file);
    return status;
}
