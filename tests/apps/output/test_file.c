/* SPDX-License-Identifier: MIT */
/* Reports in files: written completely, or the old file unchanged. */
#include "testing.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/output/file.h"

/* The file's text, in static storage. */
static const char *text_of(const char *path)
{
    static char text[256];
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static bool print_text(FILE *file, const void *text)
{
    return fputs(text, file) != EOF;
}

static bool print_half(FILE *file, const void *text)
{
    fputs(text, file);
    return false;
}

static void writes_and_replaces(void)
{
    const char *path = test_path("report.json");
    CHECK_OK(output_file_write(path, print_text, "one, and longer\n"));
    CHECK_TEXT(text_of(path), "one, and longer\n");
    CHECK_OK(output_file_write(path, print_text, "two\n"));
    CHECK_TEXT(text_of(path), "two\n");
    CHECK_FAILS(output_file_write(test_path("none/report.json"), print_text, "three"), SDLF_ERROR_IO, "none");
}

/* A full disk: files end after ten bytes. */
static void full_disk_leaves_the_old(void)
{
    const char *path = test_path("kept.svg");
    CHECK_OK(output_file_write(path, print_text, "old\n"));
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    struct rlimit less = {.rlim_cur = 10, .rlim_max = limit.rlim_max};
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &less) == 0);
    sdlf_status status = output_file_write(path, print_text, "new, and much longer than ten bytes\n");
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    signal(SIGXFSZ, before);
    CHECK_FAILS(status, SDLF_ERROR_IO, "kept.svg");
    CHECK_TEXT(text_of(path), "old\n");
}

static void half_a_report_is_none(void)
{
    const char *path = test_path("half.json");
    CHECK_OK(output_file_write(path, print_text, "old\n"));
    CHECK(output_file_write(path, print_half, "{\"half\":") != SDLF_OK);
    CHECK_TEXT(text_of(path), "old\n");
}

/* Runs in a process without root privileges, which exits with 0 for success, 77 to skip. */
static int check_as_nobody(void)
{
    if (geteuid() == 0 && setuid(65534) != 0) return 77;
    const char *path = test_path("protected.svg");
    if (output_file_check("/dev/null") != SDLF_OK) return 1; /* in a folder without write access */
    return output_file_check(path) != SDLF_ERROR_IO ||
           !strstr(sdlf_error_message(), "protected.svg': Permission denied");
}

/* A file that cannot be written is rejected before the computation, not after it. */
static void checked_before(void)
{
    const char *path = test_path("protected.svg");
    CHECK_OK(output_file_write(path, print_text, "old\n"));
    CHECK_OK(output_file_check(path));
    CHECK_OK(output_file_check("/dev/null"));
    CHECK_FAILS(output_file_check(test_path("none/report.json")), SDLF_ERROR_IO, "is not there");
    CHECK_FAILS(output_file_check("/dev/"), SDLF_ERROR_IO, "found a folder");
    CHECK_FAILS(output_file_check("/dev"), SDLF_ERROR_IO, "found a folder");
    CHECK_FAILS(output_file_check(test_path("new/")), SDLF_ERROR_IO, "found a folder");
    CHECK(chmod(path, 0444) == 0 && chmod(test_path("."), 0755) == 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(check_as_nobody());
    int result = -1;
    CHECK(child > 0 && waitpid(child, &result, 0) == child);
    if (WIFEXITED(result) && WEXITSTATUS(result) == 77)
        test_skip("this process may not become another user's");
    else
        CHECK_EQUAL(result, 0);
}

/* A link is checked by its target. */
static void links_are_followed_before(void)
{
    const char *lost = test_path("lost"), *round = test_path("round"), *good = test_path("good");
    CHECK(symlink("nowhere/report.json", lost) == 0 && symlink("round", round) == 0 && symlink("made.json", good) == 0);
    CHECK_FAILS(output_file_check(lost), SDLF_ERROR_IO, "nowhere");
    CHECK_FAILS(output_file_check(round), SDLF_ERROR_IO, "Too many levels of symbolic links");
    CHECK_OK(output_file_check(good));
    CHECK_OK(output_file_write(good, print_text, "made\n"));
    CHECK_TEXT(text_of(test_path("made.json")), "made\n");
    CHECK(unlink(lost) == 0 && unlink(round) == 0 && unlink(good) == 0);
}

static double free_bytes(const char *folder)
{
    struct statvfs at;
    return statvfs(folder, &at) == 0 ? (double)at.f_bavail * (double)at.f_frsize : 0;
}

/* Space is checked on the file system of a link's target, whether the file exists or not. */
static void room_is_that_of_the_disk(void)
{
    char folder[] = "/dev/shm/sdlf-test-XXXXXX", behind[64];
    const char *here = test_path("."), *link = test_path("elsewhere"), *first = test_path("first");
    struct stat one, other;
    if (!mkdtemp(folder)) {
        test_skip("there is no second file system");
        return;
    }
    double there = free_bytes(folder), near = free_bytes(here);
    int64_t bytes = (int64_t)(there / 2 + near / 2);
    snprintf(behind, sizeof behind, "%s/report.json", folder);
    CHECK(stat(here, &one) == 0 && stat(folder, &other) == 0);
    if (one.st_dev == other.st_dev || (there < 2 * near && near < 2 * there)) {
        test_skip("two file systems with about the same room");
    } else {
        CHECK(symlink(behind, link) == 0 && symlink("elsewhere", first) == 0);
        sdlf_status expected = there > near ? SDLF_OK : SDLF_ERROR_IO;
        CHECK_EQUAL(output_file_check_space(link, bytes), expected);
        CHECK_EQUAL(output_file_check_space(first, bytes), expected);
        test_write_file(behind, "old", 3);
        CHECK_EQUAL(output_file_check_space(link, bytes), expected);
        CHECK_EQUAL(output_file_check_space(test_path("report.json"), bytes), there > near ? SDLF_ERROR_IO : SDLF_OK);
        CHECK(unlink(link) == 0 && unlink(first) == 0 && unlink(behind) == 0);
    }
    CHECK(rmdir(folder) == 0);
}

int main(void)
{
    RUN(writes_and_replaces);
    RUN(full_disk_leaves_the_old);
    RUN(half_a_report_is_none);
    RUN(checked_before);
    RUN(links_are_followed_before);
    RUN(room_is_that_of_the_disk);
    return test_summary();
}
