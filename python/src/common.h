/* SPDX-License-Identifier: MIT */
/* What all parts of the binding share: errors, shapes, element types, arrays. */
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

/* A status that is not SDLF_OK, with the library's message; Python sees the exception class of that status. */
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

/* Row-major, in host memory; another array is copied into one. */
using host_array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
/* Row-major, in any memory. */
using any_array = nb::ndarray<nb::ro, nb::c_contig>;

/* Where it lies, as a calculator's `space` has it: "host", "cuda:0", else "a device" that no calculator computes on. */
std::string space_of(const any_array &array);

/* `what` names the array in messages. Throws a TypeError for what is no array, or lies on a device. */
host_array to_host_array(nb::handle object, const std::string &what);
std::string class_of(nb::handle object); /* the name of its class, for messages */
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

/* Does a value of `from` become one of `to` without changing its kind (float to float, integer to integer)? */
bool converts(sdlf_dtype to, sdlf_dtype from);

/* A new NumPy array, and where its elements are. */
struct new_array {
    nb::object object;
    void *data;
};
new_array make_array(sdlf_dtype dtype, const sdlf_shape &shape, const int64_t *stride = nullptr);

/* An object with DLPack over memory of CUDA's device "cuda:N", which lives as long as `owner`. */
nb::object view_device(const sdlf_tensor &tensor, const char *space, nb::handle owner);

/* A NumPy array over memory that lives as long as `owner`. */
nb::object view_array(const sdlf_tensor &tensor, nb::handle owner, bool writable);

/* ---- options: structs that a table of fields describes ---- */

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

/* One integer for both, or two: vertical, horizontal. */
std::pair<int, int> pair_of(nb::handle word, const std::string &what);

sdlf_math math_of(const std::string &name);

/* Puts each keyword into the struct; `type` names it in messages ("conv2d"). Throws a TypeError for a keyword that no field has, and a
 * ValueError for a choice that there is not. */
void fill_options(const sdlf_field *fields, void *options, const nb::dict &words, const char *type);

/* ---- objects that several classes refer to ---- */

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
    std::recursive_mutex mutex; /* held while the model is changed or used; waited for without Python's lock alone */
    std::atomic<int> views{0};  /* arrays over values of its parameters */
    std::atomic<int> plans{0};  /* of it, trainers too */
    std::atomic<uint64_t> version{0}; /* of the values, as far as Python has changed them */
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
    std::mutex mutex; /* of one that is not on the host, whose work is for one thread at a time */
};

/* Holds the calculators (the second may be NULL) that are not on the host. Locks are taken in this order: a plan's, calculators', the
 * model's; none is waited for with Python's lock. */
struct device_lock {
    device_lock(const std::shared_ptr<calculator_handle> &a, const std::shared_ptr<calculator_handle> &b);
    std::unique_lock<std::mutex> first, second;
};

/* Has this thread Python's lock? The stable interface has no PyGILState_Check; where it is used, from 3.12 on, the current thread state is
 * each thread's own. */
inline bool has_python_lock()
{
#ifdef Py_LIMITED_API
    return PyThreadState_GetDict() != nullptr;
#else
    return PyGILState_Check() != 0;
#endif
}

/* Call without Python's lock, one thread at a time. */
template <class mutex, class function> auto alone(mutex &lock, function &&call)
{
    nb::gil_scoped_release released;
    std::lock_guard<mutex> locked(lock);
    return call();
}

struct plan_object;

/* A model as Python has it: with plans for the batches that it was last run with. */
struct model_object {
    explicit model_object(sdlf_model *model) : handle(std::make_shared<model_handle>(model))
    {
    }
    std::shared_ptr<model_handle> handle;
    std::mutex cache_mutex;
    std::vector<std::shared_ptr<plan_object>> cache; /* the last used one last */
    std::shared_ptr<calculator_handle> calculator;   /* of run; NULL: none was needed yet */
    void forget_plans();
    sdlf_model *get() const
    {
        return handle->model;
    }
};

/* One output of one layer. */
struct node_object {
    nb::object model; /* Python's */
    std::shared_ptr<model_handle> handle;
    sdlf_node node;
    sdlf_model *get() const
    {
        return handle->model;
    }
};

std::vector<std::string> input_names(const sdlf_model *model);

/* Throws where there are plans of it, beside those that it keeps itself; these are forgotten. */
void require_no_plans(model_object &m, const char *action);

/* Throws where arrays over its parameters are in use, which `action` would free. */
void require_no_views(const model_object &m, const char *action);

/* Model.run and Model.use: run.cpp. */
nb::object run_model(model_object &m, nb::args positional, nb::kwargs named);
void use_calculator(model_object &m, const std::string &calculator, int threads, int device, const std::string &math);

/* One that is open already is used again. */
std::shared_ptr<calculator_handle> open_calculator(const std::string &name, int threads, int device,
                                                   const std::string &math);
sdlf_optimizer to_optimizer(nb::handle object);
sdlf_schedule to_schedule(nb::handle object);
sdlf_loss to_loss(const std::string &name);

/* (means, deviations), one of all or one of each channel. */
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
