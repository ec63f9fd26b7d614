/* SPDX-License-Identifier: MIT */
/* Files for standard output: they pass through a temporary folder that is removed in any case. */
#include "apps/output/stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"

static char temporary[512], folder[600];

/* Begin such a file, and write it and a second file beside it, like the weights of a large model. */
static output_stream begin(const char *text)
{
    char beside[700];
    output_stream stream;
    snprintf(temporary, sizeof temporary, "%s", test_path("."));
    setenv("TMPDIR", temporary, 1);
    CHECK_OK(output_stream_open(&stream, "-"));
    snprintf(folder, sizeof folder, "%s", stream.folder);
    CHECK(strncmp(folder, temporary, strlen(temporary)) == 0);
    snprintf(beside, sizeof beside, "%s.1234.data", stream.path);
    test_write_file(stream.path, text, strlen(text));
    test_write_file(beside, "more", 4);
    return stream;
}

static bool is_there(const char *path)
{
    struct stat at;
    return stat(path, &at) == 0;
}

static void what_was_written_is_sent(void)
{
    char found[32] = "";
    const char *path = test_path("sent");
    output_stream stream = begin("all of it");
    fflush(stdout);
    int file = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600), out = dup(STDOUT_FILENO);
    dup2(file, STDOUT_FILENO);
    sdlf_status status = output_stream_close(&stream, SDLF_OK);
    dup2(out, STDOUT_FILENO);
    CHECK_OK(status);
    CHECK(pread(file, found, sizeof found - 1, 0) == 9);
    CHECK_TEXT(found, "all of it");
    CHECK(!is_there(folder));
    close(file);
    close(out);
}

static void a_failure_leaves_nothing(void)
{
    output_stream stream = begin("half of");
    CHECK_EQUAL(output_stream_close(&stream, SDLF_ERROR_FORMAT), SDLF_ERROR_FORMAT);
    CHECK(!is_there(folder));
}

/* A regular file is written in place by the library. */
static void other_files_are_themselves(void)
{
    char path[512];
    output_stream stream;
    snprintf(path, sizeof path, "%s", test_path("regular"));
    CHECK_OK(output_stream_check(path));
    CHECK_OK(output_stream_open(&stream, path));
    CHECK_TEXT(stream.path, path);
    CHECK_OK(output_stream_close(&stream, SDLF_OK));
    CHECK_FAILS(output_stream_check(test_path("none/file")), SDLF_ERROR_IO, "none");
}

static void no_folder_for_it(void)
{
    output_stream stream;
    setenv("TMPDIR", test_path("none"), 1);
    CHECK_FAILS(output_stream_open(&stream, "-"), SDLF_ERROR_IO, "cannot make the folder '");
    CHECK_EQUAL(output_stream_close(&stream, SDLF_ERROR_IO), SDLF_ERROR_IO);
}

int main(void)
{
    RUN(what_was_written_is_sent);
    RUN(a_failure_leaves_nothing);
    RUN(other_files_are_themselves);
    RUN(no_folder_for_it);
    return test_summary();
}
