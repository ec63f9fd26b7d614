/* Files that appear whole or not at all: permissions, links, mount points, every kind of refusal, and a process killed at any
 * moment. */
#include "testing.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "framework/formats/atomic_file.h"

/* Failures to order: the test is linked so that these stand before the system's. 0: none. */
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

/* Runs out of room behind what it has reserved. */
int __wrap_posix_fallocate(int file, off_t from, off_t size)
{
    if (fallocate_error == 0) return __real_posix_fallocate(file, from, size);
    CHECK(__real_ftruncate(file, from + size) == 0);
    return fallocate_error;
}

static sdlf_status write_text(const char *path, const char *text)
{
    atomic_file file;
    sdlf_status status = atomic_file_open(&file, path);
    if (status != SDLF_OK) return status;
    status = atomic_file_write(&file, text, strlen(text));
    if (status == SDLF_OK) return atomic_file_commit(&file);
    atomic_file_abandon(&file);
    return status;
}

/* The file's text, in static storage; NULL if there is no file. */
static const char *text_of(const char *path)
{
    static char text[4096];
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static int files_in(const char *folder)
{
    DIR *list = opendir(folder);
    if (list == NULL) return -1;
    int count = 0;
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

/* A fresh folder below the test's own. */
static const char *make_folder(const char *name)
{
    const char *folder = test_path(name);
    CHECK(mkdir(folder, 0755) == 0);
    return folder;
}

/* Run a check in a process of its own, whose limits and rights it may change; it exits with 0 for success, 77 to skip. */
static void in_child(int (*check)(void *), void *argument)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(check(argument));
    int result = -1;
    CHECK(child > 0 && waitpid(child, &result, 0) == child);
    if (WIFEXITED(result) && WEXITSTATUS(result) == 77)
        test_skip("this process may not set the scene");
    else
        CHECK_EQUAL(result, 0);
}

static bool fails_with(sdlf_status status, const char *reason)
{
    if (status == SDLF_ERROR_IO && strstr(sdlf_error_message(), reason) != NULL) return true;
    printf("status %s, message '%s', expected '%s'\n", sdlf_status_name(status), sdlf_error_message(), reason);
    fflush(stdout);
    return false;
}

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

/* Links to files that are yet to be written, over several, relative and absolute ones. */
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

static void links_in_a_circle_are_refused(void)
{
    const char *folder = make_folder("circle"), *a = test_path("circle/a"), *b = test_path("circle/b");
    CHECK(symlink("b", a) == 0 && symlink("a", b) == 0);
    CHECK_FAILS(write_text(a, "x"), SDLF_ERROR_IO, "cannot write");
    CHECK_FAILS(write_text(a, "x"), SDLF_ERROR_IO, "Too many levels of symbolic links");
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

/* Mounts of our own from here on, and a file system of 64 KiB at `folder`. */
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

/* A write in place fails half way: the whole new file stays, and its name is told. */
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
    rename_error = EBUSY; /* what renaming over a mount point gives */
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
    ftruncate_error = EIO; /* what was reserved cannot be given back */
    keeps_the_new(path, longest, "No space left on device");
    fallocate_error = 0;
    keeps_the_new(path, "newest", "Input/output error"); /* now the last thing that is done to the old file fails */
    ftruncate_error = 0;
    CHECK_EQUAL(files_in(folder), 1);

    CHECK_OK(write_text(path, "old"));
    rename_error = EPERM; /* every other reason is a failure, and leaves the old */
    CHECK_FAILS(write_text(path, "new"), SDLF_ERROR_IO, "cannot replace");
    rename_error = 0;
    CHECK_TEXT(text_of(path), "old");
    CHECK_EQUAL(files_in(folder), 1);
}

/* A file of another, nearly full file system, mounted over a file of ours. */
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

enum { BLOCK = 1 << 20 };

/* Replace the file by a megabyte of a's, of b's, of a's ... for ever. */
static void write_for_ever(const char *path)
{
    static char block[BLOCK];
    for (char letter = 'a';; letter = letter == 'a' ? 'b' : 'a') {
        memset(block, letter, sizeof block);
        atomic_file file;
        if (atomic_file_open(&file, path) != SDLF_OK) _exit(1);
        for (size_t done = 0; done < sizeof block; done += 4096)
            if (atomic_file_write(&file, block + done, 4096) != SDLF_OK) _exit(1);
        if (atomic_file_commit(&file) != SDLF_OK) _exit(1);
    }
}

static bool is_whole(const char *path)
{
    static char block[BLOCK + 1];
    FILE *file = fopen(path, "rb");
    if (file == NULL) return false;
    size_t size = fread(block, 1, sizeof block, file);
    fclose(file);
    bool whole = size == BLOCK;
    for (size_t i = 1; i < size && whole; i++) whole = block[i] == block[0];
    return whole;
}

static void killed_while_writing(void)
{
    make_folder("killed");
    const char *path = test_path("killed/file");
    static char block[BLOCK];
    memset(block, 'a', sizeof block);
    test_write_file(path, block, sizeof block);
    uint32_t random = 12345;
    for (int round = 0; round < 30; round++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) write_for_ever(path);
        random = random * 1664525 + 1013904223;
        struct timespec moment = {.tv_nsec = 1000000 + random % 20000000};
        nanosleep(&moment, NULL);
        CHECK(child > 0 && kill(child, SIGKILL) == 0);
        int result = 0;
        CHECK(waitpid(child, &result, 0) == child);
        CHECK(WIFSIGNALED(result)); /* it did not stop by itself */
        CHECK(is_whole(path));
    }
    CHECK_OK(write_text(path, "after all")); /* leftovers are in nobody's way */
    CHECK_TEXT(text_of(path), "after all");
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
    RUN(refuses);
    RUN(device_is_written_to_and_stays);
    RUN(unwritable_folder);
    RUN(protected_file);
    RUN(limit_on_file_size);
    RUN(full_disk);
    RUN(mount_point_is_written_in_place);
    RUN(mounted_file);
    RUN(killed_while_writing);
    RUN(every_allocation);
    return test_summary();
}
