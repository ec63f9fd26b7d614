/* SPDX-License-Identifier: MIT */
/* Plan files: algorithm choices as text. docs/reference/plan-files.md describes the format. */
#include <sdlf/formats.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "framework/choices.h"
#include "framework/formats/atomic_file.h"
#include "framework/formats/read_file.h"
#include "framework/formats/text.h"
#include "framework/require.h"

/* Longer files, lines and lists are rejected. */
enum { MAX_TEXT = 16 << 20, MAX_LINE = 4096, MAX_CHOICES = 1 << 15 };
enum { LOCK_TRIES = 200 }; /* of 10 ms */

static const char first_line[] = "sdlf plan file 1";

/* ---- reading ---- */

/* Strips blanks at both ends; modifies `text`. */
static char *trim(char *text)
{
    while (*text == ' ' || *text == '\t') text++;
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r", text[length - 1]) != NULL) text[--length] = '\0';
    return text;
}

typedef struct reader {
    const char *path;
    int line;
    const char *device; /* of the following lines; points into the text */
    bool begun;         /* the first line has been seen */
} reader;

/* "[cuda: NVIDIA H200, ...]" */
static sdlf_status read_device(reader *r, char *line)
{
    size_t length = strlen(line);
    if (line[length - 1] != ']')
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s:%d: expected '[CALCULATOR: DEVICE]', found '%s'", r->path, r->line,
                         text_show(line).text);
    line[length - 1] = '\0';
    r->device = trim(line + 1);
    return SDLF_OK;
}

/* "conv2d_forward float32 ... = implicit-gemm", without times. */
static sdlf_status read_choice(reader *r, sdlf_choices *choices, char *line, const char *times)
{
    char *equals = strchr(line, '=');
    if (r->device == NULL)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s:%d: expected '[CALCULATOR: DEVICE]' before the first choice, found '%s'", r->path, r->line,
                         text_show(line).text);
    if (equals == NULL || equals == line || strchr(equals + 1, '=') != NULL)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s:%d: expected 'OPERATION = ALGORITHM', found '%s'", r->path, r->line,
                         text_show(line).text);
    if (sdlf_choices_count(choices) == MAX_CHOICES)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s:%d: expected at most %d choices, found more", r->path, r->line,
                         MAX_CHOICES);
    *equals = '\0';
    const char *operation = trim(line), *algorithm = trim(equals + 1);
    if (*operation == '\0' || *algorithm == '\0' || strchr(algorithm, ' ') != NULL)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s:%d: expected the name of an algorithm after '=', found '%s'", r->path,
                         r->line, text_show(algorithm).text);
    if (choices_find(choices, r->device, operation) != NULL)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s:%d: '%s' is chosen for a second time", r->path, r->line,
                         text_show(operation).text);
    return choices_add(choices, r->device, operation, algorithm, times);
}

static sdlf_status read_line(reader *r, sdlf_choices *choices, char *line)
{
    char *comment = strchr(line, '#');
    if (comment != NULL) *comment = '\0';
    const char *times = comment != NULL ? trim(comment + 1) : "";
    line = trim(line);
    if (*line == '\0') return SDLF_OK;
    if (!r->begun) {
        r->begun = strcmp(line, first_line) == 0;
        if (r->begun) return SDLF_OK;
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s:%d: not a plan file: it should begin with '%s', and begins with '%s'",
                         r->path, r->line, first_line, text_show(line).text);
    }
    return *line == '[' ? read_device(r, line) : read_choice(r, choices, line, times);
}

/* Modifies `text`. */
static sdlf_status read_text(sdlf_choices *choices, char *text, size_t length, const char *path)
{
    reader r = {.path = path};
    if (memchr(text, '\0', length) != NULL)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: not a plan file: it holds a byte 0", path);
    for (char *line = text, *next; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL) *next++ = '\0';
        r.line++;
        if (strlen(line) > MAX_LINE)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s:%d: expected at most %d bytes in a line, found %zu", r.path, r.line,
                             MAX_LINE, strlen(line));
        sdlf_status status = read_line(&r, choices, line);
        if (status != SDLF_OK) return status;
    }
    if (!r.begun) return sdlf_fail(SDLF_ERROR_FORMAT, "%s:1: not a plan file: it is empty", path);
    return SDLF_OK;
}

sdlf_status sdlf_choices_parse(sdlf_choices *choices, const char *text, size_t length, const char *origin)
{
    SDLF_REQUIRE(choices);
    SDLF_REQUIRE(text);
    if (origin == NULL) origin = "plan file";
    char *copy = malloc(length + 1);
    sdlf_choices *read = sdlf_choices_create();
    sdlf_status status = SDLF_OK;
    if (copy == NULL || read == NULL) status = sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", origin);
    if (status == SDLF_OK) {
        memcpy(copy, text, length);
        copy[length] = '\0';
        status = read_text(read, copy, length, origin);
    }
    bool changed = choices->changed;
    for (int i = 0; status == SDLF_OK && i < read->count; i++) {
        const choice *entry = &read->entries[i];
        status = choices_add(choices, entry->device, entry->operation, entry->algorithm, entry->times);
    }
    if (status == SDLF_OK) choices->changed = changed;
    free(copy);
    sdlf_choices_free(read);
    return status;
}

sdlf_status sdlf_choices_read(sdlf_choices *choices, const char *path)
{
    SDLF_REQUIRE(choices);
    SDLF_REQUIRE(path);
    struct stat found;
    if (stat(path, &found) != 0 && errno == ENOENT) return SDLF_OK;
    char *text = NULL;
    size_t length = 0;
    sdlf_status status = read_file(&text, &length, path, MAX_TEXT);
    if (status == SDLF_OK) status = sdlf_choices_parse(choices, text, length, path);
    free(text);
    return status;
}

/* ---- writing ---- */

static sdlf_status write_text(atomic_file *file, const char *text)
{
    return atomic_file_write(file, text, strlen(text));
}

static sdlf_status write_entry(atomic_file *file, const choice *entry)
{
    const char *const parts[] = {entry->operation, " = ", entry->algorithm, *entry->times != '\0' ? "  # " : "",
                                 entry->times,     "\n"};
    sdlf_status status = SDLF_OK;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && status == SDLF_OK; i++)
        status = write_text(file, parts[i]);
    return status;
}

/* Adds entries that other processes have written there in the meantime. */
static sdlf_status merge(sdlf_choices *choices, const char *path)
{
    struct stat at;
    if (stat(path, &at) != 0 || !S_ISREG(at.st_mode) || at.st_size == 0) return SDLF_OK;
    sdlf_choices *there = sdlf_choices_create();
    sdlf_status status =
        there != NULL ? sdlf_choices_read(there, path) : sdlf_fail(SDLF_ERROR_MEMORY, "choices: out of memory");
    for (int i = 0; status == SDLF_OK && i < there->count && choices->count < MAX_CHOICES; i++) {
        const choice *entry = &there->entries[i];
        if (choices_find(choices, entry->device, entry->operation) == NULL)
            status = choices_add(choices, entry->device, entry->operation, entry->algorithm, entry->times);
    }
    sdlf_choices_free(there);
    return status;
}

/* Locks the folder in which the file is replaced against other writers, until the descriptor is closed. -1: there are
 * no locks, or another process has held it for too long; then it proceeds without. */
static int lock_folder_of(const char *path)
{
    char *target = realpath(path, NULL), *folder = strdup(target != NULL ? target : path);
    char *slash = folder != NULL ? strrchr(folder, '/') : NULL;
    if (slash != NULL) slash[slash == folder] = '\0';
    int locked = folder != NULL ? open(slash != NULL ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(folder);
    free(target);
    for (int tries = 0; locked >= 0 && flock(locked, LOCK_EX | LOCK_NB) != 0; tries++) {
        bool waits =
            errno == EWOULDBLOCK && tries < LOCK_TRIES && nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL) == 0;
        if (waits) continue;
        close(locked);
        return -1;
    }
    return locked;
}

static sdlf_status write_all(sdlf_choices *choices, const char *path)
{
    atomic_file file;
    sdlf_status status = atomic_file_open(&file, path);
    if (status != SDLF_OK) return status;
    status = write_text(&file, first_line);
    if (status == SDLF_OK) status = write_text(&file, "\n");
    for (int i = 0; i < choices->count && status == SDLF_OK; i++) {
        const char *device = choices->entries[i].device;
        if (i == 0 || strcmp(device, choices->entries[i - 1].device) != 0) {
            status = write_text(&file, "\n[");
            if (status == SDLF_OK) status = write_text(&file, device);
            if (status == SDLF_OK) status = write_text(&file, "]\n");
        }
        if (status == SDLF_OK) status = write_entry(&file, &choices->entries[i]);
    }
    if (status != SDLF_OK) {
        atomic_file_abandon(&file);
        return status;
    }
    status = atomic_file_commit(&file);
    if (status == SDLF_OK) choices->changed = false;
    return status;
}

sdlf_status sdlf_choices_write(sdlf_choices *choices, const char *path)
{
    SDLF_REQUIRE(choices);
    SDLF_REQUIRE(path);
    const int locked = lock_folder_of(path);
    sdlf_status status = merge(choices, path);
    if (status == SDLF_OK) status = write_all(choices, path);
    if (locked >= 0) close(locked);
    return status;
}
