/* SPDX-License-Identifier: MIT */
/* File formats: weights (safetensors), networks (JSON), models of other frameworks (ONNX), networks as C.
 *
 * Threads: use each model, and each file that is written, from one thread at a time.
 * Ownership: objects that are read are the caller's to free; paths and options are borrowed until the call returns.
 * Errors: a status with a message (status.h) that names the file and the byte or line: SDLF_ERROR_IO,
 * SDLF_ERROR_FORMAT, SDLF_ERROR_UNSUPPORTED. If a file cannot be written completely, an existing one is unchanged. */
#ifndef SDLF_FORMATS_H
#define SDLF_FORMATS_H

#include <sdlf/model.h>
#include <sdlf/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- weights: safetensors ----
 * Parameters under their names, float32, little endian; optimizer states as "optimizer.0.NAME", ... The metadata
 * contains "sdlf.network" (the network as JSON), "sdlf.normalization" (JSON) and, in a checkpoint, "sdlf.training"
 * (JSON, see below). */

/* The state needed to resume training bit for bit. */
typedef struct sdlf_training_state {
    bool present;
    int64_t step;                      /* steps completed over all epochs */
    int epoch;                         /* epochs completed */
    int64_t epoch_step;                /* steps completed in the current epoch */
    double loss_sum, correct, samples; /* metrics of the current epoch */
    sdlf_loss_scale loss_scale;        /* state of loss scaling */
    uint64_t seed;
    int64_t batch;
    int epochs; /* total requested; the learning-rate schedule depends on it */
    char optimizer[24];
    char data[256];      /* name of the data set; shown to the user, not enforced */
    char settings[2048]; /* the trainer's own JSON: optimizer, schedule, clipping, smoothing, augmentation, math */
} sdlf_training_state;

/* The training state that was loaded with the model's weights or last set by a trainer. It may be read and changed.
 * Never NULL unless `model` is NULL. */
sdlf_training_state *sdlf_model_training_state(sdlf_model *model);

/* Write the parameters; a checkpoint also has the optimizer states and the training state. The file is written under a
 * temporary name next to the target, synced, and renamed over it: a crash or a full disk leaves an old file intact.
 * Errors: SDLF_ERROR_IO with the path and the system's reason. */
sdlf_status sdlf_model_save(sdlf_model *model, const char *path);
sdlf_status sdlf_model_save_checkpoint(sdlf_model *model, const char *path);

/* Read parameters into a model, which is built first if necessary. Every parameter must be present with its
 * shape; float16, bfloat16 and float64 are converted. Unknown tensors are an error, except optimizer states. The
 * training state and the optimizer states are read if the file has them. After a failure the model is
 * unchanged. */
sdlf_status sdlf_model_load(sdlf_model *model, const char *path);

/* Create the network stored in the metadata of a weights file, and load the weights. The model is the caller's; NULL
 * after a failure. Errors: SDLF_ERROR_IO; SDLF_ERROR_FORMAT with the tensor, field or byte at fault, also if the file
 * stores no network; SDLF_ERROR_MEMORY; errors of building that network. */
sdlf_status sdlf_model_open(sdlf_model **model, const char *path);

/* The same for a model that will not be trained: optimizer states, which may be most of the file, are not read. */
sdlf_status sdlf_model_open_to_run(sdlf_model **model, const char *path);

/* The same for a single plan that takes the parameters (consume_parameters in plan.h). They stay in the file, which the
 * model keeps open until then or until it is freed. Their names, types and shapes are checked now; the values are read
 * when the plan is created, under the conditions described at sdlf_onnx_options.leave_weights (below). */
sdlf_status sdlf_model_open_to_take(sdlf_model **model, const char *path);

/* ---- plan files: choices of algorithms ----
 * Sorted lines of text; docs/reference/plan-files.md describes the format. */

/* Add the choices in a file to `choices`. A missing file adds nothing. Errors: SDLF_ERROR_IO; SDLF_ERROR_FORMAT with
 * "FILE:LINE: "; SDLF_ERROR_MEMORY, the only one after which some may have been added. */
sdlf_status sdlf_choices_read(sdlf_choices *choices, const char *path);

/* The same from memory; `origin` names it in messages (NULL: "plan file"). */
sdlf_status sdlf_choices_parse(sdlf_choices *choices, const char *text, size_t length, const char *origin);

/* Write all choices to a temporary file that is renamed over the target. Others already in the file are kept and added
 * to `choices`; several processes may write concurrently. Errors: SDLF_ERROR_IO; those of sdlf_choices_read. */
sdlf_status sdlf_choices_write(sdlf_choices *choices, const char *path);

/* ---- networks: JSON ----
 * docs/guides/network-files.md describes the format. */

/* Read a network file. Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT with "FILE:LINE: " and the field. */
sdlf_status sdlf_network_read(sdlf_model **model, const char *path);

/* The same from memory; `origin` names it in messages (NULL: "network"). */
sdlf_status sdlf_network_parse(sdlf_model **model, const char *text, size_t length, const char *origin);

/* Write the network as JSON. The caller frees *text with free(). */
sdlf_status sdlf_network_write(const sdlf_model *model, char **text);

/* Create a built-in network with ten classes: simple_cnn, lenet5, mlp and fast_cnn for samples of 1x28x28; cifar_fast,
 * resnet20, resnet18, resnet50, vgg11_bn, mobilenet_v2 and vit_tiny for 3x32x32; char_gpt for 128 characters out of 96
 * (and 96 outputs). Errors: SDLF_ERROR_ARGUMENT (unknown name), SDLF_ERROR_MEMORY. */
sdlf_status sdlf_network_builtin(sdlf_model **model, const char *name);
/* The same for samples (C,H,W) and a given number of classes. Networks that exist in torchvision have its layer
 * names. If both sides of the sample exceed 64 pixels, they also have its architecture (VGG's classifier only at
 * 224x224); otherwise their first layers keep the resolution. Errors: also SDLF_ERROR_SHAPE (images that are too
 * small). */
sdlf_status sdlf_network_builtin_for(sdlf_model **model, const char *name, sdlf_shape sample, int classes);
/* The same for float targets: `targets` outputs, at least 1, and no softmax after them. */
sdlf_status sdlf_network_builtin_for_targets(sdlf_model **model, const char *name, sdlf_shape sample, int targets);
/* Names and one-line summaries of the built-in networks; NULL past the end. */
const char *sdlf_network_builtin_name(int index);
const char *sdlf_network_builtin_summary(int index);

/* ---- models from elsewhere: ONNX ----
 * docs/guides/onnx.md describes the import, docs/reference/onnx-support.md lists every operator. In a build without
 * protobuf-c these functions return SDLF_ERROR_UNSUPPORTED. */

/* The size of a dimension that the file leaves open: by its name, such as "height", or, if it has none, as "image:2",
 * its input and axis. A name that matches no input is an error. */
typedef struct sdlf_onnx_dimension {
    const char *name;
    int64_t size;
} sdlf_onnx_dimension;

/* The actual shape of an input. It sets the open dimensions of the input, except the first, and all dimensions that
 * share their names. `dimensions` takes precedence. */
typedef struct sdlf_onnx_shape {
    const char *name;
    sdlf_shape shape;
} sdlf_onnx_shape;

/* An input of the graph whose elements are already known and become a constant of the model; host memory, row-major. */
typedef struct sdlf_onnx_known {
    const char *name;
    sdlf_tensor tensor;
} sdlf_onnx_known;

/* All members are borrowed until the call returns. */
typedef struct sdlf_onnx_options {
    /* 0: the plan's batch replaces an input's first dimension if it is open or 1. More: open first dimensions have this
     * size (SDLF_ERROR_ARGUMENT if there are none), no input has a batch, and the plan's batch must be 1. */
    int64_t batch;
    const sdlf_onnx_dimension *dimensions;
    int dimension_count;
    const sdlf_onnx_known *known;
    int known_count;
    /* Leave the weights in the file, which stays open, until a plan takes them (consume_parameters in plan.h). Each is
     * read directly to its destination, in pieces if that is a device. If the file has been modified by then, creating
     * the plan fails with SDLF_ERROR_IO; replacing or removing it does no harm. Until then the model can be used only
     * by that plan: its parameters have no values, and sdlf_model_status returns SDLF_ERROR_ARGUMENT. */
    bool leave_weights;
    /* The limit in bytes for memory used while reading, in addition to the data stored in the file, and for the
     * parameters. 0: SDLF_READ_MEMORY of the environment, or 128 MB plus 32 times the file's size, but at most half of
     * the available memory. Exceeding it is SDLF_ERROR_MEMORY. */
    int64_t read_memory;
    const sdlf_onnx_shape *shapes;
    int shape_count;
    /* Compute Gather and Slice of a weight in each run even if the indices are constant, so that models of several
     * sizes share one table instead of having different weights. */
    bool keep_rows;
    void *reserved[1]; /* zero; reserved for new members */
} sdlf_onnx_options;

/* Read an ONNX model (opset 7 to 28) with its weights into a built model. The model is the caller's. `options` may be
 * NULL. Errors: SDLF_ERROR_IO; SDLF_ERROR_FORMAT with the file and the byte or node at fault; SDLF_ERROR_UNSUPPORTED
 * with the operator, attribute or type that is not supported; SDLF_ERROR_MEMORY. */
sdlf_status sdlf_model_from_onnx(sdlf_model **model, const char *path, const sdlf_onnx_options *options);

/* ---- either format, from memory ---- */

/* Create a model from the content of a weights file that stores its network (see sdlf_model_open) or of an ONNX file
 * (see sdlf_model_from_onnx); the first bytes tell which. `options` may be NULL and applies to ONNX files only;
 * leave_weights is ignored. The bytes are borrowed until the call returns. `name` replaces the file name in messages
 * (NULL: "model"). The model is the caller's; NULL after a failure. Errors: those of the two functions;
 * SDLF_ERROR_FORMAT if it is neither, or if the weights of an ONNX file are in another file. */
sdlf_status sdlf_model_from_memory(sdlf_model **model, const void *bytes, size_t size, const char *name,
                                   const sdlf_onnx_options *options);

/* One node of an ONNX graph, and whether it can be converted. */
typedef struct sdlf_onnx_node {
    const char *type, *name, *domain; /* "Conv"; the name may be empty; "" is the standard's own domain */
    sdlf_shape shape;                 /* of its first output, if `shape_known` */
    bool shape_known;
    sdlf_status status; /* SDLF_OK, or why it cannot be converted */
    const char *reason; /* the message, if not SDLF_OK; NULL for a node that only depends on one that failed */
} sdlf_onnx_node;

typedef struct sdlf_onnx_value {
    const char *name, *type; /* "float", "int64": as in the file */
    sdlf_shape shape;        /* -1 where open; for an output, the computed shape if the model could be created */
    bool shape_known;        /* false: neither given in the file nor computed */
    bool must_be_known;      /* the conversion needs the elements of this input: see sdlf_onnx_options.known */
} sdlf_onnx_value;

/* The contents of an ONNX file, as far as it can be read. Strings and arrays belong to the report. */
typedef struct sdlf_onnx_report {
    int64_t ir_version, opset, file_bytes, weight_bytes, weight_count;
    const char *producer, *graph;
    const sdlf_onnx_value *input, *output;
    int input_count, output_count;
    const sdlf_onnx_node *node;
    int node_count;
    int failed_count;   /* nodes that cannot be converted */
    sdlf_status status; /* SDLF_OK: it can be converted; else the first reason why not, with its message */
    const char *message;
    sdlf_model
        *model; /* parameters are described but not allocated, for sdlf_plan_measure; NULL if status is not SDLF_OK */
    void *memory;
} sdlf_onnx_report;

/* Inspect an ONNX file without allocating memory for its weights. Fails only if the file cannot be read at all; what
 * cannot be converted is in the report. Free it with sdlf_onnx_report_free (accepts NULL). */
sdlf_status sdlf_onnx_inspect(sdlf_onnx_report **report, const char *path, const sdlf_onnx_options *options);
void sdlf_onnx_report_free(sdlf_onnx_report *report);

/* Options for writing a model as ONNX. */
typedef struct sdlf_onnx_export_options {
    int opset;          /* 17 to 22; 0: the lowest of these that can express all layers */
    bool external_data; /* write weights to a separate file, PATH.HASH.data; always done beyond 2 GB */
    bool normalize;     /* input 0 takes raw samples: prepend sdlf_model_normalization, which must be known */
    void *reserved[4];  /* zero; reserved for new members */
} sdlf_onnx_export_options;

/* What was written. */
typedef struct sdlf_onnx_exported {
    int opset, node_count;
    int64_t parameter_count;       /* elements of the model's parameters */
    int64_t bytes, external_bytes; /* of the file, and of the external-data file; 0: there is none */
    char external_file[256];       /* name of the external-data file, without a folder; "": there is none */
    bool fixed_batch;              /* the network allows only batch 1; otherwise the batch dimension is open, as "N" */
    void *reserved[4];             /* zero; reserved for new members */
} sdlf_onnx_exported;

/* Write a built model as an ONNX file that computes what an inference plan does: losses, and what only they read,
 * are left out. docs/guides/onnx-export.md describes the result for each layer. The file is written as by
 * sdlf_model_save. It is replaced together with its external data; external data of an earlier export to this
 * path is removed. `options` and `result` may be NULL. Errors: SDLF_ERROR_UNSUPPORTED with the layer, its class,
 * and why ONNX, or the requested opset, cannot express it; SDLF_ERROR_ARGUMENT; SDLF_ERROR_IO;
 * SDLF_ERROR_MEMORY. */
sdlf_status sdlf_model_to_onnx(const sdlf_model *model, const char *path, const sdlf_onnx_export_options *options,
                               sdlf_onnx_exported *result);

/* ---- a network as C ---- */

typedef struct sdlf_c_export_options {
    const char *name;       /* prefix of every name in the file, an identifier; NULL: derived from the model's name */
    int64_t max_parameters; /* a larger network is rejected; 0: SDLF_C_EXPORT_PARAMETERS */
    void *reserved[4];      /* zero; reserved for new members */
} sdlf_c_export_options;

/* Compilers need several hundred bytes of memory for each number in an initializer list. */
#define SDLF_C_EXPORT_PARAMETERS 2000000

/* What was written. */
typedef struct sdlf_c_exported {
    char name[64];           /* the prefix of every name */
    int64_t parameter_count; /* values written, after folding in batch normalisation */
    int64_t scratch_bytes;   /* static memory for activations between layers */
    int64_t bytes;           /* of the file */
    void *reserved[4];       /* zero; reserved for new members */
} sdlf_c_exported;

/* Write a built model as one C99 file that needs only the standard library and computes what an inference plan
 * does for a batch of 1, in float: void NAME_run(const float *input, float *output). It supports every layer
 * whose operations are listed in docs/guides/c-export.md. The file is written as by sdlf_model_save. `options`
 * and `result` may be NULL. Errors: SDLF_ERROR_UNSUPPORTED with the layer, its class and the reason, or if there
 * are too many parameters; SDLF_ERROR_ARGUMENT if the name is not an identifier; SDLF_ERROR_IO;
 * SDLF_ERROR_MEMORY. */
sdlf_status sdlf_model_to_c(const sdlf_model *model, const char *path, const sdlf_c_export_options *options,
                            sdlf_c_exported *result);

/* ---- single tensors ---- */

/* Read a tensor from a .npy file, or from a .pb file that holds an ONNX TensorProto. The tensor (host memory) is the
 * caller's: sdlf_tensor_release(tensor, NULL). */
sdlf_status sdlf_tensor_read_file(sdlf_tensor *tensor, const char *path);

/* A file whose elements are read on demand, once its shape is known. A .npy file, which may be a pipe, is read directly
 * into the destination; a .pb file is read when it is opened. */
typedef struct sdlf_tensor_file sdlf_tensor_file;
sdlf_status sdlf_tensor_file_open(sdlf_tensor_file **file, const char *path);
void sdlf_tensor_file_close(sdlf_tensor_file *file);
/* Returns the shape and dtype; no memory. */
sdlf_tensor sdlf_tensor_file_look(const sdlf_tensor_file *file);
/* Read all elements, row-major, to host memory; only once. Errors: SDLF_ERROR_IO; SDLF_ERROR_FORMAT if there are more
 * or fewer elements. */
sdlf_status sdlf_tensor_file_read(sdlf_tensor_file *file, void *values);

/* Write a row-major tensor in host memory as a .npy file. */
sdlf_status sdlf_tensor_write_file(const sdlf_tensor *tensor, const char *path);

/* ---- any file ---- */

/* Write bytes (may be NULL if `count` is 0) to a file, as sdlf_model_save does: it appears completely or not at all. A
 * target that is not a regular file (a pipe, /dev/null) is written directly. Errors: SDLF_ERROR_IO, SDLF_ERROR_ARGUMENT
 * (no path), SDLF_ERROR_MEMORY. */
sdlf_status sdlf_write_file(const char *path, const void *bytes, size_t count);

/* Check whether a file could be written or replaced at `path`, following links. Leaves nothing behind and does not
 * touch a target that is not a regular file. For use before long computations. Errors: as for sdlf_write_file. */
sdlf_status sdlf_can_write_file(const char *path);

#ifdef __cplusplus
}
#endif
#endif
