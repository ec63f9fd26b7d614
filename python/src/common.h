/* SPDX-License-Identifier: MIT */
/* Declarations shared by all parts of the binding: errors, shapes, element types, arrays. */
#ifndef SDLF_PYTHON_COMMON_H
#define SDLF_PYTHON_COMMON_H

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <sdlf/sdlf.h>

namespace nb = nanobind;

/* A status other than SDLF_OK, with the library's message; Python sees the exception class of that status. */
struct status_error : std::runtime_error {
    explicit status_error(sdlf_status status);
    status_error(sdlf_status status, const std::string &message) : std::runtime_error(message), status(status)
    {
    }
    sdlf_status status;
};

inline void check(sdlf_status status)
{
    if (status != SDLF_OK) throw status_error(status);
}

/* ---- arrays ---- */

/* Row-major, in host memory; other arrays are copied. */
using host_array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
/* Row-major, in any memory. */
using any_array = nb::ndarray<nb::ro, nb::c_contig>;

/* The memory space of an array, in the form of a calculator's `space`: "host", "cuda:0", or "a device" for an unsupported one. */
std::string space_of(const any_array &array);

/* `what` names the array in messages. Throws a TypeError if the object is not an array or is on a device. */
host_array to_host_array(nb::handle object, const std::string &what);
std::string class_of(nb::handle object); /* the class name, for messages */
sdlf_dtype dtype_of(const any_array &array, const std::string &what);
sdlf_shape shape_of(const any_array &array, const std::string &what);
inline sdlf_dtype dtype_of(const host_array &array, const std::string &what)
{
    return dtype_of(any_array(array), what);
}
inline sdlf_shape shape_of(const host_array &array, const std::string &what)
{
    return shape_of(any_array(array), what);
}
sdlf_shape to_shape(nb::handle dimensions, const std::string &what);
nb::tuple from_shape(const sdlf_shape &shape);

/* True if `from` converts to `to` without changing its kind (float to float, integer to integer). */
bool converts(sdlf_dtype to, sdlf_dtype from);

/* A new NumPy array and a pointer to its elements. */
struct new_array {
    nb::object object;
    void *data;
};
new_array make_array(sdlf_dtype dtype, const sdlf_shape &shape, const int64_t *stride = nullptr);

/* A DLPack object over memory of the CUDA device "cuda:N"; it keeps `owner` alive. */
nb::object view_device(const sdlf_tensor &tensor, const char *space, nb::handle owner);

/* A NumPy array over the tensor's memory; it keeps `owner` alive. */
nb::object view_array(const sdlf_tensor &tensor, nb::handle owner, bool writable);

/* ---- options: structs described by a table of fields ---- */

template <class T> T value_of(nb::handle word, const std::string &what, const char *expected)
{
    T value;
    if (!nb::try_cast(word, value))
        throw nb::type_error((what + ": expected " + expected + ", found " +
                              (std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && PyLong_CheckExact(word.ptr())
                                   ? "one that is out of range"
                                   : class_of(word)))
                                 .c_str());
    return value;
}

/* Accepts one integer for both directions, or two: vertical, horizontal. */
std::pair<int, int> pair_of(nb::handle word, const std::string &what);

sdlf_math math_of(const std::string &name);

/* Writes each keyword to its field of the struct; `type` names the struct in messages ("conv2d"). Throws a TypeError for an unknown
 * keyword and a ValueError for an unknown choice. */
void fill_options(const sdlf_field *fields, void *options, const nb::dict &words, const char *type);

/* ---- objects shared by several classes ---- */

struct model_handle {
    explicit model_handle(sdlf_model *model) : model(model)
    {
    }
    ~model_handle()
    {
        sdlf_model_free(model);
    }
    model_handle(const model_handle &) = delete;
    sdlf_model *model;
    std::recursive_mutex mutex; /* held while the model is changed or used; never waited for while holding the GIL */
    std::atomic<int> views{0};  /* arrays over the parameters' memory */
    std::atomic<int> plans{0};  /* of the model, including trainers */
    std::atomic<uint64_t> version{0}; /* of the values; counts the changes made from Python */
};

struct calculator_handle {
    explicit calculator_handle(sdlf_calculator *calculator) : calculator(calculator)
    {
    }
    ~calculator_handle()
    {
        sdlf_calculator_close(calculator);
    }
    calculator_handle(const calculator_handle &) = delete;
    sdlf_calculator *calculator;
    std::mutex mutex; /* for device calculators only, which one thread at a time may use */
};

/* Locks those of the calculators (the second may be NULL) that are not on the host. The lock order is: plan, calculators, model. No lock
 * is waited for while holding the GIL. */
struct device_lock {
    device_lock(const std::shared_ptr<calculator_handle> &a, const std::shared_ptr<calculator_handle> &b);
    std::unique_lock<std::mutex> first, second;
};

/* True if this thread holds the GIL. The stable ABI lacks PyGILState_Check; it is used from 3.12 on, where the current thread state is
 * thread-local. */
inline bool has_python_lock()
{
#ifdef Py_LIMITED_API
    return PyThreadState_GetDict() != nullptr;
#else
    return PyGILState_Check() != 0;
#endif
}

/* Call without the GIL, one thread at a time. */
template <class mutex, class function> auto alone(mutex &lock, function &&call)
{
    nb::gil_scoped_release released;
    std::lock_guard<mutex> locked(lock);
    return call();
}

struct plan_object;

/* The Python model object: a model with cached plans for the batch sizes that it was last run with. */
struct model_object {
    explicit model_object(sdlf_model *model) : handle(std::make_shared<model_handle>(model))
    {
    }
    std::shared_ptr<model_handle> handle;
    std::mutex cache_mutex;
    std::vector<std::shared_ptr<plan_object>> cache; /* most recently used last */
    std::shared_ptr<calculator_handle> calculator;   /* used by run; NULL: not opened yet */
    void forget_plans();
    sdlf_model *get() const
    {
        return handle->model;
    }
};

/* One output of one layer. */
struct node_object {
    nb::object model; /* Python object */
    std::shared_ptr<model_handle> handle;
    sdlf_node node;
    sdlf_model *get() const
    {
        return handle->model;
    }
};

std::vector<std::string> input_names(const sdlf_model *model);

/* Throws if the model has plans other than its cached ones; the cached plans are dropped. */
void require_no_plans(model_object &m, const char *action);

/* Throws if arrays over the parameters are in use, because `action` would free their memory. */
void require_no_views(const model_object &m, const char *action);

/* Model.run and Model.use: run.cpp. */
nb::object run_model(model_object &m, nb::args positional, nb::kwargs named);
void use_calculator(model_object &m, const std::string &calculator, int threads, int device, const std::string &math);

/* Opens a calculator, or returns the one that is already open. */
std::shared_ptr<calculator_handle> open_calculator(const std::string &name, int threads, int device,
                                                   const std::string &math);
sdlf_optimizer to_optimizer(nb::handle object);
sdlf_schedule to_schedule(nb::handle object);
sdlf_loss to_loss(const std::string &name);

/* Parses (means, deviations): one for all channels, or one per channel. */
void read_normalization(nb::handle object, float &mean, float &scale, sdlf_channel_normalization &channels);

void bind_errors();
void bind_model(nb::module_ &module);
void bind_files(nb::class_<model_object> &type);
void bind_parameters(nb::class_<model_object> &type);
void bind_plan(nb::module_ &module);
void bind_dataset(nb::module_ &module);
void bind_trainer(nb::module_ &module);
void bind_quantize(nb::module_ &module);
void bind_stateful(nb::module_ &module);
void bind_sized(nb::module_ &module);

#endif
