/* SPDX-License-Identifier: MIT */
/* A TensorProto read in place: shape, element type, and the location of the elements. */
#ifndef SDLF_FORMATS_ONNX_TENSOR_H
#define SDLF_FORMATS_ONNX_TENSOR_H

#include <sdlf/tensor.h>

#include "framework/formats/onnx/arena.h"
#include "framework/formats/onnx/import/block.h"
#include "framework/formats/onnx/map.h"
#include "framework/formats/onnx/wire.h"

/* TensorProto.DataType, with the standard's values. */
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

/* "float", "int64", ...; "unknown type" for unlisted types. */
const char *onnx_type_name(int type);

/* Bytes per element; 0 for strings, complex numbers and unknown types, which are not supported. Sub-byte types take one
 * byte each. */
size_t onnx_type_size(int type);
/* The number of elements that share a byte in a file: 2 of 4 bits, 4 of 2 bits, else 1. */
int onnx_type_packed(int type);

/* The dtype in which SDLF computes such values, or SDLF_NONE. */
sdlf_dtype onnx_type_dtype(int type);
/* The same, or, if SDLF has no dtype of that size, a larger one that holds it: int32 for int16 and uint16, int64 for
 * uint32, int8 and uint8 for integers of 4 and 2 bits, float32 for floats of 8 and 4 bits. narrow_integers.c specifies
 * where they are allowed. */
sdlf_dtype onnx_type_computed(int type);
/* Wraps an integer to that type: for narrow types the low bits, sign-extended if the type is signed. */
int64_t onnx_type_wrap(int type, int64_t value);
/* Whether the type is a float of 8 or 4 bits, and the value of one (small_float_values.c). */
bool onnx_type_is_small_float(int type);
float onnx_small_float_decode(onnx_type type, uint8_t bits);
/* The inverse: the type that a tensor of that dtype has in a file. */
onnx_type onnx_type_of(sdlf_dtype dtype);

typedef struct onnx_tensor {
    const char *name; /* "" if it has none */
    onnx_type type;
    sdlf_shape shape; /* may hold no elements: a dimension may be 0 */
    int64_t count;
    const void *data;     /* `count` elements, row-major, little endian, at any address; borrowed */
    onnx_block *block;    /* that holds them, if they were computed */
    onnx_map *map;        /* the file that still holds them: onnx_tensor_load reads them; NULL: in memory */
    bool uniform;         /* one stored element represents all `count` */
    bool learned;         /* a parameter of the network, as stored in the file or as a view: training changes it */
    int scale_axis;       /* if dequantised: the axis along which scales differ, or of the blocks; -1: one scale */
    int64_t scale_length; /* indices of that axis that share a scale; 0: not dequantised */
    bool batched;         /* empty, in each of as many samples as the plan's batch has */
} onnx_tensor;

/* Where tensors outside the model's file may be. */
typedef struct onnx_folder {
    const char *path; /* the model's folder; NULL: external data are rejected */
    struct onnx_external *files;
} onnx_folder;
void onnx_folder_release(onnx_folder *folder);
/* Bytes of its files that were opened. */
int64_t onnx_folder_bytes(const onnx_folder *folder);
/* SDLF_ERROR_IO if elements of one of its files could not be read. */
sdlf_status onnx_folder_check(const onnx_folder *folder);

/* Reads a TensorProto. Decoded elements are stored in the arena. Errors: SDLF_ERROR_FORMAT with file, byte and name;
 * SDLF_ERROR_UNSUPPORTED for strings and the like; SDLF_ERROR_IO and SDLF_ERROR_MEMORY. */
sdlf_status onnx_tensor_read(onnx_tensor *tensor, wire_reader reader, onnx_folder *folder, onnx_arena *arena);

/* Makes elements first .. first + count - 1 available at `data`. Elements that cannot be read are zeros, which
 * onnx_file_check reports. */
void onnx_tensor_load(const onnx_tensor *tensor, int64_t first, int64_t count);

/* Elements first .. first + count - 1, converted as by sdlf_convert (bool: 0 or 1; types without a dtype go through
 * int64, exactly except for uint64 from 2^63, which saturates). */
void onnx_tensor_convert(const onnx_tensor *tensor, int64_t first, int64_t count, sdlf_dtype to, void *out);

/* Sets the tensor's data to external data (see external.c): `location` inside the folder, from `offset`, `size`
 * bytes. */
sdlf_status onnx_external_find(onnx_folder *folder, const wire_reader *reader, const char *location, uint64_t offset,
                               uint64_t size, onnx_tensor *tensor);

#endif
