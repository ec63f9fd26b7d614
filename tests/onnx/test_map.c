/* SPDX-License-Identifier: MIT */
/* Files read in pieces: the bytes are correct, unneeded parts take no memory, and parts that no longer exist are
 * errors. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#if !SDLF_TEST_ONNX
int main(void)
{
    puts("this build reads no ONNX files");
    return 77;
}
#else

#include "framework/formats/onnx/map.h"

enum { SIZE = (3 << 16) + 17 };

static const char *write_file(unsigned char *content)
{
    const char *path = test_path("file");
    for (int i = 0; i < SIZE; i++) content[i] = (unsigned char)(i * 7 + i / 251);
    test_write_file(path, content, SIZE);
    return path;
}

static void pieces_are_read_where_they_are_needed(void)
{
    static unsigned char content[SIZE], out[1000];
    onnx_map map;
    CHECK_OK(onnx_map_open(&map, write_file(content)));
    CHECK_EQUAL((int64_t)map.size, SIZE);
    CHECK(!map.there[0] && !map.there[3]);
    CHECK_OK(onnx_map_need(&map, map.bytes + (1 << 16) - 1, 2));
    CHECK(map.there[0] && map.there[1] && !map.there[2]);
    CHECK(memcmp(map.bytes, content, 2 << 16) == 0);
    CHECK_OK(onnx_map_need(&map, map.bytes + SIZE - 1, 1));
    CHECK(memcmp(map.bytes + (3 << 16), content + (3 << 16), 17) == 0);
    CHECK_OK(onnx_map_read(&map, map.bytes + (2 << 16) + 5, sizeof out, out));
    CHECK(memcmp(out, content + (2 << 16) + 5, sizeof out) == 0);
    CHECK(!map.there[2]);
    CHECK_OK(onnx_map_check(&map));
    onnx_map_close(&map);
}

/* A descriptor not open for reading: the reason of the first failure is kept. */
static void what_cannot_be_read_is_told(void)
{
    static unsigned char content[SIZE];
    const char *path = write_file(content);
    onnx_map map;
    CHECK_OK(onnx_map_open(&map, path));
    close(map.descriptor);
    map.descriptor = open(path, O_WRONLY);
    CHECK(onnx_map_need(&map, map.bytes, 10) == SDLF_ERROR_IO);
    CHECK_FAILS(onnx_map_check(&map), SDLF_ERROR_IO, strerror(EBADF));
    onnx_map_close(&map);
}

static void a_file_that_becomes_shorter_is_told(void)
{
    static unsigned char content[SIZE], out[16];
    const char *path = write_file(content);
    onnx_map map;
    CHECK_OK(onnx_map_open(&map, path));
    CHECK_OK(onnx_map_need(&map, map.bytes, 10));
    CHECK(truncate(path, 1 << 16) == 0);
    CHECK_OK(onnx_map_need(&map, map.bytes + 100, 1000));
    CHECK(onnx_map_need(&map, map.bytes + (2 << 16), 1) == SDLF_ERROR_IO);
    CHECK(strstr(sdlf_error_message(), "has become shorter") != NULL);
    CHECK_EQUAL(map.bytes[2 << 16], 0); /* zeros, and no signal */
    CHECK(onnx_map_read(&map, map.bytes + (1 << 16) - 8, 16, out) == SDLF_ERROR_IO);
    CHECK(onnx_map_check(&map) == SDLF_ERROR_IO);
    onnx_map_close(&map);
}

/* After any write, earlier reads may not match later ones. A file that replaces it under its name is another file. */
static void a_file_that_is_changed_is_told(void)
{
    static unsigned char content[SIZE];
    const char *path = write_file(content), *other = test_path("other");
    onnx_map map;
    CHECK_OK(onnx_map_open(&map, path));
    test_write_file(other, "new", 3);
    CHECK(rename(other, path) == 0);
    CHECK_OK(onnx_map_need(&map, map.bytes, SIZE));
    CHECK(memcmp(map.bytes, content, SIZE) == 0);
    CHECK_OK(onnx_map_check(&map));
    onnx_map_close(&map);
    CHECK_OK(onnx_map_open(&map, write_file(content)));
    CHECK_OK(onnx_map_need(&map, map.bytes, 10));
    test_change_file(path);
    CHECK_FAILS(onnx_map_check(&map), SDLF_ERROR_IO, "it has been changed since it was opened");
    onnx_map_close(&map);
}

/* Released parts are read again, and only those. */
static void what_is_forgotten_is_read_again(void)
{
    static unsigned char content[SIZE];
    onnx_map map;
    CHECK_OK(onnx_map_open(&map, write_file(content)));
    CHECK_OK(onnx_map_need(&map, map.bytes, SIZE));
    onnx_map_forget(&map);
    CHECK(!map.there[0] && !map.there[2] && !map.there[3] && map.bytes[5] == 0);
    CHECK_OK(onnx_map_need(&map, map.bytes + 5, 10));
    CHECK(memcmp(map.bytes + 5, content + 5, 10) == 0);
    CHECK(map.there[0] && !map.there[2]);
    onnx_map_close(&map);
    test_write_file(test_path("empty"), "", 0);
    CHECK_OK(onnx_map_open(&map, test_path("empty")));
    onnx_map_forget(&map); /* of an empty file, nothing */
    onnx_map_close(&map);
}

static void what_is_no_file_is_told(void)
{
    onnx_map map;
    CHECK(mkfifo(test_path("pipe"), 0600) == 0); /* nobody writes to it, but the call does not block */
    CHECK_FAILS(onnx_map_open(&map, test_path("pipe")), SDLF_ERROR_IO, "it is not a regular file");
    CHECK(onnx_map_open(&map, test_path("missing")) == SDLF_ERROR_IO);
    CHECK_FAILS(onnx_map_open(&map, "/"), SDLF_ERROR_IO, "it is a folder");
    test_write_file(test_path("empty"), "", 0);
    CHECK_OK(onnx_map_open(&map, test_path("empty")));
    CHECK(map.bytes == NULL && map.size == 0);
    onnx_map_close(&map);
}

/* A file that does not fit in the address space is a memory error, whatever the system reports. */
static void no_room_is_no_memory(void)
{
    enum { ROOM = 1 << 30 };
    struct rlimit limit;
    const char *path = test_path("large");
    if (!TEST_LIMITS_MEMORY) {
        test_skip("the address space cannot be limited");
        return;
    }
    test_write_file(path, "", 0);
    CHECK(truncate(path, 2 * (off_t)ROOM) == 0 && getrlimit(RLIMIT_AS, &limit) == 0);
    CHECK(setrlimit(RLIMIT_AS, &(struct rlimit){ROOM, limit.rlim_max}) == 0);
    onnx_map map;
    sdlf_status status = onnx_map_open(&map, path);
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK_FAILS(status, SDLF_ERROR_MEMORY, "cannot find room for");
}

int main(void)
{
    RUN(pieces_are_read_where_they_are_needed);
    RUN(what_cannot_be_read_is_told);
    RUN(a_file_that_becomes_shorter_is_told);
    RUN(a_file_that_is_changed_is_told);
    RUN(what_is_forgotten_is_read_again);
    RUN(what_is_no_file_is_told);
    RUN(no_room_is_no_memory);
    return test_summary();
}
#endif
