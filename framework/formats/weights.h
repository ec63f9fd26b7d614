/* SPDX-License-Identifier: MIT */
/* The tensors and the metadata of a weights file. */
#ifndef SDLF_FORMATS_WEIGHTS_H
#define SDLF_FORMATS_WEIGHTS_H

#include "framework/formats/safetensors.h"
#include "framework/model_internal.h"

/* Metadata: the network as JSON, the normalisation of images, the class names, the loss if it is not cross-entropy, and
 * the training state. */
#define WEIGHTS_NETWORK       "sdlf.network"
#define WEIGHTS_NORMALIZATION "sdlf.normalization"
#define WEIGHTS_CLASSES       "sdlf.classes"
#define WEIGHTS_LOSS          "sdlf.loss"
#define WEIGHTS_HUBER_DELTA   "sdlf.huber_delta"
#define WEIGHTS_TRAINING      "sdlf.training"

/* Optimizer state S of parameter NAME is tensor "optimizer.S.NAME". */
#define WEIGHTS_STATE  "optimizer."
#define WEIGHTS_STATES 3

/* A parameter's tensors in a file: slot 0 is its value, slot 1 + S its optimizer state S. */
enum { WEIGHTS_SLOTS = 1 + WEIGHTS_STATES };
typedef struct loaded_parameter {
    const safetensors_entry *entry[WEIGHTS_SLOTS]; /* NULL: not in the file */
    float *values[WEIGHTS_SLOTS];                  /* once read */
} loaded_parameter;

typedef struct loaded_weights {
    const safetensors_file *file;
    loaded_parameter *parameters; /* as many as the model has */
    int state_count;              /* optimizer states of each trainable parameter */
    sdlf_normalization normalization;
    model_classes classes; /* owned, until the model takes them */
    sdlf_loss loss;
    float huber_delta; /* 0: not specified */
    sdlf_training_state training;
} loaded_weights;

/* Fills in all `entry` and `state_count`: each tensor of the file must belong to a parameter, each parameter must have
 * a tensor of its shape and a floating type, and the trainable ones equally many states. Errors: SDLF_ERROR_FORMAT. */
sdlf_status weights_match(loaded_weights *weights, const sdlf_model *model);

/* Reads the metadata's normalisation, classes and training state. */
sdlf_status weights_read_metadata(loaded_weights *weights);

/* weights_open_network builds the network that the file contains; the caller owns the model. */
/* weights_open_memory is sdlf_model_open for a file in memory, borrowed until it returns. */
sdlf_status weights_open_memory(sdlf_model **model, const void *bytes, size_t size, const char *name);

sdlf_status weights_open_network(sdlf_model **model, const safetensors_file *file);

#endif
