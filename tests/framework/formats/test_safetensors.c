/* SPDX-License-Identifier: MIT */
/* The safetensors format: written files read back; a false header is rejected, with the offending values. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework/formats/safetensors.h"

/* ---- headers ---- */

static sdlf_status parse(const char *text, uint64_t data_size)
{
    safetensors_header header;
    sdlf_status status = safetensors_header_parse(&header, text, strlen(text), data_size, "w.safetensors");
    if (status == SDLF_OK) safetensors_header_release(&header);
    return status;
}

#define ENTRY(dtype, shape, offsets) "{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void header_in_any_order(void)
{
    const char *text =
        "{\"b\":" ENTRY("\"F32\"", "[2,3]", "[8,32]") ",\"__metadata__\":{\"k\":\"v\"},"
                                                      "\"a\":" ENTRY("\"F64\"", "[]", "[0,8]") ",\"e\":" ENTRY(
                                                          "\"U8\"", "[0,5]", "[32,32]") "}   ";
    safetensors_header header;
    CHECK_OK(safetensors_header_parse(&header, text, strlen(text), 32, "w"));
    CHECK_EQUAL((int64_t)header.count, 3);
    CHECK_TEXT(header.entries[0].name, "a");
    CHECK_EQUAL(header.entries[0].dtype, SDLF_FLOAT64);
    CHECK_EQUAL(header.entries[0].shape.rank, 0);
    CHECK_TEXT(header.entries[1].name, "b");
    CHECK(sdlf_shape_equal(header.entries[1].shape, sdlf_shape(2, 3)));
    CHECK_EQUAL((int64_t)header.entries[1].begin, 8);
    CHECK_TEXT(header.entries[2].name, "e");
    CHECK_TEXT(safetensors_metadata(&header, "k"), "v");
    CHECK(safetensors_metadata(&header, "none") == NULL);
    safetensors_header_release(&header);
}

static void types_that_sdlf_has_not(void)
{
    CHECK_OK(parse("{}", 0));
    CHECK_OK(parse("{\"a\":" ENTRY("\"BOOL\"", "[3]", "[0,3]") "}", 3));
    CHECK_OK(parse("{\"a\":" ENTRY("\"F4\"", "[4]", "[0,2]") "}", 2));
    CHECK_FAILS(parse("{\"a\":" ENTRY("\"F4\"", "[3]", "[0,2]") "}", 2), SDLF_ERROR_FORMAT,
                "tensor 'a': 3 elements of F4");
}

static void hostile_headers(void)
{
    static const struct {
        const char *text;
        uint64_t data_size;
        const char *message;
    } cases[] = {
        {"", 0, "w.safetensors: the header is not JSON"},
        {"{", 0, "the header is not JSON"},
        {"{\"a\":1}x", 0, "expected the end, found 'x' at byte 15"},
        {"[]", 0, "the header must be a JSON object"},
        {"{\"a\":1}", 0, "tensor 'a' must be an object"},
        {"{\"a\":{},\"a\":{}}", 0, "the key 'a' occurs twice in an object"},
        {"{\"\\u0000\":{}}", 0, "invalid escape"},
        {"{\"__metadata__\":[]}", 0, "__metadata__ must be an object of strings"},
        {"{\"__metadata__\":{\"n\":1}}", 0, "the metadata 'n' must be a string"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "\"dtype\" must be a string"},
        {"{\"a\":" ENTRY("\"F33\"", "[1]", "[0,4]") "}", 4, "tensor 'a' has the unknown dtype 'F33'"},
        {"{\"a\":" ENTRY("7", "[1]", "[0,4]") "}", 4, "\"dtype\" must be a string"},
        {"{\"a\":" ENTRY("\"F32\"", "1", "[0,4]") "}", 4, "\"shape\" must be an array of integers"},
        {"{\"a\":" ENTRY("\"F32\"", "[1.5]", "[0,4]") "}", 4, "dimension 0 of its shape is no integer from 0 up"},
        {"{\"a\":" ENTRY("\"F32\"", "[1,-1]", "[0,4]") "}", 4, "dimension 1 of its shape is no integer from 0 up"},
        {"{\"a\":" ENTRY("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "tensor 'a' has 9 dimensions; at most 8"},
        {"{\"a\":" ENTRY("\"F32\"", "[4294967296,4294967296]", "[0,4]") "}", 4,
         "4294967296x4294967296 has more elements"},
        {"{\"a\":" ENTRY("\"F32\"", "[4611686018427387904]", "[0,4]") "}", 4, "but data_offsets [0, 4] hold 4"},
        {"{\"a\":" ENTRY("\"F32\"", "[99999999999999999999]", "[0,4]") "}", 4, "more than 64 bits"},
        {"{\"a\":" ENTRY("\"F32\"", "[1]", "[0]") "}", 4, "\"data_offsets\" must be two integers"},
        {"{\"a\":" ENTRY("\"F32\"", "[1]", "[0,4,8]") "}", 4, "\"data_offsets\" must be two integers"},
        {"{\"a\":" ENTRY("\"F32\"", "[1]", "[0,\"4\"]") "}", 4, "\"data_offsets\" must be two integers"},
        {"{\"a\":" ENTRY("\"F32\"", "[1]", "[-4,0]") "}", 4, "data_offsets [-4, 0] are not within the 4 bytes"},
        {"{\"a\":" ENTRY("\"F32\"", "[1]", "[4,0]") "}", 4, "data_offsets [4, 0] are not within the 4 bytes"},
        {"{\"a\":" ENTRY("\"F32\"", "[2]", "[0,8]") "}", 4, "data_offsets [0, 8] are not within the 4 bytes"},
        {"{\"a\":" ENTRY("\"F32\"", "[2]", "[0,4]") "}", 4,
         "2 elements of F32 take 8 bytes, but data_offsets [0, 4] hold 4"},
        {"{\"a\":" ENTRY("\"F32\"", "[1]", "[4,8]") "}", 8,
         "begins at byte 4 of the data, but what is before it ends at 0 (there is a gap)"},
        {"{\"a\":" ENTRY("\"F32\"", "[2]", "[0,8]") ",\"b\":" ENTRY("\"F32\"", "[2]", "[4,12]") "}", 12,
         "tensor 'b' begins at byte 4 of the data, but what is before it ends at 8 (they overlap)"},
        {"{\"a\":" ENTRY("\"F32\"", "[1]", "[0,4]") "}", 9,
         "the file has 9 bytes of data, but its tensors end at byte 4"},
        {"{}", 1, "the file has 1 bytes of data, but its tensors end at byte 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (!CHECK_FAILS(parse(cases[i].text, cases[i].data_size), SDLF_ERROR_FORMAT, cases[i].message))
            printf("    of the header %s\n", cases[i].text);
    }
}

static void names_are_shown_safely(void)
{
    CHECK_FAILS(parse("{\"a\\u001b[2J\\n\xc2\x9b\":1}", 0), SDLF_ERROR_FORMAT,
                "tensor 'a?[2J?"
                "?' must be");
    char text[1200] = "{\"";
    memset(text + 2, 'n', 1000);
    memcpy(text + 1002, "\":1}", 5);
    CHECK_FAILS(parse(text, 0), SDLF_ERROR_FORMAT, "nnn...' must be an object");
}

static void deep_nesting(void)
{
    char *text = malloc(1000001);
    if (!CHECK(text != NULL)) return;
    memset(text, '[', 1000000);
    text[1000000] = '\0';
    CHECK_FAILS(parse(text, 0), SDLF_ERROR_FORMAT, "the header is not JSON");
    free(text);
}

/* ---- files ---- */

static sdlf_status open_and_close(const char *path)
{
    safetensors_file file;
    sdlf_status status = safetensors_open(&file, path);
    if (status == SDLF_OK) safetensors_close(&file);
    return status;
}

/* Write a file of these bytes: header length, header, data. */
static const char *file_of(uint64_t length, const char *rest, size_t rest_size)
{
    unsigned char bytes[512];
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(length >> 8 * i);
    memcpy(bytes + 8, rest, rest_size);
    const char *path = test_path("hostile.safetensors");
    test_write_file(path, bytes, 8 + rest_size);
    return path;
}

static void hostile_files(void)
{
    test_write_file(test_path("short"), "123", 3);
    CHECK_FAILS(open_and_close(test_path("short")), SDLF_ERROR_FORMAT, "at least 10 bytes, this one has 3");
    CHECK_FAILS(open_and_close(test_path("none")), SDLF_ERROR_IO, "No such file or directory");
    CHECK_FAILS(open_and_close(test_path(".")), SDLF_ERROR_IO, "it is a folder");
    CHECK_FAILS(open_and_close("/dev/zero"), SDLF_ERROR_IO, "it is not a regular file");
    CHECK_FAILS(open_and_close(NULL), SDLF_ERROR_ARGUMENT, "missing");
    CHECK(mkfifo(test_path("pipe"), 0600) == 0);
    CHECK_FAILS(open_and_close(test_path("pipe")), SDLF_ERROR_IO, "it is not a regular file");
    CHECK_OK(open_and_close(file_of(2, "{}", 2)));
    CHECK_FAILS(open_and_close(file_of(3, "{}", 2)), SDLF_ERROR_FORMAT,
                "announce a header of 3 bytes, the file has 10");
    CHECK_FAILS(open_and_close(file_of(UINT64_MAX, "{}", 2)), SDLF_ERROR_FORMAT,
                "announce a header of 18446744073709551615 bytes");
    CHECK_FAILS(open_and_close(file_of(0, "{}", 2)), SDLF_ERROR_FORMAT, "the header is not JSON");
    test_write_file(test_path("net.json"), "{\"format\": 1}", 13);
    CHECK_FAILS(open_and_close(test_path("net.json")), SDLF_ERROR_FORMAT, "a network file is for sdlf_network_read");
}

static void header_too_long(void)
{
    const char *path = file_of(SAFETENSORS_MAX_HEADER + 1, "{}", 2);
    CHECK(truncate(path, SAFETENSORS_MAX_HEADER + 100) == 0); /* a hole: takes no space */
    CHECK_FAILS(open_and_close(path), SDLF_ERROR_FORMAT, "the header has 100000001 bytes; at most 100000000 are read");
}

static const float numbers[6] = {1.5f, -2, 0, 3.25f, 1e30f, -0.0f};
static const double doubles[2] = {0.1, 1e300};
static const unsigned char bytes[3] = {1, 2, 255};

/* Three tensors and some metadata. */
static sdlf_status write_sample(const char *path)
{
    safetensors_item items[] = {
        {"bytes", sdlf_tensor_view(SDLF_UINT8, sdlf_shape(3), (void *)bytes)},
        {"layer.weight", sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(2, 3), (void *)numbers)},
        {"scalar", sdlf_tensor_view(SDLF_FLOAT32, SDLF_SCALAR, (void *)numbers)},
        {"doubles", sdlf_tensor_view(SDLF_FLOAT64, sdlf_shape(2), (void *)doubles)},
        {"empty", sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(0, 4), NULL)},
    };
    json_t *metadata = json_object();
    sdlf_status status = SDLF_ERROR_MEMORY;
    if (metadata != NULL && json_object_set_new(metadata, "format", json_string("pt")) == 0)
        status = safetensors_write(path, items, sizeof items / sizeof items[0], metadata);
    json_decref(metadata);
    return status;
}

static void round_trip(void)
{
    const char *path = test_path("sample.safetensors");
    CHECK_OK(write_sample(path));
    safetensors_file file;
    if (!CHECK_OK(safetensors_open(&file, path))) return;
    CHECK_EQUAL((int64_t)file.data_start % 8, 0);
    CHECK_EQUAL((int64_t)file.header.count, 5);
    CHECK_TEXT(safetensors_metadata(&file.header, "format"), "pt");
    static const char *const order[] = {"doubles", "empty", "layer.weight", "scalar", "bytes"};
    for (size_t i = 0; i < 5; i++) CHECK_TEXT(file.header.entries[i].name, order[i]);
    float found[6];
    CHECK_OK(safetensors_read_float32(&file, &file.header.entries[2], found));
    CHECK(memcmp(found, numbers, sizeof numbers) == 0);
    CHECK_OK(safetensors_read_float32(&file, &file.header.entries[0], found));
    CHECK_EQUAL(found[0] == 0.1f, 1);
    CHECK_OK(safetensors_read_float32(&file, &file.header.entries[1], found));
    safetensors_close(&file);
}

static void large_tensor_crosses_buffers(void)
{
    enum { COUNT = 100003 };
    float *values = malloc(2 * COUNT * sizeof *values);
    if (!CHECK(values != NULL)) return;
    for (int i = 0; i < COUNT; i++) values[i] = (float)i * 0.25f;
    safetensors_item item = {"big", sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(COUNT), values)};
    CHECK_OK(safetensors_write(test_path("big"), &item, 1, NULL));
    safetensors_file file;
    if (CHECK_OK(safetensors_open(&file, test_path("big")))) {
        CHECK_OK(safetensors_read_float32(&file, &file.header.entries[0], values + COUNT));
        CHECK(memcmp(values, values + COUNT, COUNT * sizeof *values) == 0);
        safetensors_close(&file);
    }
    free(values);
}

static void cut_short_while_reading(void)
{
    const char *path = test_path("shrinks");
    CHECK_OK(write_sample(path));
    safetensors_file file;
    if (!CHECK_OK(safetensors_open(&file, path))) return;
    CHECK(truncate(path, (off_t)file.data_start + 20) == 0);
    float found[6];
    CHECK_FAILS(safetensors_read_float32(&file, &file.header.entries[2], found), SDLF_ERROR_FORMAT, "ended at byte");
    safetensors_close(&file);
}

static void refuses_to_write(void)
{
    const char *path = test_path("refused");
    safetensors_item twice[] = {{"a", sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1), (void *)numbers)},
                                {"a", sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1), (void *)numbers)}};
    CHECK_FAILS(safetensors_write(path, twice, 2, NULL), SDLF_ERROR_ARGUMENT, "two tensors are named 'a'");
    twice[0].name = "\xff";
    CHECK_FAILS(safetensors_write(path, twice, 2, NULL), SDLF_ERROR_ARGUMENT, "is not UTF-8");
    safetensors_item none = {.name = "none"};
    CHECK_FAILS(safetensors_write(path, &none, 1, NULL), SDLF_ERROR_ARGUMENT, "'none' has no type");
    CHECK(access(path, F_OK) != 0);
    CHECK_FAILS(write_sample("/dev/full"), SDLF_ERROR_IO, "No space left on device");
}

static sdlf_status write_and_read(void *path)
{
    sdlf_status status = write_sample(path);
    return status == SDLF_OK ? open_and_close(path) : status;
}

static void every_allocation(void)
{
    json_set_alloc_funcs(malloc, free); /* so that the JSON library's allocations are counted and fail too */
    test_every_allocation("safetensors", write_and_read, (void *)test_path("allocations"));
}

int main(void)
{
    RUN(header_in_any_order);
    RUN(types_that_sdlf_has_not);
    RUN(hostile_headers);
    RUN(names_are_shown_safely);
    RUN(deep_nesting);
    RUN(hostile_files);
    RUN(header_too_long);
    RUN(round_trip);
    RUN(large_tensor_crosses_buffers);
    RUN(cut_short_while_reading);
    RUN(refuses_to_write);
    RUN(every_allocation);
    return test_summary();
}
