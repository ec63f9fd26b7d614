/* SPDX-License-Identifier: MIT */
/* An event file of TensorBoard's: numbers over steps, pictures, histograms, hyper-parameters and a graph. Written
 * without TensorFlow, a record at a time, each flushed, so that TensorBoard can follow.
 *
 * A file that cannot be written is no reason to lose a run: it is said once, on standard error, and nothing more is
 * written. */
#ifndef SDLF_APPS_TENSORBOARD_EVENTS_H
#define SDLF_APPS_TENSORBOARD_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <sdlf/model.h>

#include "apps/pictures/png.h"

typedef struct event_file event_file;

/* Make the folder, with those above it, and a new file in it: events.out.tfevents.TIME.HOST.PROCESS.sdlf. The file is
 * the caller's.
 * Errors: SDLF_ERROR_IO with the path. */
sdlf_status event_file_open(event_file **file, const char *folder, const char *command);
void event_file_close(event_file *file); /* accepts NULL */

/* The value of `tag` at `step`. NaN, which stands for what is not known, is left out. */
void event_scalar(event_file *file, const char *tag, int64_t step, double value);
void event_image(event_file *file, const char *tag, int64_t step, const png_picture *picture);

/* How `count` values are spread, over equal intervals from the least to the greatest; those that are not finite are
 * left out. */
void event_histogram(event_file *file, const char *tag, int64_t step, const float *values, int64_t count);

/* Hyper-parameters: an object of numbers, texts and booleans (others are left out), and the tags of the figures that
 * tell runs apart, NULL-terminated. Once, before any value; and how it ended. */
void event_parameters(event_file *file, const json_t *parameters, const char *const *metrics);
void event_ended(event_file *file, bool success);

/* The network: a node a layer, with its type and the shapes of its outputs for a batch of 1. */
void event_graph(event_file *file, const sdlf_model *model);

#endif
