/* SPDX-License-Identifier: MIT */
/* Atomic files whose writers are killed, or write concurrently. */
#include "testing.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "framework/formats/atomic_file.h"
#include "framework/formats/atomic_texts.h"

enum { BLOCK = 1 << 20 };

/* Replace the file alternately with a megabyte of a's and of b's, for ever. */
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
    const char *folder = make_folder("killed"), *path = test_path("killed/file");
    static char block[BLOCK];
    memset(block, 'a', sizeof block);
    test_write_file(path, block, sizeof block);
    uint32_t random = 12345;
    int leftovers = 0; /* how often a temporary file existed when its process was killed */
    for (int round = 0; round < 30 || leftovers == 0;
         round++) { /* on a busy machine many are killed before they write */
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
        leftovers += files_in(folder) > 1;
    }
    CHECK_OK(write_text(path, "after all"));
    CHECK_TEXT(text_of(path), "after all");
    CHECK_EQUAL(files_in(folder), 1);
}

/* No writer removes files that others are writing, and none fails. */
static void several_write_at_once(void)
{
    enum { WRITERS = 4 };
    const char *folder = make_folder("several"), *path = test_path("several/file");
    static char block[BLOCK];
    memset(block, 'a', sizeof block);
    test_write_file(path, block, sizeof block);
    pid_t child[WRITERS];
    fflush(stdout);
    for (int i = 0; i < WRITERS; i++)
        if ((child[i] = fork()) == 0) write_for_ever(path);
    nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
    for (int i = 0; i < WRITERS; i++) {
        int result = 0;
        CHECK(child[i] > 0 && kill(child[i], SIGKILL) == 0);
        CHECK(waitpid(child[i], &result, 0) == child[i] && WIFSIGNALED(result));
    }
    CHECK(is_whole(path));
    CHECK_OK(write_text(path, "after all"));
    CHECK_EQUAL(files_in(folder), 1);
}

/* The next successful write removes a leftover; a failed one keeps it, and files with similar names are not
 * leftovers. */
static void leftovers_are_removed(void)
{
    static const char *const names[] = {"file.sdlf-tmp-1",    "file.sdlf-tmp-1-",      "file.sdlf-tmp--2",
                                        "file.sdlf-tmp-1-2x", "file.sdlf-tmp-notes-1", "other.sdlf-tmp-1-2",
                                        "xfile.sdlf-tmp-1-2", "file.sdlf-tmp-1-2.gz",  "file.sdlf-tmp-1-2-3",
                                        "file.tmp",           "fil.sdlf-tmp-1-2",      "file.tmp-2024-11"};
    enum { NAMES = sizeof names / sizeof names[0] };
    char folder[256], path[256], name[64]; /* more paths than test_path keeps */
    snprintf(folder, sizeof folder, "%s", make_folder("leftovers"));
    snprintf(path, sizeof path, "%s", test_path("leftovers/file"));
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "leftovers/%s", names[i]);
        test_write_file(test_path(name), "mine", 4);
    }
    make_folder("leftovers/file.sdlf-tmp-5-0"); /* nor are a folder and a link */
    CHECK(symlink("file.tmp", test_path("leftovers/file.sdlf-tmp-6-0")) == 0);
    test_write_file(test_path("leftovers/file.sdlf-tmp-999999-0"), "half", 4);
    test_write_file(test_path("leftovers/file.sdlf-tmp-1-12"), "half", 4);

    atomic_file live, failed;
    CHECK_OK(atomic_file_open(&live, path));
    CHECK_OK(atomic_file_write(&live, "live", 4));
    CHECK_OK(atomic_file_open(&failed, path));
    atomic_file_abandon(&failed);
    CHECK_EQUAL(files_in(folder), NAMES + 2 + 2 + 1);
    CHECK_OK(write_text(path, "text"));
    CHECK_EQUAL(files_in(folder), NAMES + 2 + 1 + 1);
    CHECK_OK(atomic_file_commit(&live)); /* it was being written, and is complete */
    CHECK_TEXT(text_of(path), "live");
    CHECK_EQUAL(files_in(folder), NAMES + 2 + 1);
}

int main(void)
{
    RUN(killed_while_writing);
    RUN(several_write_at_once);
    RUN(leftovers_are_removed);
    return test_summary();
}
