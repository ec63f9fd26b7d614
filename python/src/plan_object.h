/* SPDX-License-Identifier: MIT */
/* A plan and the objects that it keeps alive. */
#ifndef SDLF_PYTHON_PLAN_OBJECT_H
#define SDLF_PYTHON_PLAN_OBJECT_H

#include "common.h"

#include <functional>

/* An input or a result. */
struct plan_binding {
    std::string name;
    sdlf_binding binding; /* without a tensor: an unused input */
};

struct plan_object {
    std::shared_ptr<model_handle> model; /* NULL: the plan belongs to another object and has its weights */
    std::shared_ptr<calculator_handle> forward, backward;
    sdlf_plan *plan = nullptr;
    sdlf_mode mode = SDLF_INFER;
    int64_t batch = 0;
    uint64_t version = 0; /* version of the model's values in the plan */
    std::mutex mutex;     /* held while it runs */
    std::vector<plan_binding> inputs, outputs;

    plan_object() = default;
    plan_object(const plan_object &) = delete;
    ~plan_object();

    /* Call without the GIL, with exclusive use of this plan and its devices. */
    template <class function> auto alone(function &&call)
    {
        nb::gil_scoped_release released;
        std::lock_guard<std::mutex> locked(mutex);
        device_lock devices(forward, backward);
        return call();
    }

    /* Updates the plan to the model's current weights. */
    sdlf_status refresh();
};

std::shared_ptr<plan_object> make_plan(const std::shared_ptr<model_handle> &model, sdlf_plan_options options,
                                       std::shared_ptr<calculator_handle> forward,
                                       std::shared_ptr<calculator_handle> backward);

nb::object run_plan(plan_object &p, nb::args positional, nb::kwargs named);
/* Write the inputs, compute, read the results. */
nb::object run_with(plan_object &p, const nb::args &positional, const nb::kwargs &named,
                    const std::function<sdlf_status()> &work);
nb::object step_plan(plan_object &p, float rate, nb::args positional, nb::kwargs named);

#endif
