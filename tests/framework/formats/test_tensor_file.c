/* SPDX-License-Identifier: MIT */
/* Files of one tensor whose elements are read directly to their destination: type and shape are known before, pipes
 * work, elements are in memory only once, and a file that changes meanwhile is reported. */
#include "testing.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sdlf/formats.h>

enum { COUNT = 100000, LITTLE = 16 << 10 };

static float numbers[COUNT], found[COUNT + 1];

static const char *write_numbers(void)
{
    const char *path = test_path("numbers.npy");
    for (int i = 0; i < COUNT; i++) numbers[i] = (float)i - 7;
    sdlf_tensor tensor = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(4, COUNT / 4), numbers);
    CHECK_OK(sdlf_tensor_write_file(&tensor, path));
    return path;
}

static bool holds_numbers(const float *values)
{
    return memcmp(values, numbers, sizeof numbers) == 0;
}

static void what_it_is_comes_first(void)
{
    sdlf_tensor_file *file;
    const char *path = write_numbers();
    test_reset_peak();
    int64_t before = test_live_bytes();
    if (!CHECK_OK(sdlf_tensor_file_open(&file, path))) return;
    sdlf_tensor tensor = sdlf_tensor_file_look(file);
    CHECK(tensor.dtype == SDLF_FLOAT32 && sdlf_shape_equal(tensor.shape, sdlf_shape(4, COUNT / 4)));
    CHECK(tensor.data == NULL);
    found[COUNT] = 5;
    CHECK_OK(sdlf_tensor_file_read(file, found));
    CHECK(holds_numbers(found));
    CHECK(found[COUNT] == 5);
    CHECK(test_peak_bytes() - before < LITTLE); /* straight to where they are wanted */
    sdlf_tensor_file_close(file);
    CHECK_EQUAL(test_live_bytes(), before);
}

static void a_tensor_is_there_once(void)
{
    sdlf_tensor tensor;
    const char *path = write_numbers();
    test_reset_peak();
    int64_t before = test_live_bytes();
    if (!CHECK_OK(sdlf_tensor_read_file(&tensor, path))) return;
    CHECK(holds_numbers(tensor.data));
    CHECK(test_peak_bytes() - before < (int64_t)sizeof numbers + LITTLE);
    sdlf_tensor_release(&tensor, NULL);
}

static void pipes_are_read(void)
{
    const char *from = write_numbers(), *path = test_path("pipe.npy");
    sdlf_tensor_file *file;
    for (int more = 0; more < 2; more++) {
        unlink(path);
        if (!CHECK(mkfifo(path, 0600) == 0)) return;
        pid_t writer = fork();
        if (writer == 0) {
            char command[2000];
            int length =
                snprintf(command, sizeof command, "cat '%s' %s > '%s'", from, more ? "'/etc/hostname'" : "", path);
            execl("/bin/sh", "sh", "-c", length < (int)sizeof command ? command : "exit 1", (char *)NULL);
            _exit(1);
        }
        memset(found, 0, sizeof found);
        if (CHECK_OK(sdlf_tensor_file_open(&file, path))) {
            CHECK_EQUAL(sdlf_tensor_file_look(file).shape.rank, 2);
            sdlf_status status = sdlf_tensor_file_read(file, found);
            if (more)
                CHECK_FAILS(status, SDLF_ERROR_FORMAT, "takes 400000 bytes, found 400001");
            else
                CHECK(status == SDLF_OK && holds_numbers(found));
            sdlf_tensor_file_close(file);
        }
        waitpid(writer, NULL, 0);
    }
}

/* Its size is wrong when it is opened, or becomes wrong later. */
static void other_sizes_are_told(void)
{
    const char *path = write_numbers();
    sdlf_tensor_file *file;
    if (!CHECK_OK(sdlf_tensor_file_open(&file, path))) return;
    CHECK(truncate(path, 1000) == 0);
    CHECK_FAILS(sdlf_tensor_file_read(file, found), SDLF_ERROR_FORMAT, "takes 400000 bytes, found 872");
    sdlf_tensor_file_close(file);
    CHECK_FAILS(sdlf_tensor_file_open(&file, path), SDLF_ERROR_FORMAT, "takes 400000 bytes, found 872");
    CHECK(file == NULL);
    CHECK_FAILS(sdlf_tensor_file_open(&file, test_path("none.npy")), SDLF_ERROR_IO, "none.npy");
    static const unsigned char long_header[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 0, 0, 0, 0x7f};
    test_write_file(path, long_header, sizeof long_header);
    CHECK_FAILS(sdlf_tensor_file_open(&file, path), SDLF_ERROR_FORMAT, "a header of at most 1048576 bytes");
}

static sdlf_status attempt(void *path)
{
    sdlf_tensor_file *file;
    sdlf_status status = sdlf_tensor_file_open(&file, path);
    if (status == SDLF_OK) status = sdlf_tensor_file_read(file, found);
    sdlf_tensor_file_close(file);
    return status;
}

static void survives_lack_of_memory(void)
{
    static char path[1000];
    snprintf(path, sizeof path, "%s", write_numbers());
    test_every_allocation("a file of one tensor", attempt, path);
}

/* No file of any form is empty; nothing is computed from the address of no bytes, as sanitizers see. */
static void empty_files_are_refused(void)
{
    static const char *const names[] = {"none.npy", "none.pb"};
    for (int i = 0; i < 2; i++) {
        const char *path = test_path(names[i]);
        sdlf_tensor tensor;
        test_write_file(path, "", 0);
        sdlf_status status = sdlf_tensor_read_file(&tensor, path);
        if (status == SDLF_ERROR_UNSUPPORTED && i == 1) continue; /* a build without ONNX */
        CHECK_EQUAL(status, SDLF_ERROR_FORMAT);
    }
}

int main(void)
{
    RUN(what_it_is_comes_first);
    RUN(a_tensor_is_there_once);
    RUN(pipes_are_read);
    RUN(other_sizes_are_told);
    RUN(survives_lack_of_memory);
    RUN(empty_files_are_refused);
    return test_summary();
}
