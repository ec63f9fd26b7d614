/* SPDX-License-Identifier: MIT */
/* Data sets whose samples are produced by a Python function, on a loader's demand. */
#include "dataset_object.h"

#include <condition_variable>
#include <cstring>
#include <unistd.h>
#include <utility>

namespace
{

/* When Python exits, it kills threads that hold the GIL or wait for it, which C++ code cannot survive. Calls are therefore counted: at
 * exit, Python waits for those that have begun, and no new one may begin. */
struct gate {
    std::mutex mutex;
    std::condition_variable changed;
    int inside = 0;
    bool closed = false;
    pid_t process = getpid(); /* a forked child has none of the threads */
};

gate &calls()
{
    static gate *const one = new gate; /* never freed: outlives every thread */
    return *one;
}

bool enter()
{
    gate &g = calls();
    std::lock_guard<std::mutex> locked(g.mutex);
    if (!g.closed) g.inside++;
    return !g.closed;
}

void leave()
{
    gate &g = calls();
    std::lock_guard<std::mutex> locked(g.mutex);
    g.inside--;
    g.changed.notify_all();
}

void close_calls()
{
    nb::gil_scoped_release released;
    gate &g = calls();
    std::unique_lock<std::mutex> locked(g.mutex);
    g.closed = true;
    g.changed.wait(locked, [&] { return g.inside == 0 || g.process != getpid(); });
}

/* Copies the array returned by the function into the batch. */
void take_sample(const sample_function &f, nb::handle returned, int64_t index, void *to)
{
    std::string what = "sample " + std::to_string(index);
    host_array array = to_host_array(returned, what);
    sdlf_shape shape = shape_of(array, what);
    sdlf_dtype dtype = dtype_of(array, what);
    if (!sdlf_shape_equal(shape, f.shape))
        throw status_error(SDLF_ERROR_SHAPE, what + ": expected " + sdlf_shape_print(f.shape).text + ", found " +
                                                 sdlf_shape_print(shape).text);
    if (!converts(f.dtype, dtype))
        throw nb::type_error(
            (what + ": expected " + sdlf_dtype_name(f.dtype) + ", found " + sdlf_dtype_name(dtype)).c_str());
    sdlf_convert(f.dtype, to, dtype, array.data(), sdlf_shape_count(shape));
}

/* Call with the GIL. No exception may pass through the library: what the function raises is kept for check_read. */
sdlf_status call(sample_function &f, int64_t index, void *to)
{
    nb::gil_scoped_acquire held;
    try {
        take_sample(f, f.call(index), index, to);
        return SDLF_OK;
    } catch (const std::exception &) {
        std::lock_guard<std::mutex> locked(f.mutex);
        if (!f.raised) {
            f.raised = std::current_exception();
            f.message = "sample " + std::to_string(index) + ": the function that makes it has raised an exception";
        }
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s", f.message.c_str());
    }
}

/* Called on a loader's thread. */
sdlf_status read_sample(void *context, int64_t index, void *to)
{
    if (!enter()) return sdlf_fail(SDLF_ERROR_INTERRUPTED, "Python is ending");
    sdlf_status status = call(*static_cast<sample_function *>(context), index, to);
    leave();
    return status;
}

} // namespace

void dataset_object::rethrow()
{
    std::unique_lock<std::mutex> locked(function.mutex);
    if (!function.raised || std::strstr(sdlf_error_message(), function.message.c_str()) == nullptr) return;
    std::exception_ptr raised = std::exchange(function.raised, nullptr);
    locked.unlock();
    std::rethrow_exception(raised);
}

void check_read(sdlf_status status, const std::shared_ptr<dataset_object> &a, const std::shared_ptr<dataset_object> &b)
{
    if (status == SDLF_OK) return;
    if (a) a->rethrow();
    if (b) b->rethrow();
    check(status);
}

std::shared_ptr<dataset_object> dataset_of_function(nb::object function, nb::handle labels, nb::handle shape,
                                                    const std::string &dtype, nb::object classes,
                                                    nb::object normalization, int readers)
{
    if (!PyCallable_Check(function.ptr()))
        throw nb::type_error(("function: expected a function (index) -> sample, found " + class_of(function)).c_str());
    if (dtype != "uint8" && dtype != "float32")
        throw nb::value_error(("dtype '" + dtype + "' is neither uint8 nor float32").c_str());
    if (readers < 1 || readers > 256)
        throw nb::value_error(("readers: expected 1 to 256, found " + std::to_string(readers)).c_str());
    std::shared_ptr<dataset_object> made = std::make_shared<dataset_object>();
    sample_function &f = made->function;
    f.call = std::move(function);
    f.shape = to_shape(shape, "shape");
    f.dtype = dtype == "uint8" ? SDLF_UINT8 : SDLF_FLOAT32;
    sdlf_shape all = {};
    all.rank = f.shape.rank + 1;
    if (f.shape.rank < 1 || all.rank > SDLF_MAX_RANK)
        throw status_error(SDLF_ERROR_SHAPE,
                           std::string("shape: expected that of a sample, found ") + sdlf_shape_print(f.shape).text);
    for (int i = 0; i < f.shape.rank; i++) {
        if (f.shape.dim[i] < 1)
            throw status_error(SDLF_ERROR_SHAPE,
                               std::string("shape: expected sizes from 1 on, found ") + sdlf_shape_print(f.shape).text);
        all.dim[i + 1] = f.shape.dim[i];
    }
    all.dim[0] = static_cast<int64_t>(nb::len(labels));
    sdlf_dataset &d = made->own;
    d.samples = sdlf_tensor_view(f.dtype, all, nullptr);
    take_labels(*made, labels, classes, all.dim[0]);
    take_normalization(*made, normalization);
    d.read = read_sample;
    d.read_context = &f;
    d.readers = readers;
    return made;
}

void bind_dataset_function()
{
    calls();
    nb::module_::import_("atexit").attr("register")(nb::cpp_function(&close_calls));
}
