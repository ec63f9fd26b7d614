/* SPDX-License-Identifier: MIT */
/* The owner of an atomic file that replaces another, and the effect on that file's other hard links. */
#include "testing.h"

#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework/formats/atomic_file.h"
#include "framework/formats/atomic_texts.h"

enum { OWNER = 1234, GROUP = 5678, NOBODY = 65534 };

static bool is(const char *path, unsigned owner, unsigned group, unsigned mode)
{
    struct stat at;
    if (stat(path, &at) != 0) return false;
    if (at.st_uid == owner && at.st_gid == group && (at.st_mode & 0777) == mode) return true;
    printf("%s: owner %u, group %u, mode %o\n", path, (unsigned)at.st_uid, (unsigned)at.st_gid, at.st_mode & 0777u);
    return false;
}

/* Root may change the owner of files. */
static void owner_is_kept(void)
{
    const char *path = test_path("owned");
    CHECK_OK(write_text(path, "old"));
    if (chown(path, OWNER, GROUP) != 0) {
        test_skip("this process may not give files away");
        return;
    }
    CHECK(chmod(path, 0640) == 0);
    CHECK_OK(write_text(path, "new"));
    CHECK_TEXT(text_of(path), "new");
    CHECK(is(path, OWNER, GROUP, 0640));
}

/* Other users may change a file's group to one of theirs. */
static int write_as_member(void *path)
{
    const gid_t group = GROUP;
    if (setgroups(1, &group) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0) return 77;
    return write_text(path, "new") != SDLF_OK || !is(path, NOBODY, GROUP, 0676);
}

/* Users outside the group cannot keep it: the file's new group then gets only the permissions of everybody. */
static int write_as_stranger(void *path)
{
    if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0) return 77;
    return write_text(path, "new") != SDLF_OK || !is(path, NOBODY, NOBODY, 0666);
}

static void owner_that_cannot_be_kept(void)
{
    const char *folder = make_folder("shared"), *path = test_path("shared/file");
    if (geteuid() != 0) {
        test_skip("this process may not become another user's");
        return;
    }
    CHECK(chmod(test_path("."), 0755) == 0 && chmod(folder, 0777) == 0);
    static int (*const writers[])(void *) = {write_as_member, write_as_stranger};
    for (int i = 0; i < 2; i++) {
        unlink(path);
        CHECK_OK(write_text(path, "old"));
        CHECK(chown(path, OWNER, GROUP) == 0 && chmod(path, 0676) == 0);
        in_child(writers[i], (void *)path);
        CHECK_TEXT(text_of(path), "new");
        CHECK_EQUAL(files_in(folder), 1);
    }
}

/* The file being written is never readable by more users than the old file was. */
static void nobody_reads_along(void)
{
    const char *folder = make_folder("secret"), *path = test_path("secret/file");
    CHECK_OK(write_text(path, "old"));
    CHECK(chmod(path, 0600) == 0);
    atomic_file file;
    CHECK_OK(atomic_file_open(&file, path));
    CHECK(is(file.temporary, geteuid(), getegid(), 0600));
    atomic_file_abandon(&file);
    CHECK_EQUAL(files_in(folder), 1);
}

/* The other names of a file keep the complete old content. */
static void hard_links_keep_the_old(void)
{
    const char *folder = make_folder("links"), *path = test_path("links/file"), *other = test_path("links/other");
    CHECK_OK(write_text(path, "old"));
    CHECK(link(path, other) == 0);
    CHECK_OK(write_text(path, "new"));
    CHECK_TEXT(text_of(path), "new");
    CHECK_TEXT(text_of(other), "old");
    CHECK_EQUAL(files_in(folder), 2);
}

int main(void)
{
    RUN(owner_is_kept);
    RUN(owner_that_cannot_be_kept);
    RUN(nobody_reads_along);
    RUN(hard_links_keep_the_old);
    return test_summary();
}
