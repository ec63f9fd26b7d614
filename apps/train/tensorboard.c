/* SPDX-License-Identifier: MIT */
/* See tensorboard.h. */
#include "apps/train/tensorboard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/output/terminal.h"
#include "apps/pictures/augmented_samples.h"
#include "apps/pictures/sheet.h"

enum { SAMPLES = 64 };

sdlf_status tensorboard_log_open(tensorboard_log *board, const char *folder, int64_t every, bool histograms)
{
    *board = (tensorboard_log){.every = every, .histograms = histograms};
    return folder ? sdlf_fail_context(event_file_open(&board->file, folder, "train"), "--tensorboard") : SDLF_OK;
}

void tensorboard_log_close(tensorboard_log *board)
{
    event_file_close(board->file);
    training_gradients_free(board->gradients);
    board->file = NULL;
    board->gradients = NULL;
}

/* Writes an image; one that could not be created is left out with a warning. */
static void put_picture(tensorboard_log *board, const char *tag, int64_t step, sdlf_status status, png_picture *picture)
{
    if (status != SDLF_OK) {
        terminal_warning("train", "--tensorboard: %s is left out: %s", tag, sdlf_error_message());
        return;
    }
    event_image(board->file, tag, step, picture);
    png_release(picture);
}

/* True if training augments samples at random. */
static bool augments(const sdlf_trainer_options *options)
{
    const sdlf_augmentation *a = &options->augment;
    bool colours = a->brightness > 0 || a->contrast > 0 || a->saturation > 0 || a->hue > 0;
    bool moves = a->flip || a->flip_alternate || a->crop > 0 || a->shift > 0 || a->rotate > 0 || a->scale > 0 ||
                 a->elastic > 0 || a->resized_crop > 0 || a->cutout > 0;
    return moves || colours || options->automatic.trivial || options->automatic.rand_augment > 0 ||
           options->mixing.mixup > 0 || options->mixing.cutmix > 0;
}

static void put_samples(tensorboard_log *board, const training_log_start *start)
{
    const sdlf_trainer_options *options = start->options;
    int count = augmented_count(start->train, SAMPLES);
    png_picture picture;
    if (count == 0) return;
    sdlf_loader_options loader = {.batch = count, .seed = options->seed};
    put_picture(board, "samples/first", 0, augmented_sheet(&picture, start->train, loader, 0, count), &picture);
    if (!augments(options)) return;
    loader.augment = options->augment;
    loader.mixing = options->mixing;
    loader.automatic = options->automatic;
    put_picture(board, "samples/augmented", 0, augmented_sheet(&picture, start->train, loader, 0, count), &picture);
}

/* The options of the run, without those about its output. */
static json_t *hyper_parameters(const training_log_start *start)
{
    static const char *const no_hyper_parameters[] = {"event",     "version",     "checkpoint", "own_options",
                                                      "command",   "out",         "resume",     "log",
                                                      "log_steps", "tensorboard", "histograms", "quiet",
                                                      "no_save",   "confusion",   "dry_run",    "sample",
                                                      "trained",   "serve",       "port",       "gradient_histograms"};
    json_t *line = training_log_start_json(start);
    for (size_t i = 0; i < sizeof no_hyper_parameters / sizeof *no_hyper_parameters; i++)
        json_object_del(line, no_hyper_parameters[i]);
    return line;
}

void tensorboard_log_begin(tensorboard_log *board, const training_log_start *start)
{
    static const char *const metrics[] = {"accuracy/test", "loss/test", "accuracy/train", "loss/train", NULL};
    board->model = start->model;
    if (!board->file) return;
    json_t *parameters = hyper_parameters(start);
    event_parameters(board->file, parameters, start->test ? metrics : metrics + 2);
    json_decref(parameters);
    event_graph(board->file, start->model);
    put_samples(board, start);
}

sdlf_status tensorboard_log_gradients(tensorboard_log *board, const training_log_start *start,
                                      sdlf_calculator *calculator)
{
    if (!board->file) return SDLF_OK;
    return sdlf_fail_context(
        training_gradients_create(&board->gradients, start->model, start->train, start->options, calculator),
        "--gradient-histograms");
}

/* After a failure no more are written. */
static void put_gradients(tensorboard_log *board)
{
    if (!board->gradients || training_gradients_write(board->gradients, board->file, board->step) == SDLF_OK) return;
    terminal_warning("train", "--gradient-histograms: no more are written: %s", sdlf_error_message());
    training_gradients_free(board->gradients);
    board->gradients = NULL;
}

/* Progress reports means over the epoch so far, which would jump where an epoch begins. This writes means over the steps since the
 * last time, up to the latest reported ones: a device reports only every few steps. */
static void put_training(tensorboard_log *board)
{
    const sdlf_progress none = {.samples = 0}, *last = &none, *now = &board->seen;
    if (board->written.epoch == now->epoch && board->written.samples <= now->samples) last = &board->written;
    double samples = (double)(now->samples - last->samples), seconds = now->seconds - last->seconds;
    if (samples <= 0) return; /* nothing new, or the last step of the epoch was already written */
    double before = (double)last->samples, all = (double)now->samples;
    double loss = (now->loss * all - (before > 0 ? last->loss * before : 0)) / samples;
    double accuracy = (now->accuracy * all - (before > 0 ? last->accuracy * before : 0)) / samples;
    event_scalar(board->file, "loss/train", board->step, loss);
    if (!isnan(accuracy)) event_scalar(board->file, "accuracy/train", board->step, fmin(fmax(accuracy, 0), 1));
    if (seconds > 0) event_scalar(board->file, "samples_per_second", board->step, samples / seconds);
    board->written = *now;
}

void tensorboard_log_progress(tensorboard_log *board, const sdlf_progress *now)
{
    bool epoch = now->event == SDLF_PROGRESS_EPOCH;
    board->step = (int64_t)(now->epoch - 1) * now->steps + now->step;
    if (!board->file || now->event == SDLF_PROGRESS_UNSAVED) return;
    if (now->epoch != board->seen.epoch || now->samples != board->seen.samples) board->seen = *now;
    if (!epoch && (board->every == 0 || now->step % board->every != 0)) return;
    event_file *file = board->file;
    int64_t at = board->step;
    if (at != board->rated) event_scalar(file, "learning_rate", at, (double)now->learning_rate);
    board->rated = at;
    put_training(board);
    if (!epoch) return;
    event_scalar(file, "loss/test", at, now->test_loss);
    if (now->loss_scale > 0) {
        event_scalar(file, "loss_scale", at, now->loss_scale);
        event_scalar(file, "skipped_steps", at, (double)now->skipped_steps);
    }
    if (!isnan(now->test_accuracy)) event_scalar(file, "accuracy/test", at, now->test_accuracy);
    if (isfinite(now->test_iou)) event_scalar(file, "iou/test", at, now->test_iou);
    if (isfinite(now->test_error)) event_scalar(file, "error/test", at, now->test_error);
    for (int i = 0; board->histograms && i < sdlf_model_parameter_count(board->model); i++) {
        const sdlf_parameter *parameter = sdlf_model_parameter(board->model, i);
        event_histogram(file, parameter->name, at, parameter->value.data, sdlf_tensor_count(&parameter->value));
    }
    put_gradients(board);
}

void tensorboard_log_end(tensorboard_log *board, sdlf_status status, const sdlf_evaluation *evaluation)
{
    if (!board->file) return;
    if (evaluation && evaluation->confusion) {
        png_picture picture;
        sdlf_status drawn = sheet_write_confusion(&picture, evaluation->confusion, evaluation->class_count);
        put_picture(board, "confusion", board->step, drawn, &picture);
    }
    event_ended(board->file, status == SDLF_OK);
}
