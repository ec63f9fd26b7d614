/* SPDX-License-Identifier: MIT */
#include "framework/formats/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework/formats/atomic_file.h"
#include "framework/formats/budget.h"
#include "framework/formats/little_endian.h"
#include "framework/formats/npy_header.h"

/* ---- reading ---- */

/* Reads up to `count` bytes, fewer only at the end. */
static sdlf_status take_bytes(npy_file *file, void *to, size_t count, size_t *found)
{
    *found = 0;
    if (file->read != NULL) {
        sdlf_status status = file->read(file->context, to, count, found);
        file->left -= *found < file->left ? *found : file->left;
        return status;
    }
    if (file->descriptor < 0) {
        *found = count < file->left ? count : file->left;
        if (*found > 0) memcpy(to, file->bytes, *found);
        file->bytes += *found;
        file->left -= *found;
        return SDLF_OK;
    }
    while (*found < count) {
        size_t most = 1 << 30, part = count - *found < most ? count - *found : most;
        ssize_t done = read(file->descriptor, (char *)to + *found, part);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0)
            return sdlf_fail(SDLF_ERROR_IO, "cannot read '%s': %s", file->name,
                             errno == EISDIR ? "it is a folder" : strerror(errno));
        if (done == 0) break;
        *found += (size_t)done;
    }
    return SDLF_OK;
}

/* Reads the magic string, the version, and the length of the header's text. */
static sdlf_status take_start(npy_file *file, size_t *length)
{
    unsigned char bytes[12];
    size_t found;
    sdlf_status status = take_bytes(file, bytes, 10, &found);
    if (status != SDLF_OK) return status;
    if (found < 10 || memcmp(bytes, npy_magic, sizeof npy_magic) != 0)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: not a .npy file: it does not begin with \\x93NUMPY", file->name);
    int version = bytes[6];
    if (version < 1 || version > 3)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy version %d, expected 1 to 3", file->name, version);
    *length = (size_t)(bytes[8] | bytes[9] << 8);
    if (version == 1) return SDLF_OK;
    status = take_bytes(file, bytes + 10, 2, &found);
    if (status == SDLF_OK && found < 2)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy: the file ends within its header", file->name);
    *length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    return status;
}

static sdlf_status take_header(npy_file *file, char *text, size_t length)
{
    size_t found;
    sdlf_dtype dtype;
    sdlf_shape shape;
    sdlf_status status = take_bytes(file, text, length, &found);
    if (status != SDLF_OK) return status;
    if (found < length)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy: expected a header of %zu bytes, found %zu", file->name, length,
                         found);
    status = npy_parse_header(text, length, file->name, &dtype, &shape, &file->column_major);
    if (status != SDLF_OK) return status;
    file->tensor = sdlf_tensor_view(dtype, shape, NULL);
    if (sdlf_tensor_bytes(&file->tensor) < 0)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy: %s of shape %s takes more bytes than there can be", file->name,
                         sdlf_dtype_name(dtype), sdlf_shape_print(shape).text);
    return SDLF_OK;
}

static sdlf_status check_size(const npy_file *file, int64_t found)
{
    int64_t count = sdlf_tensor_bytes(&file->tensor);
    if (count == found) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy: %s of shape %s takes %" PRId64 " bytes, found %" PRId64, file->name,
                     sdlf_dtype_name(file->tensor.dtype), sdlf_shape_print(file->tensor.shape).text, count, found);
}

/* Checks the number of remaining bytes against the header, if it is known before reading. */
static sdlf_status check_rest(const npy_file *file)
{
    if (file->descriptor < 0) return check_size(file, (int64_t)file->left);
    struct stat about;
    off_t at = lseek(file->descriptor, 0, SEEK_CUR);
    bool known = at >= 0 && fstat(file->descriptor, &about) == 0 && S_ISREG(about.st_mode);
    return known ? check_size(file, (int64_t)(about.st_size - at)) : SDLF_OK;
}

static sdlf_status read_header(npy_file *file)
{
    enum { MOST = 1 << 20 };
    size_t length = 0;
    sdlf_status status = take_start(file, &length);
    if (status != SDLF_OK) return status;
    if (length > MOST)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy: expected a header of at most %d bytes, found one of %zu",
                         file->name, MOST, length);
    char *text = malloc(length + 1);
    if (text == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory reading '%s'", file->name);
    status = take_header(file, text, length);
    free(text);
    return status == SDLF_OK ? check_rest(file) : status;
}

sdlf_status npy_open(npy_file *file, const char *path)
{
    *file = (npy_file){.name = path, .descriptor = open(path, O_RDONLY | O_CLOEXEC)};
    if (file->descriptor < 0) return sdlf_fail(SDLF_ERROR_IO, "cannot open '%s': %s", path, strerror(errno));
    sdlf_status status = read_header(file);
    if (status != SDLF_OK) npy_close(file);
    return status;
}

sdlf_status npy_open_from(npy_file *file, const char *name, size_t size,
                          sdlf_status (*read)(void *context, void *bytes, size_t count, size_t *found), void *context)
{
    *file = (npy_file){.name = name, .descriptor = -1, .left = size, .read = read, .context = context};
    return read_header(file);
}

void npy_close(npy_file *file)
{
    if (file->descriptor >= 0) close(file->descriptor);
    *file = (npy_file){.descriptor = -1};
}

static sdlf_status take_values(npy_file *file, void *values)
{
    size_t found, more = 0;
    char beyond;
    sdlf_status status = take_bytes(file, values, (size_t)sdlf_tensor_bytes(&file->tensor), &found);
    if (status == SDLF_OK) status = take_bytes(file, &beyond, 1, &more);
    if (status == SDLF_OK) status = check_size(file, (int64_t)(found + more));
    if (status == SDLF_OK && !host_is_little_endian())
        reverse_elements(values, sdlf_dtype_size(file->tensor.dtype), (size_t)sdlf_tensor_count(&file->tensor));
    return status;
}

static void to_row_major(char *to, const char *from, sdlf_shape shape, size_t size)
{
    int64_t stride[SDLF_MAX_RANK], index[SDLF_MAX_RANK] = {0}, count = sdlf_shape_count(shape), at = 0;
    for (int d = 0; d < shape.rank; d++) stride[d] = d == 0 ? 1 : stride[d - 1] * shape.dim[d - 1];
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + (size_t)i * size, from + (size_t)at * size, size);
        for (int d = shape.rank - 1; d >= 0; d--) {
            at += stride[d];
            if (++index[d] < shape.dim[d]) break;
            at -= stride[d] * shape.dim[d];
            index[d] = 0;
        }
    }
}

sdlf_status npy_take(npy_file *file, void *values)
{
    sdlf_tensor lying;
    if (!file->column_major || file->tensor.shape.rank < 2) return take_values(file, values);
    sdlf_status status = read_tensor_create(&lying, file->tensor.dtype, file->tensor.shape, file->name);
    if (status != SDLF_OK) return status;
    status = take_values(file, lying.data);
    if (status == SDLF_OK) to_row_major(values, lying.data, lying.shape, sdlf_dtype_size(lying.dtype));
    sdlf_tensor_release(&lying, NULL);
    return status;
}

/* Reads all of an open file into a new tensor, and closes the file. */
static sdlf_status take_all(npy_file *file, sdlf_tensor *tensor)
{
    sdlf_status status = read_tensor_create(tensor, file->tensor.dtype, file->tensor.shape, file->name);
    if (status == SDLF_OK) status = npy_take(file, tensor->data);
    if (status != SDLF_OK) sdlf_tensor_release(tensor, NULL);
    npy_close(file);
    return status;
}

sdlf_status npy_read(sdlf_tensor *tensor, const char *path)
{
    npy_file file;
    *tensor = (sdlf_tensor){.dtype = SDLF_NONE};
    sdlf_status status = npy_open(&file, path);
    return status == SDLF_OK ? take_all(&file, tensor) : status;
}

sdlf_status npy_parse(sdlf_tensor *tensor, const void *bytes, size_t size, const char *name)
{
    npy_file file = {.name = name, .descriptor = -1, .bytes = bytes, .left = size};
    *tensor = (sdlf_tensor){.dtype = SDLF_NONE};
    sdlf_status status = read_header(&file);
    return status == SDLF_OK ? take_all(&file, tensor) : status;
}

/* ---- writing ---- */

sdlf_status npy_write(const sdlf_tensor *tensor, const char *path)
{
    if (npy_type_code(tensor->dtype) == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: .npy has no element type for %s", path,
                         sdlf_dtype_name(tensor->dtype));
    if (!sdlf_tensor_is_contiguous(tensor) || !host_is_little_endian())
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: only row-major tensors of a little-endian machine can be written",
                         path);
    char header[512];
    size_t length = npy_print_header(header, sizeof header, tensor);
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
