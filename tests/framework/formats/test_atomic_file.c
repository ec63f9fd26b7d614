/* SPDX-License-Identifier: MIT */
/* Atomic files: permissions, links, every kind of error. Disk errors are in test_atomic_file_disk.c, processes that are
 * killed while they write in test_atomic_file_killed.c. */
#include "testing.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sdlf/formats.h>

#include "framework/formats/atomic_file.h"
#include "framework/formats/atomic_texts.h"

static void writes_and_replaces(void)
{
    const char *folder = make_folder("plain"), *path = test_path("plain/file");
    CHECK_OK(write_text(path, "one"));
    CHECK_TEXT(text_of(path), "one");
    CHECK(chmod(path, 0640) == 0);
    CHECK_OK(write_text(path, "two, and longer"));
    CHECK_TEXT(text_of(path), "two, and longer");
    struct stat information;
    CHECK(stat(path, &information) == 0);
    CHECK_EQUAL(information.st_mode & 0777, 0640);
    CHECK_EQUAL(files_in(folder), 1);
}

static void path_without_a_folder(void)
{
    char old[4096];
    CHECK(getcwd(old, sizeof old) != NULL);
    const char *folder = make_folder("here");
    CHECK(chdir(folder) == 0);
    CHECK_OK(write_text("file", "text"));
    CHECK_TEXT(text_of("file"), "text");
    CHECK(chdir(old) == 0);
}

static void abandoned_leaves_the_old(void)
{
    const char *folder = make_folder("abandoned"), *path = test_path("abandoned/file");
    CHECK_OK(write_text(path, "old"));
    atomic_file file;
    CHECK_OK(atomic_file_open(&file, path));
    CHECK_OK(atomic_file_write(&file, "new", 3));
    CHECK_EQUAL(files_in(folder), 2);
    CHECK_TEXT(text_of(path), "old");
    atomic_file_abandon(&file);
    CHECK_EQUAL(files_in(folder), 1);
    CHECK_TEXT(text_of(path), "old");
}

static void link_stays_a_link(void)
{
    make_folder("links");
    const char *path = test_path("links/file"), *link = test_path("links/link");
    CHECK_OK(write_text(path, "old"));
    CHECK(symlink("file", link) == 0);
    CHECK_OK(write_text(link, "new"));
    CHECK_TEXT(text_of(path), "new");
    struct stat information;
    CHECK(lstat(link, &information) == 0 && S_ISLNK(information.st_mode));
}

/* Links to files that do not exist yet, through several relative and absolute links. */
static void link_to_nothing_stays_a_link(void)
{
    make_folder("dangling");
    make_folder("dangling/below");
    const char *path = test_path("dangling/below/file"), *first = test_path("dangling/first");
    const char *second = test_path("dangling/below/second"), *whole = test_path("dangling/whole");
    CHECK(symlink("below/second", first) == 0 && symlink("file", second) == 0 && symlink(path, whole) == 0);
    CHECK_OK(write_text(first, "one"));
    CHECK_TEXT(text_of(path), "one");
    CHECK(unlink(path) == 0);
    CHECK_OK(write_text(whole, "two"));
    CHECK_TEXT(text_of(path), "two");
    struct stat information;
    CHECK(lstat(first, &information) == 0 && S_ISLNK(information.st_mode));
    CHECK(lstat(second, &information) == 0 && S_ISLNK(information.st_mode));
    CHECK(lstat(whole, &information) == 0 && S_ISLNK(information.st_mode));
    CHECK_EQUAL(files_in(test_path("dangling")), 3);
}

/* One link more than the limit: its target is unknown, so nothing is replaced. */
static void too_many_links_are_refused(void)
{
    make_folder("chain");
    enum { LINKS = 42 };
    char name[32], target[16];
    for (int i = 0; i < LINKS; i++) {
        snprintf(name, sizeof name, "chain/%d", i);
        snprintf(target, sizeof target, "%d", i + 1);
        CHECK(symlink(target, test_path(name)) == 0);
    }
    CHECK_FAILS(write_text(test_path("chain/0"), "x"), SDLF_ERROR_IO, strerror(ELOOP));
    CHECK_EQUAL(files_in(test_path("chain")), LINKS);
}

/* The name of an open pipe is a link whose text is not a path. */
static void open_pipes_are_written_to(void)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    char name[32], text[8] = "";
    snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
    struct stat at;
    if (stat(name, &at) != 0) test_skip("there is no /dev/fd");
    CHECK_OK(sdlf_can_write_file(name));
    CHECK_OK(write_text(name, "words"));
    CHECK_EQUAL(read(ends[0], text, sizeof text - 1), 5);
    CHECK_TEXT(text, "words");
    close(ends[0]);
    close(ends[1]);
}

/* The check leaves no files, and reports the same error as writing. */
static void asks_before(void)
{
    const char *folder = make_folder("asked"), *path = test_path("asked/file"), *link = test_path("asked/link");
    CHECK_OK(sdlf_can_write_file(path));
    CHECK_EQUAL(files_in(folder), 0);
    CHECK_OK(write_text(path, "old"));
    CHECK_OK(sdlf_can_write_file(path));
    CHECK_TEXT(text_of(path), "old");
    CHECK_EQUAL(files_in(folder), 1);
    CHECK(symlink("none/file", link) == 0);
    CHECK_FAILS(sdlf_can_write_file(link), SDLF_ERROR_IO, "asked/none");
    CHECK_FAILS(sdlf_can_write_file(folder), SDLF_ERROR_IO, "it is a folder");
    CHECK_FAILS(sdlf_can_write_file(""), SDLF_ERROR_ARGUMENT, "empty");
}

static void links_in_a_circle_are_refused(void)
{
    const char *folder = make_folder("circle"), *a = test_path("circle/a"), *b = test_path("circle/b");
    CHECK(symlink("b", a) == 0 && symlink("a", b) == 0);
    CHECK_FAILS(write_text(a, "x"), SDLF_ERROR_IO, "cannot write");
    CHECK_FAILS(write_text(a, "x"), SDLF_ERROR_IO, strerror(ELOOP));
    struct stat information;
    CHECK(lstat(a, &information) == 0 && S_ISLNK(information.st_mode));
    CHECK_EQUAL(files_in(folder), 2);
}

static void refuses(void)
{
    const char *folder = make_folder("refuses");
    CHECK_FAILS(write_text("", "x"), SDLF_ERROR_ARGUMENT, "empty");
    CHECK_FAILS(write_text(NULL, "x"), SDLF_ERROR_ARGUMENT, "empty");
    CHECK_FAILS(write_text(folder, "x"), SDLF_ERROR_IO, "it is a folder");
    CHECK_FAILS(write_text(test_path("refuses/none/file"), "x"), SDLF_ERROR_IO, "No such file or directory");
    CHECK_EQUAL(files_in(folder), 0);
}

static void device_is_written_to_and_stays(void)
{
    CHECK_FAILS(write_text("/dev/full", "x"), SDLF_ERROR_IO, "No space left on device");
    CHECK_OK(write_text("/dev/null", "x"));
    struct stat information;
    CHECK(stat("/dev/null", &information) == 0 && S_ISCHR(information.st_mode));
}

static int write_as_nobody(void *path)
{
    if (geteuid() == 0 && setuid(65534) != 0) return 77;
    return !fails_with(write_text(path, "new"), "Permission denied");
}

static void unwritable_folder(void)
{
    const char *folder = make_folder("unwritable"), *path = test_path("unwritable/file");
    CHECK_OK(write_text(path, "old"));
    CHECK(chmod(folder, 0555) == 0);
    in_child(write_as_nobody, (void *)path);
    CHECK(chmod(folder, 0755) == 0);
    CHECK_TEXT(text_of(path), "old");
    CHECK_EQUAL(files_in(folder), 1);
}

static void protected_file(void)
{
    const char *path = test_path("protected");
    CHECK_OK(write_text(path, "old"));
    CHECK(chmod(path, 0444) == 0);
    in_child(write_as_nobody, (void *)path);
    CHECK_TEXT(text_of(path), "old");
}

static int write_past_a_limit(void *path)
{
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {.rlim_cur = 10, .rlim_max = 10};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 77;
    return !fails_with(write_text(path, "much more than ten bytes"), "File too large (after 10 bytes)");
}

static void limit_on_file_size(void)
{
    const char *folder = make_folder("limit"), *path = test_path("limit/file");
    CHECK_OK(write_text(path, "old"));
    in_child(write_past_a_limit, (void *)path);
    CHECK_TEXT(text_of(path), "old");
    CHECK_EQUAL(files_in(folder), 1);
}

static sdlf_status attempt(void *path)
{
    return write_text(path, "new");
}

static void every_allocation(void)
{
    const char *folder = make_folder("allocations");
    test_every_allocation("atomic_file", attempt, (void *)test_path("allocations/file"));
    CHECK_EQUAL(files_in(folder), 1);
}

int main(void)
{
    RUN(writes_and_replaces);
    RUN(path_without_a_folder);
    RUN(abandoned_leaves_the_old);
    RUN(link_stays_a_link);
    RUN(link_to_nothing_stays_a_link);
    RUN(links_in_a_circle_are_refused);
    RUN(too_many_links_are_refused);
    RUN(open_pipes_are_written_to);
    RUN(asks_before);
    RUN(refuses);
    RUN(device_is_written_to_and_stays);
    RUN(unwritable_folder);
    RUN(protected_file);
    RUN(limit_on_file_size);
    RUN(every_allocation);
    return test_summary();
}
