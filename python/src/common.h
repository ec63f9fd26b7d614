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

/* `what` names the array in messages. Throws a TypeError for what is no array, or lies on a device. */
host_array to_host_array(nb::handle object, const std::string &what);
sdlf_dtype dtype_of(const host_array &array, const std::string &what);
sdlf_shape shape_of(const host_array &array, const std::string &what);
sdlf_shape to_shape(nb::handle dimensions, const std::string &what);
nb::tuple from_shape(const sdlf_shape &shape);

/* Does a value of `from` become one of `to` without changing its kind (float to float, integer to integer)? */
bool converts(sdlf_dtype to, sdlf_dtype from);

/* A new NumPy array, and where its elements are. */
struct new_array {
    nb::object object;
    void *data;
};
new_array make_array(sdlf_dtype dtype, const sdlf_shape &shape);

/* A NumPy array over memory that lives as long as `owner`. */
nb::object view_array(const sdlf_tensor &tensor, nb::handle owner, bool writable);

/* ---- options: structs that a table of fields describes ---- */

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
    std::recursive_mutex
        mutex;                 /* held while the model is changed or looked at, never while waiting for Python's lock */
    std::atomic<int> views{0}; /* arrays over values of its parameters */
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
};

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

/* Model.run and Model.use: plan.cpp. */
nb::object run_model(model_object &m, nb::args positional, nb::kwargs named);
void use_calculator(model_object &m, const std::string &calculator, int threads, int device, const std::string &math);

std::shared_ptr<calculator_handle> open_calculator(const std::string &name, int threads, int device,
                                                   const std::string &math);
sdlf_optimizer to_optimizer(nb::handle object);
sdlf_schedule to_schedule(nb::handle object);

void bind_errors(nb::module_ &module);
void bind_model(nb::module_ &module);
void bind_plan(nb::module_ &module);
void bind_training(nb::module_ &module);

#endif
