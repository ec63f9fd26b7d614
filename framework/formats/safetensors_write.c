/* SPDX-License-Identifier: MIT */
#include "framework/formats/safetensors.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/atomic_file.h"
#include "framework/formats/json_text.h"
#include "framework/formats/little_endian.h"
#include "framework/formats/text.h"

static int by_size_and_name(const void *left, const void *right)
{
    const safetensors_item *a = left, *b = right;
    size_t size_a = sdlf_dtype_size(a->tensor.dtype), size_b = sdlf_dtype_size(b->tensor.dtype);
    if (size_a != size_b) return size_a > size_b ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}, or NULL when out of memory. */
static json_t *describe(const sdlf_tensor *tensor, int64_t begin, int64_t end)
{
    json_t *shape = json_array(), *offsets = json_array(), *entry = json_object();
    bool ok = json_array_append_new(offsets, json_integer(begin)) == 0 &&
              json_array_append_new(offsets, json_integer(end)) == 0;
    for (int i = 0; i < tensor->shape.rank && ok; i++)
        ok = json_array_append_new(shape, json_integer(tensor->shape.dim[i])) == 0;
    ok = ok && json_object_set_new(entry, "dtype", json_string(safetensors_dtype_of(tensor->dtype)->name)) == 0 &&
         json_object_set(entry, "shape", shape) == 0 && json_object_set(entry, "data_offsets", offsets) == 0;
    json_decref(shape);
    json_decref(offsets);
    if (ok) return entry;
    json_decref(entry);
    return NULL;
}

static sdlf_status out_of_memory(const char *path)
{
    return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory for the header of '%s'", path);
}

static sdlf_status add_item(json_t *header, const safetensors_item *item, int64_t *end, const char *path)
{
    if (safetensors_dtype_of(item->tensor.dtype) == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "tensor '%s' has no type that can be written",
                         text_show(item->name).text);
    if (!text_is_utf8(item->name))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "the name '%s' is not UTF-8", text_show(item->name).text);
    if (json_object_get(header, item->name) != NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "two tensors are named '%s'", text_show(item->name).text);
    assert(sdlf_tensor_is_contiguous(&item->tensor));
    int64_t begin = *end;
    *end += sdlf_tensor_bytes(&item->tensor);
    json_t *entry = describe(&item->tensor, begin, *end);
    if (entry == NULL || json_object_set_new(header, item->name, entry) != 0) return out_of_memory(path);
    return SDLF_OK;
}

/* The header preceded by its length, padded with spaces so that the data begins at a multiple of 8. */
static sdlf_status print_header(unsigned char **bytes, size_t *size, json_t *header, const char *path)
{
    size_t length = 0;
    char *text = json_text_print(header, JSON_COMPACT, &length);
    if (text == NULL) return out_of_memory(path);
    *size = 8 + (length + 7) / 8 * 8;
    *bytes = malloc(*size);
    if (*bytes != NULL) memcpy(*bytes + 8, text, length);
    free(text);
    if (*bytes == NULL) return out_of_memory(path);
    memset(*bytes + 8 + length, ' ', *size - 8 - length);
    store_little_endian_64(*bytes, *size - 8);
    return SDLF_OK;
}

static sdlf_status make_header(unsigned char **bytes, size_t *size, safetensors_item *items, size_t count,
                               json_t *metadata, const char *path)
{
    json_t *header = json_object();
    sdlf_status status = SDLF_OK;
    if (header == NULL || (metadata != NULL && json_object_set(header, "__metadata__", metadata) != 0))
        status = out_of_memory(path);
    if (count > 0) qsort(items, count, sizeof *items, by_size_and_name);
    int64_t end = 0;
    for (size_t i = 0; i < count && status == SDLF_OK; i++) {
        status = add_item(header, &items[i], &end, path);
    }
    if (status == SDLF_OK) status = print_header(bytes, size, header, path);
    json_decref(header);
    return status;
}

static sdlf_status write_data(atomic_file *file, const sdlf_tensor *tensor)
{
    size_t element = sdlf_dtype_size(tensor->dtype), left = (size_t)sdlf_tensor_bytes(tensor);
    const unsigned char *at = tensor->data;
    if (host_is_little_endian()) return left > 0 ? atomic_file_write(file, at, left) : SDLF_OK;
    unsigned char buffer[32768];
    while (left > 0) {
        size_t size = left < sizeof buffer ? left : sizeof buffer;
        memcpy(buffer, at, size);
        reverse_elements(buffer, element, size / element);
        sdlf_status status = atomic_file_write(file, buffer, size);
        if (status != SDLF_OK) return status;
        at += size;
        left -= size;
    }
    return SDLF_OK;
}

sdlf_status safetensors_write(const char *path, safetensors_item *items, size_t count, json_t *metadata)
{
    unsigned char *header = NULL;
    size_t size = 0;
    sdlf_status status = make_header(&header, &size, items, count, metadata, path);
    if (status != SDLF_OK) return status;
    atomic_file file;
    status = atomic_file_open(&file, path);
    if (status == SDLF_OK) {
        status = atomic_file_write(&file, header, size);
        for (size_t i = 0; i < count && status == SDLF_OK; i++) status = write_data(&file, &items[i].tensor);
        if (status == SDLF_OK)
            status = atomic_file_commit(&file);
        else
            atomic_file_abandon(&file);
    }
    free(header);
    return status;
}
