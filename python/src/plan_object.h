/* A plan, and what it keeps alive. */
#ifndef SDLF_PYTHON_PLAN_OBJECT_H
#define SDLF_PYTHON_PLAN_OBJECT_H

#include "common.h"

struct plan_input {
    std::string name;
    sdlf_binding binding;
};

struct plan_object {
    std::shared_ptr<model_handle> model;
    std::shared_ptr<calculator_handle> forward, backward;
    sdlf_plan *plan = nullptr;
    sdlf_mode mode = SDLF_INFER;
    int64_t batch = 0;
    uint64_t version = 0; /* of the model's values that it has */
    std::mutex mutex;     /* held while it runs */
    std::vector<plan_input> inputs, outputs;

    plan_object() = default;
    plan_object(const plan_object &) = delete;
    ~plan_object()
    {
        sdlf_plan_free(plan);
    }

    /* The weights of the model as it is now. */
    sdlf_status refresh();
};

std::shared_ptr<plan_object> make_plan(const std::shared_ptr<model_handle> &model, sdlf_plan_options options,
                                       std::shared_ptr<calculator_handle> forward,
                                       std::shared_ptr<calculator_handle> backward);

#endif
