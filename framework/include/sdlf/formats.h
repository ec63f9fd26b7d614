/* SPDX-License-Identifier: MIT */
/* Files: weights (safetensors), networks (JSON), models of other frameworks (ONNX).
 *
 * Threads: functions work on what they are given: one thread at a time for each model and each file that is written.
 * Ownership: what is read is the caller's to free; paths and options are borrowed until the call returns.
 * Errors: a status with a message (status.h) that names the file and the byte or line: SDLF_ERROR_IO,
 * SDLF_ERROR_FORMAT, SDLF_ERROR_UNSUPPORTED. A file that cannot be written whole is left as it was. */
#ifndef SDLF_FORMATS_H
#define SDLF_FORMATS_H

#include <sdlf/model.h>
#include <sdlf/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- weights: safetensors ----
 * Parameters under their names, float32, little endian; optimizer states as "optimizer.0.NAME", ... The metadata holds
 * "sdlf.network" (the network as JSON), "sdlf.normalization" (JSON) and, in a checkpoint, "sdlf.training" (JSON,
 * below). */

/* What training must know to go on bit for bit. */
typedef struct sdlf_training_state {
    bool present;
    int64_t step;                      /* steps done over all epochs */
    int epoch;                         /* epochs done */
    int64_t epoch_step;                /* steps done of the epoch under way */
    double loss_sum, correct, samples; /* metrics of the epoch under way */
    sdlf_loss_scale loss_scale;        /* where loss scaling stands */
    uint64_t seed;
    int64_t batch;
    int epochs; /* that were requested: the schedule depends on it */
    char optimizer[24];
    char data[256];      /* name of the data set; shown to the user, not enforced */
    char settings[2048]; /* the trainer's own JSON: optimizer, schedule, clipping, smoothing, augmentation, math */
} sdlf_training_state;

/* The training state that was loaded with the model's weights, or that the trainer last left there; for reading and for
 * setting. Never NULL for a model that is not NULL. */
sdlf_training_state *sdlf_model_training_state(sdlf_model *model);

/* Write parameters, and with `training` the optimizer states and the training state too. The file is written under a
 * temporary name beside the target, synced, and renamed over it: a crash or a full disk leaves an old file whole.
 * Errors: SDLF_ERROR_IO with the path and the system's reason. */
sdlf_status sdlf_model_save(sdlf_model *model, const char *path);
sdlf_status sdlf_model_save_checkpoint(sdlf_model *model, const char *path);

/* Read parameters into a model that is built (or is built now). Every parameter must be there with its shape; float16,
 * bfloat16 and float64 are converted. Tensors that the model does not know are an error, except optimizer states. The
 * training state and the optimizer states are read too, if the file has them. After a failure the model is
 * unchanged. */
sdlf_status sdlf_model_load(sdlf_model *model, const char *path);

/* Make the network that a weights file carries in its metadata, and load it. The model is the caller's; NULL after a
 * failure. Errors: SDLF_ERROR_IO; SDLF_ERROR_FORMAT with the file and the tensor, field or byte at fault, also where
 * the file carries no network; SDLF_ERROR_MEMORY; those of building that network. */
sdlf_status sdlf_model_open(sdlf_model **model, const char *path);

/* The same for a model that will not be trained on: optimizer states, which may be most of the file, are left there. */
sdlf_status sdlf_model_open_to_run(sdlf_model **model, const char *path);

/* That for one plan which takes the parameters (take_parameters in plan.h): they stay in the file, which the model
 * keeps open until then or until it is freed. What is there of them is checked now, the values are read when the plan
 * is made: what leave_weights of sdlf_onnx_options (below) says of such values holds of these. */
sdlf_status sdlf_model_open_to_take(sdlf_model **model, const char *path);

/* ---- plan files: choices of algorithms ----
 * Lines of text, sorted; docs/reference/plan-files.md describes the form. */

/* Add the file's choices to these. No file there: nothing to add. Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT with
 * "FILE:LINE: ", and then nothing has been added, but where memory ran out. */
sdlf_status sdlf_choices_read(sdlf_choices *choices, const char *path);

/* The same from memory; `origin` names it in messages (NULL: "plan file"). */
sdlf_status sdlf_choices_parse(sdlf_choices *choices, const char *text, size_t length, const char *origin);

/* Write all of them, under a temporary name beside the target that is then renamed. What the file has of others is kept,
 * and added to these; several processes may write at once. Errors: SDLF_ERROR_IO; those of sdlf_choices_read. */
sdlf_status sdlf_choices_write(sdlf_choices *choices, const char *path);

/* ---- networks: JSON ----
 * docs/guides/network-files.md describes the form. */

/* Read a network file. Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT with "FILE:LINE: " and the field. */
sdlf_status sdlf_network_read(sdlf_model **model, const char *path);

/* The same from memory; `origin` names it in messages (NULL: "network"). */
sdlf_status sdlf_network_parse(sdlf_model **model, const char *text, size_t length, const char *origin);

/* The network as JSON; free() the text. */
sdlf_status sdlf_network_write(const sdlf_model *model, char **text);

/* A network that comes with SDLF, for ten classes: simple_cnn, lenet5, mlp and fast_cnn for samples 1x28x28; resnet20,
 * resnet18, resnet50, vgg11_bn, mobilenet_v2 and vit_tiny for 3x32x32,
 * char_gpt for 128 characters of 96. Errors: SDLF_ERROR_ARGUMENT (an unknown name), SDLF_ERROR_MEMORY. */
sdlf_status sdlf_network_builtin(sdlf_model **model, const char *name);
/* The same for samples (C,H,W) of that many classes. Layers of networks that torchvision has are called as there; where
 * a side has more than 64 pixels both ways they are torchvision's (VGG's classifier only at 224x224), else they keep
 * the resolution in their first layers.
 * Errors: SDLF_ERROR_SHAPE (images that are too small), too. */
sdlf_status sdlf_network_builtin_for(sdlf_model **model, const char *name, sdlf_shape sample, int classes);
/* The same for float targets: that many numbers from 1 on, and no softmax behind them. */
sdlf_status sdlf_network_builtin_for_targets(sdlf_model **model, const char *name, sdlf_shape sample, int targets);
/* Their names and one-line summaries; NULL past the end. */
const char *sdlf_network_builtin_name(int index);
const char *sdlf_network_builtin_summary(int index);

/* ---- models from elsewhere: ONNX ----
 * docs/guides/onnx.md says what is read and how, docs/reference/onnx-support.md lists every operator. Without
 * protobuf-c in the build, these return SDLF_ERROR_UNSUPPORTED. */

/* The size of a dimension that the file leaves open under a name, such as "height", or without: "image:2", its input
 * and place. One that no input has is an error. */
typedef struct sdlf_onnx_dimension {
    const char *name;
    int64_t size;
} sdlf_onnx_dimension;

/* The shape of what an input will be given, which says the sizes of the dimensions that the file leaves open, but of
 * the first, and of all dimensions of the same name. `dimensions` go before it. */
typedef struct sdlf_onnx_shape {
    const char *name;
    sdlf_shape shape;
} sdlf_onnx_shape;

/* An input of the graph whose elements are known now, and go into the model as a constant: host memory, row-major. */
typedef struct sdlf_onnx_known {
    const char *name;
    sdlf_tensor tensor;
} sdlf_onnx_known;

/* All of it borrowed until the call returns. */
typedef struct sdlf_onnx_options {
    /* 0: an input whose first dimension is open or 1 has the plan's batch there. More: open first dimensions have this
     * size (where there is none: SDLF_ERROR_ARGUMENT), no input has a batch, and the plan's batch is to be 1. */
    int64_t batch;
    const sdlf_onnx_dimension *dimensions;
    int dimension_count;
    const sdlf_onnx_known *known;
    int known_count;
    /* The weights stay in the file, which is kept open, until a plan takes them (take_parameters in plan.h): each goes
     * from there to where the plan wants it, a piece at a time where that is a device. A file that has been written to
     * by then makes the plan SDLF_ERROR_IO; one that was replaced or removed does not matter. Until then the model can
     * only be given to that plan: its parameters have no values, and sdlf_model_status is SDLF_ERROR_ARGUMENT. */
    bool leave_weights;
    /* Bytes of memory that the file may become while it is read, beside what it stores as such, and that its parameters
     * may take. 0: SDLF_READ_MEMORY of the environment, or 128 MB and 32 times the file's size, half of what the
     * process can still have at most. More is SDLF_ERROR_MEMORY. */
    int64_t read_memory;
    const sdlf_onnx_shape *shapes;
    int shape_count;
    /* Gather and Slice of a weight are computed in each run, even where the places are known beforehand: so that models
     * of several sizes read one table at several places, rather than having other weights. */
    bool keep_rows;
    void *reserved[1]; /* zero: room for members to come */
} sdlf_onnx_options;

/* Read an ONNX model (opset 7 to 28), with its weights, as a model that is built. The model is the caller's. `options`
 * may be NULL. Errors: SDLF_ERROR_IO; SDLF_ERROR_FORMAT with the file and the byte or node at fault;
 * SDLF_ERROR_UNSUPPORTED with the operator, attribute or type that SDLF lacks; SDLF_ERROR_MEMORY. */
sdlf_status sdlf_model_from_onnx(sdlf_model **model, const char *path, const sdlf_onnx_options *options);

/* ---- either kind, from memory ---- */

/* Make a model from the content of a weights file that carries its network (as sdlf_model_open) or of an ONNX file (as
 * sdlf_model_from_onnx). The first bytes tell which of the two it is. `options` may be NULL and applies to ONNX files
 * only; leave_weights is ignored. The bytes are borrowed until the call returns; `name` stands for the file in messages
 * (NULL: "model"). The model is the caller's; NULL after a failure. Errors: those of the two, and SDLF_ERROR_FORMAT for
 * what is neither. Weights that an ONNX file keeps in another file are SDLF_ERROR_FORMAT. */
sdlf_status sdlf_model_from_memory(sdlf_model **model, const void *bytes, size_t size, const char *name,
                                   const sdlf_onnx_options *options);

/* One node of an ONNX graph, and what became of it. */
typedef struct sdlf_onnx_node {
    const char *type, *name, *domain; /* "Conv"; the name may be empty; "" is the standard's own domain */
    sdlf_shape shape;                 /* of its first output, if `shape_known` */
    bool shape_known;
    sdlf_status status; /* SDLF_OK; or why it cannot be converted */
    const char *reason; /* the message then; NULL for a node that only waits for one that failed */
} sdlf_onnx_node;

typedef struct sdlf_onnx_value {
    const char *name, *type; /* "float", "int64": as the file says */
    sdlf_shape shape;        /* -1 where it is open; of an output as it is computed, where the model could be made */
    bool shape_known;        /* false: the file does not say it, and nothing else does */
    bool must_be_known;      /* an input whose elements the model is made from: see sdlf_onnx_options.known */
} sdlf_onnx_value;

/* What an ONNX file holds, as far as it can be read. Strings and arrays belong to the report. */
typedef struct sdlf_onnx_report {
    int64_t ir_version, opset, file_bytes, weight_bytes, weight_count;
    const char *producer, *graph;
    const sdlf_onnx_value *input, *output;
    int input_count, output_count;
    const sdlf_onnx_node *node;
    int node_count;
    int failed_count;   /* nodes that cannot be converted */
    sdlf_status status; /* SDLF_OK: it can be made a model; else the first reason why not, with its message */
    const char *message;
    sdlf_model
        *model; /* with parameters described and not allocated, for sdlf_plan_measure; NULL where status is not OK */
    void *memory;
} sdlf_onnx_report;

/* Look at an ONNX file without taking memory for its weights. Errors: only of a file that cannot be read at all; what
 * cannot be converted is in the report. Free with sdlf_onnx_report_free (accepts NULL). */
sdlf_status sdlf_onnx_inspect(sdlf_onnx_report **report, const char *path, const sdlf_onnx_options *options);
void sdlf_onnx_report_free(sdlf_onnx_report *report);

/* How a model is written as ONNX. */
typedef struct sdlf_onnx_export_options {
    int opset;          /* 17 to 22; 0: the lowest of these that all its layers can be said in */
    bool external_data; /* weights go into a file beside it, PATH.HASH.data; beyond 2 GB they do so by themselves */
    bool normalize;     /* input 0 takes raw samples: sdlf_model_normalization, which must be known, stands in front */
    void *reserved[4];  /* zero: room for members to come */
} sdlf_onnx_export_options;

/* What was written. */
typedef struct sdlf_onnx_exported {
    int opset, node_count;
    int64_t parameter_count;       /* elements of the model's parameters */
    int64_t bytes, external_bytes; /* of the file, and of the one beside it; 0: there is none */
    char external_file[256];       /* the name of that one, without a folder; "": there is none */
    bool fixed_batch;              /* the network allows no batch but 1; else the batch is open, as "N" */
    void *reserved[4];             /* zero: room for members to come */
} sdlf_onnx_exported;

/* Write a model that is built as an ONNX file, which computes what a plan for inference does: losses are left out, and
 * what only they read. docs/guides/onnx-export.md says what becomes of each layer. The file is written as
 * sdlf_model_save does. One with weights beside it is replaced together with them; weights of an earlier export to this
 * path are removed then. `options` and `result` may be NULL. Errors: SDLF_ERROR_UNSUPPORTED with the layer, its class,
 * and why ONNX, or the opset that was asked for, cannot say it; SDLF_ERROR_ARGUMENT; SDLF_ERROR_IO;
 * SDLF_ERROR_MEMORY. */
sdlf_status sdlf_model_to_onnx(const sdlf_model *model, const char *path, const sdlf_onnx_export_options *options,
                               sdlf_onnx_exported *result);

/* ---- a network as C ---- */

typedef struct sdlf_c_export_options {
    const char *name;       /* before every name in the file, an identifier; NULL: made of the model's name */
    int64_t max_parameters; /* a larger network is refused; 0: SDLF_C_EXPORT_PARAMETERS */
    void *reserved[4];      /* zero: room for members to come */
} sdlf_c_export_options;

/* Compilers take some hundred bytes of memory for each number of a list. */
#define SDLF_C_EXPORT_PARAMETERS 2000000

/* What was written. */
typedef struct sdlf_c_exported {
    char name[64];           /* that was put before every name */
    int64_t parameter_count; /* numbers that are written, batch normalisation folded in */
    int64_t scratch_bytes;   /* static memory for what lies between layers */
    int64_t bytes;           /* of the file */
    void *reserved[4];       /* zero: room for members to come */
} sdlf_c_exported;

/* Write a model that is built as one file of C99 that needs only the standard library, and computes what a plan for
 * inference does for a batch of 1, in float: void NAME_run(const float *input, float *output). Any layer whose
 * operations are among those of docs/guides/c-export.md may be in it. The file is written as sdlf_model_save does.
 * `options` and `result` may be NULL. Errors: SDLF_ERROR_UNSUPPORTED with the layer, its class and the reason, or where
 * there are too many parameters; SDLF_ERROR_ARGUMENT where the name is no identifier; SDLF_ERROR_IO;
 * SDLF_ERROR_MEMORY. */
sdlf_status sdlf_model_to_c(const sdlf_model *model, const char *path, const sdlf_c_export_options *options,
                            sdlf_c_exported *result);

/* ---- single tensors ---- */

/* Read a tensor from a .npy file, or from a .pb file that holds an ONNX TensorProto. The tensor (host memory) is the
 * caller's: sdlf_tensor_release(tensor, NULL). */
sdlf_status sdlf_tensor_read_file(sdlf_tensor *tensor, const char *path);

/* Such a file whose elements are read where they are needed, once it is known what they are: those of a .npy file,
 * which may be a pipe, straight from there; a .pb file is read when it is opened. */
typedef struct sdlf_tensor_file sdlf_tensor_file;
sdlf_status sdlf_tensor_file_open(sdlf_tensor_file **file, const char *path);
void sdlf_tensor_file_close(sdlf_tensor_file *file);
/* Its shape and dtype; no memory. */
sdlf_tensor sdlf_tensor_file_look(const sdlf_tensor_file *file);
/* All elements, row-major, to host memory; once. Errors: SDLF_ERROR_IO; SDLF_ERROR_FORMAT where there are more or
 * fewer. */
sdlf_status sdlf_tensor_file_read(sdlf_tensor_file *file, void *values);

/* Write a row-major tensor in host memory as a .npy file. */
sdlf_status sdlf_tensor_write_file(const sdlf_tensor *tensor, const char *path);

/* ---- any file ---- */

/* Put bytes (may be NULL where there are none) in a file, as sdlf_model_save does: it appears whole or not at all. What
 * is no regular file (a pipe, /dev/null) is written to directly. Errors: SDLF_ERROR_IO, SDLF_ERROR_ARGUMENT (no path),
 * SDLF_ERROR_MEMORY. */
sdlf_status sdlf_write_file(const char *path, const void *bytes, size_t count);

/* Could a file be written there, or replaced, links followed? Leaves nothing behind; what is no regular file is not
 * touched. To ask before long work. Errors as of sdlf_write_file. */
sdlf_status sdlf_can_write_file(const char *path);

#ifdef __cplusplus
}
#endif
#endif
