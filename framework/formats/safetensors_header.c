/* SPDX-License-Identifier: MIT */
/* The header of a safetensors file: nothing in it is trusted before it is checked. */
#include "framework/formats/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/json_text.h"
#include "framework/formats/text.h"

#define METADATA "__metadata__"

static sdlf_status parse_json(json_t **json, const char *text, size_t length, const char *path)
{
    json_text_error error;
    sdlf_status status = json_text_check(text, length);
    if (status != SDLF_OK) return sdlf_fail_context(status, "%s: a header of %zu bytes", path, length);
    status = json_text_parse(json, text, length, &error);
    if (status == SDLF_ERROR_MEMORY)
        return sdlf_fail(status, "%s: out of memory for a header of %zu bytes", path, length);
    if (status != SDLF_OK)
        return sdlf_fail(status, "%s: the header is not JSON: %s at byte %zu of the file", path,
                         text_show(error.text).text, error.position + 8);
    if (json_is_object(*json)) return SDLF_OK;
    json_decref(*json);
    *json = NULL;
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: the header must be a JSON object", path);
}

static sdlf_status check_metadata(json_t *metadata, const char *path)
{
    if (metadata == NULL) return SDLF_OK;
    if (!json_is_object(metadata))
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: " METADATA " must be an object of strings", path);
    const char *key;
    json_t *value;
    json_object_foreach(metadata, key, value) if (!json_is_string(value)) return sdlf_fail(
        SDLF_ERROR_FORMAT, "%s: the metadata '%s' must be a string", path, text_show(key).text);
    return SDLF_OK;
}

static sdlf_status parse_shape(safetensors_entry *entry, json_t *shape, const char *path)
{
    const text_shown name = text_show(entry->name);
    if (!json_is_array(shape))
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: tensor '%s': \"shape\" must be an array of integers", path, name.text);
    size_t rank = json_array_size(shape);
    if (rank > SDLF_MAX_RANK)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: tensor '%s' has %zu dimensions; at most %d can be read", path,
                         name.text, rank, SDLF_MAX_RANK);
    entry->shape = (sdlf_shape){.rank = (int)rank};
    for (size_t i = 0; i < rank; i++) {
        json_t *dim = json_array_get(shape, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: tensor '%s': dimension %zu of its shape is no integer from 0 up",
                             path, name.text, i);
        entry->shape.dim[i] = json_integer_value(dim);
    }
    if (sdlf_shape_count(entry->shape) < 0)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: tensor '%s': a shape of %s has more elements than can be counted",
                         path, name.text, sdlf_shape_print(entry->shape).text);
    return SDLF_OK;
}

/* Reads offsets, which must be in order and match dtype and shape. */
static sdlf_status parse_offsets(safetensors_entry *entry, json_t *offsets, unsigned bits, uint64_t data_size,
                                 const char *path)
{
    const text_shown name = text_show(entry->name);
    json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: tensor '%s': \"data_offsets\" must be two integers", path, name.text);
    int64_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || end < begin || (uint64_t)end > data_size)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: tensor '%s': data_offsets [%" PRId64 ", %" PRId64 "] are not within the %" PRIu64
                         " bytes of data that the file has",
                         path, name.text, begin, end, data_size);
    entry->begin = (uint64_t)begin;
    entry->end = (uint64_t)end;

    uint64_t count = (uint64_t)sdlf_shape_count(entry->shape), size = entry->end - entry->begin;
    bool fits = count <= UINT64_MAX / bits && count * bits % 8 == 0;
    if (!fits || count * bits / 8 != size)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: tensor '%s': %s elements of %s take %" PRIu64 "%s bytes, but data_offsets [%" PRId64
                         ", %" PRId64 "] hold %" PRIu64,
                         path, name.text, sdlf_shape_print(entry->shape).text, entry->dtype_name,
                         fits ? count * bits / 8 : count, fits ? "" : " times their size in", begin, end, size);
    return SDLF_OK;
}

static sdlf_status parse_entry(safetensors_entry *entry, const char *name, json_t *value, uint64_t data_size,
                               const char *path)
{
    *entry = (safetensors_entry){.name = name};
    if (!json_is_object(value))
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: tensor '%s' must be an object with dtype, shape and data_offsets",
                         path, text_show(name).text);
    const char *dtype_name = json_string_value(json_object_get(value, "dtype"));
    if (dtype_name == NULL)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: tensor '%s': \"dtype\" must be a string", path, text_show(name).text);
    const safetensors_dtype *dtype = safetensors_dtype_named(dtype_name);
    if (dtype == NULL)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: tensor '%s' has the unknown dtype '%s'; expected F32, F16, BF16 or another", path,
                         text_show(name).text, text_show(dtype_name).text);
    entry->dtype = dtype->dtype;
    entry->dtype_name = dtype->name;
    sdlf_status status = parse_shape(entry, json_object_get(value, "shape"), path);
    if (status != SDLF_OK) return status;
    return parse_offsets(entry, json_object_get(value, "data_offsets"), dtype->bits, data_size, path);
}

static int by_position(const void *left, const void *right)
{
    const safetensors_entry *a = left, *b = right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

/* Checks that the entries cover the data completely, each byte once. */
static sdlf_status check_cover(const safetensors_header *header, uint64_t data_size, const char *path)
{
    uint64_t covered = 0;
    for (size_t i = 0; i < header->count; i++) {
        const safetensors_entry *entry = &header->entries[i];
        if (entry->begin != covered)
            return sdlf_fail(SDLF_ERROR_FORMAT,
                             "%s: tensor '%s' begins at byte %" PRIu64
                             " of the data, but what is before it ends at %" PRIu64 " (%s)",
                             path, text_show(entry->name).text, entry->begin, covered,
                             entry->begin < covered ? "they overlap" : "there is a gap");
        covered = entry->end;
    }
    if (covered != data_size)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: the file has %" PRIu64 " bytes of data, but its tensors end at byte %" PRIu64, path,
                         data_size, covered);
    return SDLF_OK;
}

sdlf_status safetensors_header_parse(safetensors_header *header, const char *text, size_t length, uint64_t data_size,
                                     const char *path)
{
    *header = (safetensors_header){0};
    sdlf_status status = parse_json(&header->json, text, length, path);
    if (status != SDLF_OK) return status;
    status = check_metadata(json_object_get(header->json, METADATA), path);
    if (status != SDLF_OK) goto fail;

    size_t room = json_object_size(header->json);
    header->entries = malloc((room > 0 ? room : 1) * sizeof *header->entries);
    if (header->entries == NULL) {
        status = sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory for the list of %zu tensors", path, room);
        goto fail;
    }
    const char *name;
    json_t *value;
    json_object_foreach(header->json, name, value)
    {
        if (strcmp(name, METADATA) == 0) continue;
        status = parse_entry(&header->entries[header->count++], name, value, data_size, path);
        if (status != SDLF_OK) goto fail;
    }
    qsort(header->entries, header->count, sizeof *header->entries, by_position);
    status = check_cover(header, data_size, path);
    if (status == SDLF_OK) return SDLF_OK;
fail:
    safetensors_header_release(header);
    return status;
}

void safetensors_header_release(safetensors_header *header)
{
    free(header->entries);
    json_decref(header->json);
    *header = (safetensors_header){0};
}

const char *safetensors_metadata(const safetensors_header *header, const char *key)
{
    return json_string_value(json_object_get(json_object_get(header->json, METADATA), key));
}
