/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <cstdio>

namespace
{

struct dtype_pair {
    sdlf_dtype ours;
    nb::dlpack::dtype theirs;
};

constexpr nb::dlpack::dtype make_dtype(nb::dlpack::dtype_code code, int bits)
{
    return {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
}

const dtype_pair dtypes[] = {
    {SDLF_FLOAT32, make_dtype(nb::dlpack::dtype_code::Float, 32)},
    {SDLF_FLOAT64, make_dtype(nb::dlpack::dtype_code::Float, 64)},
    {SDLF_FLOAT16, make_dtype(nb::dlpack::dtype_code::Float, 16)},
    {SDLF_BFLOAT16, make_dtype(nb::dlpack::dtype_code::Bfloat, 16)},
    {SDLF_UINT8, make_dtype(nb::dlpack::dtype_code::UInt, 8)},
    {SDLF_INT32, make_dtype(nb::dlpack::dtype_code::Int, 32)},
    {SDLF_INT64, make_dtype(nb::dlpack::dtype_code::Int, 64)},
    {SDLF_INT8, make_dtype(nb::dlpack::dtype_code::Int, 8)},
    {SDLF_BOOL, make_dtype(nb::dlpack::dtype_code::Bool, 8)},
};

nb::dlpack::dtype to_dlpack(sdlf_dtype dtype)
{
    for (const dtype_pair &pair : dtypes)
        if (pair.ours == dtype) return pair.theirs;
    throw nb::type_error("a tensor without an element type");
}

} // namespace

std::string class_of(nb::handle object)
{
    return nb::cast<std::string>(nb::handle(reinterpret_cast<PyObject *>(Py_TYPE(object.ptr()))).attr("__name__"));
}

std::string space_of(const any_array &array)
{
    int type = array.device_type();
    if (type == nb::device::cpu::value) return SDLF_HOST_SPACE;
    return type == nb::device::cuda::value ? "cuda:" + std::to_string(array.device_id()) : "a device";
}

host_array to_host_array(nb::handle object, const std::string &what)
{
    host_array array;
    if (nb::try_cast(object, array)) return array;
    any_array elsewhere;
    if (nb::try_cast(object, elsewhere) && elsewhere.device_type() != nb::device::cpu::value)
        throw nb::type_error(
            (what + " lies on " + space_of(elsewhere) + ": copy it to the host (.cpu(), .get()) first").c_str());
    std::string found = class_of(object);
    if (found == "list") found += "; numpy.asarray makes one of it";
    if (found == "ndarray") found += " of dtype " + nb::cast<std::string>(object.attr("dtype").attr("str"));
    throw nb::type_error(
        (what + ": expected an array of numbers (NumPy's, or of a library with DLPack), found " + found).c_str());
}

sdlf_dtype dtype_of(const any_array &array, const std::string &what)
{
    for (const dtype_pair &pair : dtypes)
        if (pair.theirs == array.dtype()) return pair.ours;
    throw nb::type_error((what +
                          ": its element type is none of float16, bfloat16, float32, float64, uint8, int8, int32, "
                          "int64 and bool")
                             .c_str());
}

sdlf_shape shape_of(const any_array &array, const std::string &what)
{
    if (array.ndim() > SDLF_MAX_RANK)
        throw status_error(SDLF_ERROR_SHAPE, what + " has " + std::to_string(array.ndim()) + " axes; at most " +
                                                 std::to_string(SDLF_MAX_RANK) + " can be had");
    sdlf_shape shape = {};
    shape.rank = static_cast<int>(array.ndim());
    for (int i = 0; i < shape.rank; i++) shape.dim[i] = static_cast<int64_t>(array.shape(i));
    return shape;
}

sdlf_shape to_shape(nb::handle dimensions, const std::string &what)
{
    sdlf_shape shape = {};
    int64_t one;
    if (nb::try_cast(dimensions, one)) {
        shape.rank = 1;
        shape.dim[0] = one;
        return shape;
    }
    std::vector<int64_t> all;
    if (!nb::try_cast(dimensions, all))
        throw nb::type_error((what + ": expected a tuple of integers, found " + class_of(dimensions)).c_str());
    if (all.size() > SDLF_MAX_RANK)
        throw status_error(SDLF_ERROR_SHAPE, what + ": at most " + std::to_string(SDLF_MAX_RANK) + " axes can be had");
    shape.rank = static_cast<int>(all.size());
    std::copy(all.begin(), all.end(), shape.dim);
    return shape;
}

nb::tuple from_shape(const sdlf_shape &shape)
{
    nb::list dimensions;
    for (int i = 0; i < shape.rank; i++) dimensions.append(shape.dim[i]);
    return nb::tuple(dimensions);
}

bool converts(sdlf_dtype to, sdlf_dtype from)
{
    if (to == from) return true;
    if (to == SDLF_BOOL || from == SDLF_BOOL) return false;
    return sdlf_dtype_is_float(to) == sdlf_dtype_is_float(from);
}

static nb::object wrap(sdlf_dtype dtype, const sdlf_shape &shape, const int64_t *stride, void *data, nb::handle owner,
                       bool writable)
{
    if (dtype == SDLF_BFLOAT16)
        throw status_error(SDLF_ERROR_UNSUPPORTED, "NumPy has no bfloat16: ask for a plan of float32");
    size_t dims[SDLF_MAX_RANK];
    for (int i = 0; i < shape.rank; i++) dims[i] = static_cast<size_t>(shape.dim[i]);
    if (writable)
        return nb::cast(
            nb::ndarray<nb::numpy>(data, static_cast<size_t>(shape.rank), dims, owner, stride, to_dlpack(dtype)),
            nb::rv_policy::reference);
    return nb::cast(
        nb::ndarray<nb::numpy, nb::ro>(data, static_cast<size_t>(shape.rank), dims, owner, stride, to_dlpack(dtype)),
        nb::rv_policy::reference);
}

new_array make_array(sdlf_dtype dtype, const sdlf_shape &shape, const int64_t *stride)
{
    int64_t count = sdlf_shape_count(shape);
    size_t bytes = (count > 0 ? static_cast<size_t>(count) : 0) * sdlf_dtype_size(dtype);
    void *data = ::operator new(bytes > 0 ? bytes : 1, std::align_val_t(64));
    nb::capsule owner(data, [](void *p) noexcept { ::operator delete(p, std::align_val_t(64)); });
    return {wrap(dtype, shape, stride, data, owner, true), data};
}

nb::object view_device(const sdlf_tensor &tensor, const char *space, nb::handle owner)
{
    int device = 0;
    if (std::sscanf(space, "cuda:%d", &device) != 1)
        throw status_error(SDLF_ERROR_UNSUPPORTED, std::string("memory of ") + space + " cannot be seen from Python");
    size_t dims[SDLF_MAX_RANK];
    for (int i = 0; i < tensor.shape.rank; i++) dims[i] = static_cast<size_t>(tensor.shape.dim[i]);
    nb::ndarray<nb::array_api> view(tensor.data, static_cast<size_t>(tensor.shape.rank), dims, owner, tensor.stride,
                                    to_dlpack(tensor.dtype), nb::device::cuda::value, device);
    return nb::cast(view, nb::rv_policy::reference);
}

nb::object view_array(const sdlf_tensor &tensor, nb::handle owner, bool writable)
{
    return wrap(tensor.dtype, tensor.shape, tensor.stride, tensor.data, owner, writable);
}
