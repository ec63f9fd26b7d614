/* SPDX-License-Identifier: MIT */
/* A TensorBoard event file: scalars over steps, images, histograms, hyper-parameters and a graph. It is written without
 * TensorFlow, one record at a time, each flushed, so that TensorBoard can follow.
 *
 * A failed write does not end the run: it is reported once on standard error, and nothing more is
 * written. */
#ifndef SDLF_APPS_TENSORBOARD_EVENTS_H
#define SDLF_APPS_TENSORBOARD_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <sdlf/model.h>

#include "apps/pictures/png.h"

typedef struct event_file event_file;

/* Create the folder, with its parents, and a new file in it:
 * events.out.tfevents.TIME.HOST.PROCESS.sdlf. The caller closes it.
 * Errors: SDLF_ERROR_IO with the path. */
sdlf_status event_file_open(event_file **file, const char *folder, const char *command);
void event_file_close(event_file *file); /* accepts NULL */

/* Write the value of `tag` at `step`. NaN, which stands for an unknown value, is left out. */
void event_scalar(event_file *file, const char *tag, int64_t step, double value);
void event_image(event_file *file, const char *tag, int64_t step, const png_picture *picture);

/* Write a histogram of `count` values over equal intervals from the least to the greatest; values that are not finite
 * are left out. */
void event_histogram(event_file *file, const char *tag, int64_t step, const float *values, int64_t count);

/* Write the hyper-parameters: an object of numbers, strings and booleans (others are left out), and the NULL-terminated
 * tags of the metrics to compare runs by. Once, before any value. event_ended writes how the run ended. */
void event_parameters(event_file *file, const json_t *parameters, const char *const *metrics);
void event_ended(event_file *file, bool success);

/* Write the network graph: one node a layer, with its type and the shapes of its outputs for a batch of 1. */
void event_graph(event_file *file, const sdlf_model *model);

#endif
