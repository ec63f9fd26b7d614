/* SPDX-License-Identifier: MIT */
/* File types are recognised by content, regardless of the name. */
#include "testing.h"

#include <string.h>
#include <sys/stat.h>

#include "apps/input/file_type.h"

static file_type form(const char *name, const char *bytes, size_t count)
{
    const char *path = test_path(name);
    test_write_file(path, bytes, count);
    return file_type_of(path);
}

static void content_comes_first(void)
{
    static const char weights[] = "\x10\0\0\0\0\0\0\0{\"__metadata__\"", onnx[] = "\x08\x08\x12\x07pytorch";
    CHECK_EQUAL(form("a.onnx", weights, sizeof weights - 1), FILE_TYPE_SAFETENSORS);
    CHECK_EQUAL(form("a", weights, sizeof weights - 1), FILE_TYPE_SAFETENSORS);
    CHECK_EQUAL(form("b.json", onnx, sizeof onnx - 1), FILE_TYPE_ONNX);
    CHECK_EQUAL(form("b.bin", onnx, sizeof onnx - 1), FILE_TYPE_ONNX);
    CHECK_EQUAL(form("c.onnx", "\xef\xbb\xbf \n{}", 7), FILE_TYPE_JSON);
}

static void else_the_name(void)
{
    CHECK_EQUAL(form("d.onnx", "text", 4), FILE_TYPE_ONNX);
    CHECK_EQUAL(form("d.json", "", 0), FILE_TYPE_JSON);
    CHECK_EQUAL(form("d.safetensors", "\x10\0\0", 3), FILE_TYPE_SAFETENSORS);
    CHECK_EQUAL(form("d.txt", "\x89PNG\r\n\x1a\n {", 10), FILE_TYPE_OTHER);
    CHECK_EQUAL(form("onnx", " \n", 2), FILE_TYPE_OTHER);
    CHECK_EQUAL(file_type_of("not there.onnx"), FILE_TYPE_ONNX);
    CHECK_EQUAL(file_type_of(".onnx"), FILE_TYPE_OTHER);
}

/* Opening a pipe without a writer would block for ever. */
static void pipes_are_left_alone(void)
{
    const char *path = test_path("pipe.onnx");
    CHECK(mkfifo(path, 0600) == 0);
    CHECK_EQUAL(file_type_of(path), FILE_TYPE_ONNX);
}

static void other_files_are_refused(void)
{
    const char *path = test_path("picture");
    test_write_file(path, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
    CHECK_FAILS(file_type_refuse_other(path, "a model"), SDLF_ERROR_FORMAT,
                "expected a model, found 89 50 4e 47 0d 0a 1a 0a 00 00 00 0d at byte 0");
    test_write_file(path, "text\n", 5);
    CHECK_FAILS(file_type_refuse_other(path, "a model"), SDLF_ERROR_FORMAT, "expected a model, found 'text' at byte 0");
    test_write_file(path, "\1", 1);
    CHECK_FAILS(file_type_refuse_other(path, "a model"), SDLF_ERROR_FORMAT, "expected a model, found 01 at byte 0");
    test_write_file(path, "{", 1);
    CHECK_OK(file_type_refuse_other(path, "a model"));
    test_write_file(path, "", 0);
    CHECK_OK(file_type_refuse_other(path, "a model"));
    CHECK_OK(file_type_refuse_other(test_path("absent"), "a model"));
}

int main(void)
{
    RUN(content_comes_first);
    RUN(else_the_name);
    RUN(pipes_are_left_alone);
    RUN(other_files_are_refused);
    return test_summary();
}
