/* SPDX-License-Identifier: MIT */
/* What the metadata of a weights file says of training and of its pictures, as JSON. */
#ifndef SDLF_FORMATS_TRAINING_JSON_H
#define SDLF_FORMATS_TRAINING_JSON_H

#include <sdlf/formats.h>

#include "framework/model_internal.h"

/* The text of a training state; free() it. Numbers survive bit for bit (NaN and infinity become NaN). Errors:
 * SDLF_ERROR_ARGUMENT (a string that is no UTF-8; a data set's name loses its other bytes instead),
 * SDLF_ERROR_MEMORY. */
sdlf_status training_json_write(char **text, const sdlf_training_state *state);

/* Read it back. `path` begins messages. Errors: SDLF_ERROR_FORMAT naming the member, SDLF_ERROR_MEMORY; `state` is
 * unchanged then. */
sdlf_status training_json_read(sdlf_training_state *state, const char *text, const char *path);

/* The same of a normalisation: {"mean": 0.1307, "scale": 3.2458}, with lists where channels have their own, and "fit":
 * "crop" or "stretch" where pictures are not taken whole. Numbers must be finite. */
sdlf_status normalization_json_write(char **text, const sdlf_normalization *normalization);
sdlf_status normalization_json_read(sdlf_normalization *normalization, const char *text, const char *path);

/* The same of names of classes: ["cat", "dog"]. Names that are no UTF-8 become '?' where they are not. */
sdlf_status classes_json_write(char **text, const model_classes *classes);
sdlf_status classes_json_read(model_classes *classes, const char *text, const char *path);

#endif
