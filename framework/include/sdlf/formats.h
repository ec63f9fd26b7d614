/* Files: weights (safetensors) and networks (JSON). */
#ifndef SDLF_FORMATS_H
#define SDLF_FORMATS_H

#include <sdlf/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- weights: safetensors ----
 * Parameters under their names, float32, little endian; optimiser states as "optimizer.0.NAME", ... The metadata holds
 * "sdlf.network" (the network as JSON), "sdlf.normalization" (JSON) and, in a checkpoint, "sdlf.training" (JSON, below). */

/* What training must know to go on bit for bit. */
typedef struct sdlf_training_state {
    bool present;
    int64_t step;                      /* steps done over all epochs */
    int epoch;                         /* epochs done */
    int64_t epoch_step;                /* steps done of the epoch under way */
    double loss_sum, correct, samples; /* metrics of the epoch under way */
    uint64_t seed;
    int64_t batch;
    int epochs; /* that were asked for: the schedule depends on it */
    char optimizer[24];
    char data[256];     /* name of the data set; told to the user, not enforced */
    char settings[512]; /* the trainer's own JSON: optimiser, schedule, clipping, smoothing, augmentation, math */
} sdlf_training_state;

/* The training state that was loaded with the model's weights, or that the trainer last left there; for reading and for
 * setting. Never NULL for a model that is not NULL. */
sdlf_training_state *sdlf_model_training_state(sdlf_model *model);

/* Write parameters, and with `training` the optimiser states and the training state too. The file is written under a
 * temporary name beside the target, synced, and renamed over it: a crash or a full disk leaves an old file whole. Errors:
 * SDLF_ERROR_IO with the path and the system's reason. */
sdlf_status sdlf_model_save(sdlf_model *model, const char *path);
sdlf_status sdlf_model_save_checkpoint(sdlf_model *model, const char *path);

/* Read parameters into a model that is built (or is built now). Every parameter must be there with its shape; float16,
 * bfloat16 and float64 are converted. Tensors that the model does not know are an error, except optimiser states. The
 * training state and the optimiser states are read too, if the file has them. After a failure the model is unchanged. */
sdlf_status sdlf_model_load(sdlf_model *model, const char *path);

/* Make the network that a weights file carries in its metadata, and load it. The model is the caller's. */
sdlf_status sdlf_model_open(sdlf_model **model, const char *path);

/* The same for a model that will not be trained on: optimiser states, which may be most of the file, are left there. */
sdlf_status sdlf_model_open_to_run(sdlf_model **model, const char *path);

/* ---- networks: JSON ----
 * docs/network-files.md describes the form. */

/* Read a network file. Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT with "FILE:LINE: " and the field. */
sdlf_status sdlf_network_read(sdlf_model **model, const char *path);

/* The same from memory; `origin` names it in messages. */
sdlf_status sdlf_network_parse(sdlf_model **model, const char *text, size_t length, const char *origin);

/* The network as JSON; free() the text. */
sdlf_status sdlf_network_write(const sdlf_model *model, char **text);

/* A network that comes with SDLF: simple_cnn, lenet5, mlp, fast_cnn. */
sdlf_status sdlf_network_builtin(sdlf_model **model, const char *name);
/* Their names and one-line summaries; NULL past the end. */
const char *sdlf_network_builtin_name(int index);
const char *sdlf_network_builtin_summary(int index);

#ifdef __cplusplus
}
#endif
#endif
