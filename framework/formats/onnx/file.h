/* SPDX-License-Identifier: MIT */
/* An ONNX file as stored: its nodes, weights, inputs and outputs, before conversion. */
#ifndef SDLF_FORMATS_ONNX_FILE_H
#define SDLF_FORMATS_ONNX_FILE_H

#include "framework/formats/onnx/import/block.h"
#include "framework/formats/onnx/onnx.pb-c.h"
#include "framework/formats/onnx/tensor.h"

typedef struct onnx_file {
    const char *path;
    read_budget budget;
    onnx_arena arena;   /* of everything below */
    onnx_blocks blocks; /* of folded constants */
    onnx_map map;
    onnx_folder folder;
    int64_t ir_version, opset;
    const char *producer, *producer_version, *graph_name; /* "" where absent */
    const char *normalization, *classes;                  /* metadata of these names, JSON; "" where absent */
    Onnx__NodeProto **node;
    int node_count;
    onnx_tensor *initializer;
    int initializer_count;
    int64_t initializer_bytes;
    Onnx__ValueInfoProto **input, **output; /* outputs without a name have "" */
    int input_count, output_count;
    Onnx__FunctionProto **function; /* the model's local functions */
    int function_count;
    bool has_sparse;
    bool has_learning; /* it has operators of ai.onnx.ml */
    bool is_model;     /* a version, an operator set or a graph was found, so it is an ONNX file */
} onnx_file;

/* Opens and reads a model, with a budget of `read_memory` (0: budget.h's default). Of the weights, only their locations
 * are read. The file must remain in place. Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT with file and byte,
 * SDLF_ERROR_UNSUPPORTED, SDLF_ERROR_MEMORY. In every case onnx_file_close releases what was allocated. */
sdlf_status onnx_file_open(onnx_file *file, const char *path, int64_t read_memory);

/* The same from memory (borrowed until closed). External data are looked for in `folder`, and rejected if that is
 * NULL. */
sdlf_status onnx_file_parse(onnx_file *file, const void *bytes, size_t size, const char *name, const char *folder,
                            int64_t read_memory);

/* A graph in an attribute of a node. */
typedef struct onnx_branch {
    const Onnx__AttributeProto *attribute;
    Onnx__NodeProto **node;
    int node_count;
    onnx_tensor *initializer;
    int initializer_count;
    Onnx__ValueInfoProto **input, **output;
    int input_count, output_count;
} onnx_branch;

/* Parses a branch from its bytes; what it points to is in the file's arena. Errors as above. */
sdlf_status onnx_file_read_branch(onnx_file *file, const void *bytes, size_t size, onnx_branch *branch);

/* functions.c: inlines calls of the model's local functions. */
sdlf_status onnx_functions_inline(onnx_file *file);

/* SDLF_ERROR_IO if requested elements, of the file or of an external one, could not be read. */
sdlf_status onnx_file_check(const onnx_file *file);

void onnx_file_close(onnx_file *file);

#endif
