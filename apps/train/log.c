/* SPDX-License-Identifier: MIT */
/* The log of a training run. */
#include "apps/train/log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sdlf/version.h>

#include "apps/arguments/effective.h"
#include "apps/output/evaluation.h"
#include "apps/output/terminal.h"
#include "apps/output/trainable.h"
#include "apps/system/memory.h"

/* True if the file's last line, at `whole`, is a complete record that lacks only its newline. */
static bool is_record(FILE *file, off_t whole)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length = fseeko(file, whole, SEEK_SET) == 0 ? getline(&line, &room, file) : -1;
    json_t *record = length > 0 ? json_loadb(line, (size_t)length, 0, NULL) : NULL;
    bool found = record != NULL;
    json_decref(record);
    free(line);
    return found;
}

/* True if the file begins as a log does. */
static bool begins_as_log(FILE *file)
{
    char begun[16] = "";
    rewind(file);
    size_t length = fread(begun, 1, sizeof begun - 1, file);
    begun[length] = '\0';
    return strncmp(begun, "{\"event\"", strlen("{\"event\"")) == 0;
}

/* Repairs the last line after a process was killed: a partial line is cut off; a complete record without a newline gets its
 * newline. */
static bool mend_last_line(const char *path, FILE *file)
{
    off_t size = 0, whole = 0;
    for (int c; (c = getc(file)) != EOF;) {
        size++;
        if (c == '\n') whole = size;
    }
    if (ferror(file) || size == whole || !begins_as_log(file)) return true;
    if (!is_record(file, whole)) return truncate(path, whole) == 0;
    FILE *more = fopen(path, "a");
    bool written = more != NULL && putc('\n', more) != EOF;
    return more != NULL && fclose(more) == 0 && written;
}

static void mend_log(const char *path)
{
    struct stat at;
    FILE *file = stat(path, &at) == 0 && S_ISREG(at.st_mode) ? fopen(path, "r") : NULL;
    if (!file) return;
    if (!mend_last_line(path, file))
        terminal_warning("train", "the log %s ends with a partial line, which could not be removed (%s)", path,
                         strerror(errno));
    fclose(file);
}

/* Renames a log of an earlier run to FILE.1, or the first number that is free. */
static sdlf_status rename_older(const char *path)
{
    enum { MOST = 10000 };
    struct stat at;
    if (stat(path, &at) != 0 || !S_ISREG(at.st_mode) || at.st_size == 0) return SDLF_OK;
    for (int i = 1; i < MOST; i++) {
        char *older = memory_print("%s.%d", path, i);
        bool free_name = lstat(older, &at) != 0 && errno == ENOENT;
        bool moved = free_name && rename(path, older) == 0;
        if (moved) terminal_warning("train", "the log %s of an earlier run is kept as %s", path, older);
        free(older);
        if (moved) return SDLF_OK;
        if (free_name) break;
    }
    return sdlf_fail(SDLF_ERROR_IO, "the log %s of an earlier run cannot be kept as %s.1: %s", path, path,
                     strerror(errno));
}

sdlf_status training_log_open(training_log *log, const char *path, bool append, int64_t every)
{
    *log = (training_log){.path = path, .every = every};
    if (!path) return SDLF_OK;
    if (append) mend_log(path);
    sdlf_status status = append ? SDLF_OK : rename_older(path);
    if (status != SDLF_OK) return status;
    log->file = fopen(path, append ? "a" : "w");
    if (log->file && append) log->whole = fseeko(log->file, 0, SEEK_END) == 0 ? ftello(log->file) : 0;
    if (log->file) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_IO, "the log %s cannot be written: %s", path, strerror(errno));
}

/* Cuts off the rest of a line that could not be written, so that the next one starts on a line of its own. The file is reopened: the
 * stream's buffer may hold the rest of that line. Pipes are left unchanged. */
static bool cut_torn_line(training_log *log)
{
    struct stat at;
    if (log->torn && stat(log->path, &at) == 0 && S_ISREG(at.st_mode)) {
        struct stat ours = {.st_ino = 0};
        bool same =
            log->file && fstat(fileno(log->file), &ours) == 0 && ours.st_dev == at.st_dev && ours.st_ino == at.st_ino;
        if (log->file) fclose(log->file); /* this may write part of that line */
        bool cut =
            !same || stat(log->path, &at) != 0 || at.st_size <= log->whole || truncate(log->path, log->whole) == 0;
        log->file = cut ? fopen(log->path, "a") : NULL;
    }
    if (log->file) log->torn = false;
    return log->file != NULL;
}

void training_log_close(training_log *log)
{
    if (log->path) cut_torn_line(log);
    if (log->file) fclose(log->file);
    log->file = NULL;
}

/* A failing log must not lose hours of training: it is reported once. */
static void write_line(training_log *log, json_t *line)
{
    const bool ready = cut_torn_line(log);
    if (ready && json_print_line(line, log->file)) {
        log->whole = ftello(log->file);
        return;
    }
    if (!ready) json_decref(line);
    log->torn = true;
    if (log->failed) return;
    log->failed = true;
    terminal_warning("train", "the log %s could not be written (%s); training goes on", log->path, strerror(errno));
}

json_t *training_log_start_json(const training_log_start *start)
{
    json_t *line = json_pack("{ss ss so so so}", "event", "start", "version", SDLF_VERSION, "network",
                             json_text(sdlf_model_name(start->model)), "data", json_text(start->train->name), "sample",
                             json_shape(sdlf_shape_without(start->train->samples.shape, 0)));
    json_t *more = json_pack("{sI sI sI sI so so}", "train", (json_int_t)start->train->samples.shape.dim[0], "test",
                             (json_int_t)(start->test ? start->test->samples.shape.dim[0] : 0), "parameters",
                             (json_int_t)sdlf_model_trainable_count(start->model), "memory", (json_int_t)start->memory,
                             "checkpoint", json_text(start->options->checkpoint), "own_options", json_text(start->own));
    if (line) json_object_update_new(line, more);
    if (line) arguments_add_json(line, start->usage, start->settings);
    if (line) json_object_set_new(line, "trained", trainable_json(start->model));
    char *command = arguments_command(start->usage, start->settings);
    if (line) json_object_set_new(line, "command", json_text(command));
    free(command);
    return line;
}

void training_log_begin(training_log *log, const training_log_start *start)
{
    log->model = start->model;
    if (log->path) write_line(log, training_log_start_json(start));
}

json_t *training_log_line(const sdlf_progress *now)
{
    bool epoch = now->event == SDLF_PROGRESS_EPOCH;
    json_t *line =
        json_pack("{ss si si sI sI sI so so so so}", "event", epoch ? "epoch" : "step", "epoch", now->epoch, "epochs",
                  now->epochs, "step", (json_int_t)now->step, "steps", (json_int_t)now->steps, "samples",
                  (json_int_t)now->samples, "loss", json_number(now->loss), "accuracy", json_number(now->accuracy),
                  "seconds", json_number(now->seconds), "learning_rate", json_number(now->learning_rate));
    if (line && epoch) {
        char weights[16];
        snprintf(weights, sizeof weights, "%08x", now->weights);
        json_object_update_new(line,
                               json_pack("{so so so ss sb}", "test_loss", json_number(now->test_loss), "test_accuracy",
                                         json_number(now->test_accuracy), "test_seconds",
                                         json_number(now->test_seconds), "weights", weights, "best", (int)now->best));
        if (now->loss_scale > 0)
            json_object_update_new(line, json_pack("{so sI}", "loss_scale", json_number(now->loss_scale),
                                                   "skipped_steps", (json_int_t)now->skipped_steps));
        if (isfinite(now->test_iou)) json_object_set_new(line, "test_iou", json_number(now->test_iou));
        if (isfinite(now->test_error)) json_object_set_new(line, "test_error", json_number(now->test_error));
    }
    if (line && isfinite(now->waited)) json_object_set_new(line, "waited", json_number(now->waited));
    return line;
}

void training_log_progress(training_log *log, const sdlf_progress *now)
{
    if (!log->path) return;
    if (now->event == SDLF_PROGRESS_UNSAVED) {
        write_line(log, json_pack("{ss si so}", "event", "unsaved", "epoch", now->epoch, "message",
                                  json_text(sdlf_error_message())));
        return;
    }
    if (now->event != SDLF_PROGRESS_EPOCH && (log->every == 0 || now->step % log->every != 0)) return;
    write_line(log, training_log_line(now));
}

void training_log_end(training_log *log, sdlf_status status, const sdlf_evaluation *evaluation)
{
    if (!log->path) return;
    json_t *line = json_pack("{ss ss}", "event", "end", "status", sdlf_status_name(status));
    if (line && status != SDLF_OK) json_object_set_new(line, "message", json_text(sdlf_error_message()));
    labels names = {.path = NULL};
    if (evaluation) labels_of_model(&names, log->model);
    if (line && evaluation) json_object_set_new(line, "test", evaluation_json(evaluation, &names));
    labels_release(&names);
    write_line(log, line);
}
