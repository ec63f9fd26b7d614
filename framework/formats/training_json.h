/* SPDX-License-Identifier: MIT */
/* Metadata of a weights file about training and its images, as JSON. */
#ifndef SDLF_FORMATS_TRAINING_JSON_H
#define SDLF_FORMATS_TRAINING_JSON_H

#include <sdlf/formats.h>

#include "framework/model_internal.h"

/* The text of a training state; free() it. Numbers survive bit for bit (NaN and infinity become NaN). Errors:
 * SDLF_ERROR_ARGUMENT (a string that is not UTF-8; a data set's name loses its invalid bytes instead),
 * SDLF_ERROR_MEMORY. */
sdlf_status training_json_write(char **text, const sdlf_training_state *state);

/* Reads it back. Messages start with `path`. Errors: SDLF_ERROR_FORMAT naming the member, SDLF_ERROR_MEMORY; `state` is
 * then unchanged. */
sdlf_status training_json_read(sdlf_training_state *state, const char *text, const char *path);

/* The same for a normalisation: {"mean": 0.1307, "scale": 3.2458}, with lists for per-channel values, and "fit": "crop"
 * or "stretch" where images are cropped or stretched. Numbers must be finite. */
sdlf_status normalization_json_write(char **text, const sdlf_normalization *normalization);
sdlf_status normalization_json_read(sdlf_normalization *normalization, const char *text, const char *path);

/* The same for class names: ["cat", "dog"]. Bytes of names that are not UTF-8 become '?'. */
sdlf_status classes_json_write(char **text, const model_classes *classes);
sdlf_status classes_json_read(model_classes *classes, const char *text, const char *path);

#endif
