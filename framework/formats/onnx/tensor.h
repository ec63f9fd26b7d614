/* SPDX-License-Identifier: MIT */
/* A TensorProto that is read where it lies: shape, element type, and where the elements are. */
#ifndef SDLF_FORMATS_ONNX_TENSOR_H
#define SDLF_FORMATS_ONNX_TENSOR_H

#include <sdlf/tensor.h>

#include "framework/formats/onnx/arena.h"
#include "framework/formats/onnx/import/block.h"
#include "framework/formats/onnx/map.h"
#include "framework/formats/onnx/wire.h"

/* TensorProto.DataType, as the standard numbers them. */
typedef enum onnx_type {
    ONNX_UNDEFINED = 0,
    ONNX_FLOAT = 1,
    ONNX_UINT8,
    ONNX_INT8,
    ONNX_UINT16,
    ONNX_INT16,
    ONNX_INT32,
    ONNX_INT64,
    ONNX_STRING,
    ONNX_BOOL,
    ONNX_FLOAT16,
    ONNX_DOUBLE,
    ONNX_UINT32,
    ONNX_UINT64,
    ONNX_COMPLEX64,
    ONNX_COMPLEX128,
    ONNX_BFLOAT16,
    ONNX_FLOAT8E4M3FN,
    ONNX_FLOAT8E4M3FNUZ,
    ONNX_FLOAT8E5M2,
    ONNX_FLOAT8E5M2FNUZ,
    ONNX_UINT4,
    ONNX_INT4,
    ONNX_FLOAT4E2M1,
    ONNX_FLOAT8E8M0,
    ONNX_UINT2,
    ONNX_INT2,
    ONNX_TYPE_COUNT
} onnx_type;

/* "float", "int64", ...; "unknown type" for what is not listed. */
const char *onnx_type_name(int type);

/* Bytes of an element; 0 for strings, complex numbers and unknown types, which are not read. Those of less than a byte
 * have one each. */
size_t onnx_type_size(int type);
/* How many elements share a byte in a file: 2 of 4 bits, 4 of 2 bits, else 1. */
int onnx_type_packed(int type);

/* The dtype that SDLF computes such values in, or SDLF_NONE. */
sdlf_dtype onnx_type_dtype(int type);
/* The same, and where SDLF has nothing of that size, the larger one that holds it: int32 for int16 and uint16, int64
 * for uint32, int8 and uint8 for integers of 4 and 2 bits, float32 for floats of 8 and 4 bits. narrow_integers.c says
 * where they may stand. */
sdlf_dtype onnx_type_computed(int type);
/* An integer as that type has it: of the narrow ones the low bits, with the sign that these have. */
int64_t onnx_type_wrap(int type, int64_t value);
/* A float of 8 or 4 bits, and the value of one (small_float_values.c). */
bool onnx_type_is_small_float(int type);
float onnx_small_float_decode(onnx_type type, uint8_t bits);
/* The way back: the type that a tensor of that dtype has in a file. */
onnx_type onnx_type_of(sdlf_dtype dtype);

typedef struct onnx_tensor {
    const char *name; /* "" if it has none */
    onnx_type type;
    sdlf_shape shape; /* may hold no elements: a dimension may be 0 */
    int64_t count;
    const void *data;  /* `count` elements, row-major, little endian, at any address; borrowed */
    onnx_block *block; /* that they lie in, where they were worked out */
    onnx_map *map;     /* they are still in a file: onnx_tensor_load brings them; NULL: they are there */
    bool uniform;      /* there is one element, which stands for all `count` */
    bool learned; /* a parameter of the network, as it stands in the file or seen otherwise: training is to change it */
    int scale_axis; /* of what was dequantised: the axis along which scales differ, or blocks lie; -1: one scale */
    int64_t scale_length; /* its indices that share one; 0: it was not dequantised */
    bool batched;         /* there is none, in each of as many samples as the plan's batch has */
} onnx_tensor;

/* Where tensors outside of the model's file may be. */
typedef struct onnx_folder {
    const char *path; /* the model's folder; NULL: external data are refused */
    struct onnx_external *files;
} onnx_folder;
void onnx_folder_release(onnx_folder *folder);
/* Bytes of its files that were opened. */
int64_t onnx_folder_bytes(const onnx_folder *folder);
/* SDLF_ERROR_IO if elements of one of its files could not be read. */
sdlf_status onnx_folder_check(const onnx_folder *folder);

/* Read a TensorProto. What is decoded goes into the arena. Errors: SDLF_ERROR_FORMAT with file, byte and name;
 * SDLF_ERROR_UNSUPPORTED for strings and the like; SDLF_ERROR_IO and SDLF_ERROR_MEMORY. */
sdlf_status onnx_tensor_read(onnx_tensor *tensor, wire_reader reader, onnx_folder *folder, onnx_arena *arena);

/* Have elements first .. first + count - 1 where `data` says they are. What cannot be read is zeros, and
 * onnx_file_check tells. */
void onnx_tensor_load(const onnx_tensor *tensor, int64_t first, int64_t count);

/* Elements first .. first + count - 1, converted as sdlf_convert does (bool: 0 or 1; what has no dtype goes through
 * int64, exactly except for uint64 from 2^63, which saturates). */
void onnx_tensor_convert(const onnx_tensor *tensor, int64_t first, int64_t count, sdlf_dtype to, void *out);

/* Data that lie outside (see external.c): `location` inside the folder, from `offset`, `size` bytes, as the
 * tensor's. */
sdlf_status onnx_external_find(onnx_folder *folder, const wire_reader *reader, const char *location, uint64_t offset,
                               uint64_t size, onnx_tensor *tensor);

#endif
