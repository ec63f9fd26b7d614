/* SPDX-License-Identifier: MIT */
/* Atomic files on full disks and over mounted files. */
#include "testing.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework/formats/atomic_texts.h"

/* Injected failures: the test is linked so that its functions replace the system's. 0: none. */
static int rename_error, ftruncate_error, fallocate_error;

int __real_rename(const char *old, const char *new);
int __wrap_rename(const char *old, const char *new);
int __real_ftruncate(int file, off_t size);
int __wrap_ftruncate(int file, off_t size);
int __real_posix_fallocate(int file, off_t from, off_t size);
int __wrap_posix_fallocate(int file, off_t from, off_t size);

int __wrap_rename(const char *old, const char *new)
{
    if (rename_error == 0) return __real_rename(old, new);
    errno = rename_error;
    return -1;
}

int __wrap_ftruncate(int file, off_t size)
{
    if (ftruncate_error == 0) return __real_ftruncate(file, size);
    errno = ftruncate_error;
    return -1;
}

/* Runs out of space after a partial reservation. */
int __wrap_posix_fallocate(int file, off_t from, off_t size)
{
    if (fallocate_error == 0) return __real_posix_fallocate(file, from, size);
    CHECK(__real_ftruncate(file, from + size) == 0);
    return fallocate_error;
}

/* Enter a private mount namespace, and mount a file system of 64 KiB at `folder`. */
static bool small_disk(const char *folder)
{
    return unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", folder, "tmpfs", 0, "size=65536") == 0;
}

/* The disk is half full of the old file. */
static int fill_a_disk(void *folder)
{
    if (!small_disk(folder) || chdir(folder) != 0) return 77;
    static char big[40000];
    memset(big, 'x', sizeof big - 1);
    if (write_text("file", big) != SDLF_OK) return 1;
    if (!fails_with(write_text("file", big), "No space left on device")) return 1;
    struct stat information;
    return stat("file", &information) != 0 || information.st_size != sizeof big - 1 || files_in(".") != 1;
}

static void full_disk(void)
{
    in_child(fill_a_disk, (void *)make_folder("disk"));
}

/* A write in place fails midway: the complete new file is kept, and its name is reported. */
static void keeps_the_new(const char *path, const char *text, const char *reason)
{
    CHECK_FAILS(write_text(path, text), SDLF_ERROR_IO, "cannot write over");
    CHECK(strstr(sdlf_error_message(), reason) != NULL);
    const char *kept = strstr(sdlf_error_message(), "what it should hold is in '");
    char name[512] = "";
    if (CHECK(kept != NULL)) sscanf(kept, "what it should hold is in '%511[^']", name);
    CHECK_TEXT(text_of(name), text);
    CHECK(unlink(name) == 0);
}

static void mount_point_is_written_in_place(void)
{
    const char *folder = make_folder("mounted"), *path = test_path("mounted/file");
    CHECK_OK(write_text(path, "old, and longer"));
    struct stat before, after;
    CHECK(stat(path, &before) == 0);
    rename_error = EBUSY; /* the result of renaming over a mount point */
    CHECK_OK(write_text(path, "new"));
    CHECK_TEXT(text_of(path), "new");
    CHECK_OK(write_text(path, "newer, and longer again"));
    CHECK_TEXT(text_of(path), "newer, and longer again");
    CHECK(stat(path, &after) == 0 && after.st_ino == before.st_ino);
    CHECK_EQUAL(files_in(folder), 1);

    fallocate_error = ENOSPC;
    const char *longest = "newer, longer than all that were before";
    CHECK_FAILS(write_text(path, longest), SDLF_ERROR_IO, "No space left on device");
    CHECK_TEXT(text_of(path), "newer, and longer again");
    CHECK(stat(path, &after) == 0 && after.st_size == (off_t)strlen("newer, and longer again"));
    CHECK_EQUAL(files_in(folder), 1);
    ftruncate_error = EIO; /* reserved space cannot be released */
    keeps_the_new(path, longest, "No space left on device");
    fallocate_error = 0;
    keeps_the_new(path, "newest", "Input/output error"); /* now the last operation on the old file fails */
    ftruncate_error = 0;
    CHECK_EQUAL(files_in(folder), 1);

    CHECK_OK(write_text(path, "old"));
    rename_error = EPERM; /* any other error fails, and keeps the old file */
    CHECK_FAILS(write_text(path, "new"), SDLF_ERROR_IO, "cannot replace");
    rename_error = 0;
    CHECK_TEXT(text_of(path), "old");
    CHECK_EQUAL(files_in(folder), 1);
}

/* A file on another, nearly full file system, mounted over our file. */
static int fill_a_mounted_file(void *folder)
{
    const char *disk = test_path("mount/disk"), *path = test_path("mount/file"), *there = test_path("mount/disk/file");
    if (!small_disk(disk)) return 77;
    static char big[60000];
    memset(big, 'x', 40000);
    if (write_text(test_path("mount/disk/filler"), big) != SDLF_OK || write_text(there, "old") != SDLF_OK) return 1;
    if (mount(there, path, NULL, MS_BIND, NULL) != 0) return 77;
    if (write_text(path, "new") != SDLF_OK || strcmp(text_of(there), "new") != 0) return 1;
    memset(big, 'y', 50000);
    if (!fails_with(write_text(path, big), "No space left on device")) return 1;
    return strcmp(text_of(path), "new") != 0 || files_in(folder) != 2;
}

static void mounted_file(void)
{
    const char *folder = make_folder("mount");
    make_folder("mount/disk");
    CHECK_OK(write_text(test_path("mount/file"), "below"));
    in_child(fill_a_mounted_file, (void *)folder);
    CHECK_TEXT(text_of(test_path("mount/file")), "below");
}

int main(void)
{
    RUN(full_disk);
    RUN(mount_point_is_written_in_place);
    RUN(mounted_file);
    return test_summary();
}
