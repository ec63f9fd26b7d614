/* An ONNX file as it is: its nodes, weights, inputs and outputs, before anything is made of them. */
#ifndef SDLF_FORMATS_ONNX_FILE_H
#define SDLF_FORMATS_ONNX_FILE_H

#include "framework/formats/onnx/onnx.pb-c.h"
#include "framework/formats/onnx/tensor.h"

typedef struct onnx_file {
    const char *path;
    onnx_arena arena; /* of everything below */
    onnx_map map;
    onnx_folder folder;
    int64_t ir_version, opset;
    const char *producer, *producer_version, *graph_name; /* "" where the file is silent */
    Onnx__NodeProto **node;
    int node_count;
    onnx_tensor *initializer;
    int initializer_count;
    int64_t initializer_bytes;
    Onnx__ValueInfoProto **input, **output;
    int input_count, output_count;
    bool has_functions, has_sparse;
} onnx_file;

/* Map and read a model. Nothing of the weights is looked at but where they are. Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT
 * with file and byte, SDLF_ERROR_UNSUPPORTED, SDLF_ERROR_MEMORY. In every case onnx_file_close gives back what was taken. */
sdlf_status onnx_file_open(onnx_file *file, const char *path);

/* The same from memory (borrowed until closed); external data are refused. */
sdlf_status onnx_file_parse(onnx_file *file, const void *bytes, size_t size, const char *name);

void onnx_file_close(onnx_file *file);

#endif
