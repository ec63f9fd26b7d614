/* SPDX-License-Identifier: MIT */
/* Names of atomic files: the longest possible ones, and those of their temporary files. */
#include "testing.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sdlf/formats.h>

#include "framework/formats/atomic_file.h"
#include "framework/formats/atomic_texts.h"

/* FOLDER/xxx..., with a name of that many bytes. */
static const char *long_path(const char *folder, int bytes)
{
    static char path[PATH_MAX];
    char name[NAME_MAX + 2];
    memset(name, 'x', (size_t)bytes);
    name[bytes] = '\0';
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void long_names(void)
{
    const char *folder = make_folder("long");
    for (int bytes = 90; bytes <= NAME_MAX; bytes += bytes < 100 ? 1 : 5) {
        const char *path = long_path(folder, bytes);
        CHECK_OK(sdlf_can_write_file(path));
        CHECK_OK(write_text(path, "one"));
        CHECK_OK(write_text(path, "two"));
        CHECK_TEXT(text_of(path), "two");
        CHECK(unlink(path) == 0);
        CHECK_EQUAL(files_in(folder), 0);
    }
    const char *path = long_path(folder, NAME_MAX + 1); /* is reported before writing */
    CHECK_FAILS(sdlf_can_write_file(path), SDLF_ERROR_IO, "File name too long");
    atomic_file file;
    CHECK_FAILS(atomic_file_open(&file, path), SDLF_ERROR_IO, "File name too long");
    CHECK_EQUAL(files_in(folder), 0);
}

/* The temporary name contains the beginning of a long name, in whole characters, and a part that distinguishes it from
 * others with the same beginning. */
static void temporary_names_of_long_ones(void)
{
    make_folder("cut");
    char path[NAME_MAX + 512], name[NAME_MAX + 1] = "a", stem[128] = "";
    for (int i = 0; i < 60; i++) strcat(name, "\xE2\x82\xAC"); /* a euro sign */
    snprintf(path, sizeof path, "%s/%s", test_path("cut"), name);
    atomic_file file;
    CHECK_OK(atomic_file_open(&file, path));
    const char *temporary = strrchr(file.temporary, '/') + 1, *infix = strstr(temporary, ".sdlf-tmp-");
    if (CHECK(infix != NULL && infix - temporary == 1 + 26 * 3 + 1 + 16)) {
        CHECK(strncmp(temporary, name, 1 + 26 * 3) == 0 && temporary[1 + 26 * 3] == '-');
        snprintf(stem, sizeof stem, "%.*s", (int)(infix - temporary), temporary);
    }
    atomic_file_abandon(&file);

    char leftover[512];
    snprintf(leftover, sizeof leftover, "%s/%s.sdlf-tmp-1-0", test_path("cut"), stem);
    test_write_file(leftover, "half", 4);
    path[strlen(path) - 1] ^= 1; /* another name with the same beginning; not valid text, which file systems accept */
    CHECK_OK(write_text(path, "other"));
    CHECK_TEXT(text_of(leftover), "half");
    path[strlen(path) - 1] ^= 1;
    CHECK_OK(write_text(path, "text"));
    CHECK(access(leftover, F_OK) != 0);
    CHECK_EQUAL(files_in(test_path("cut")), 2);
}

/* The check creates no file that a process killed during it would leave. */
static void asking_makes_no_file(void)
{
    const char *folder = make_folder("asked");
    int nameless = open(folder, O_WRONLY | O_TMPFILE, 0600), watch = inotify_init1(IN_NONBLOCK);
    if (nameless < 0 || watch < 0) {
        test_skip("no files without names, or nothing to watch a folder with");
        return;
    }
    close(nameless);
    CHECK(inotify_add_watch(watch, folder, IN_CREATE | IN_DELETE | IN_MOVED_TO) >= 0);
    char events[4096];
    CHECK_OK(sdlf_can_write_file(test_path("asked/file")));
    CHECK(read(watch, events, sizeof events) < 0);
    CHECK_OK(write_text(test_path("asked/file"), "text"));
    CHECK(read(watch, events, sizeof events) > 0); /* the watch works */
    CHECK_OK(sdlf_can_write_file(test_path("asked/file")));
    CHECK(read(watch, events, sizeof events) < 0);
    close(watch);
}

int main(void)
{
    RUN(long_names);
    RUN(temporary_names_of_long_ones);
    RUN(asking_makes_no_file);
    return test_summary();
}
