/* SPDX-License-Identifier: MIT */
/* Models that are run step by step: <sdlf/stateful.h>. */
#include "plan_object.h"

#include <algorithm>

#include <sdlf/stateful.h>

namespace
{

using names = std::vector<std::string>;
using pairs = std::vector<std::pair<std::string, std::string>>;

/* The names in an ONNX file. */
std::pair<names, names> input_and_output_names(const std::string &path)
{
    sdlf_onnx_report *report = nullptr;
    {
        nb::gil_scoped_release released;
        check(sdlf_onnx_inspect(&report, path.c_str(), nullptr));
    }
    std::pair<names, names> found;
    for (int i = 0; i < report->input_count; i++) found.first.push_back(report->input[i].name);
    for (int i = 0; i < report->output_count; i++) found.second.push_back(report->output[i].name);
    sdlf_onnx_report_free(report);
    return found;
}

/* Not thread-safe: the Python class serialises calls. */
struct stateful_object {
    plan_object plan; /* without a model; the C object owns its contents */
    sdlf_stateful *stateful = nullptr;

    stateful_object(const std::string &path, const pairs &states, const names &inputs, const names &outputs,
                    const std::vector<std::pair<std::string, int64_t>> &dimensions, int64_t capacity,
                    const std::string &calculator, int threads)
    {
        std::vector<sdlf_state> state;
        std::vector<sdlf_onnx_dimension> dimension;
        for (const auto &one : states) state.push_back({one.first.c_str(), one.second.c_str(), 0});
        for (const auto &one : dimensions) dimension.push_back({one.first.c_str(), one.second});
        plan.forward = open_calculator(calculator, threads, 0, "fp32");
        sdlf_stateful_options options = {};
        options.calculator = plan.forward->calculator;
        options.states = state.data();
        options.state_count = static_cast<int>(state.size());
        options.capacity = capacity;
        options.dimensions = dimension.data();
        options.dimension_count = static_cast<int>(dimension.size());
        check(plan.alone([&] { return sdlf_stateful_create(&stateful, path.c_str(), &options); }));
        for (const std::string &name : inputs) plan.inputs.push_back({name, {}});
        for (const std::string &name : outputs) plan.outputs.push_back({name, {}});
    }

    stateful_object(const stateful_object &) = delete;

    ~stateful_object()
    {
        plan.alone([&] {
            sdlf_stateful_free(stateful);
            return SDLF_OK;
        });
    }

    /* Bind the inputs and outputs of a step, with their current sizes. */
    void prepare()
    {
        check(plan.alone([&] { return sdlf_stateful_prepare(stateful, &plan.plan); }));
        for (plan_binding &input : plan.inputs)
            if (sdlf_plan_input(plan.plan, input.name.c_str(), &input.binding) != SDLF_OK) input.binding = {};
        for (plan_binding &output : plan.outputs)
            check(sdlf_plan_output(plan.plan, output.name.c_str(), &output.binding));
    }

    nb::object run(nb::args positional, nb::kwargs named)
    {
        prepare();
        return run_with(plan, positional, named, [this] { return sdlf_stateful_run(stateful); });
    }

    nb::dict shapes()
    {
        prepare();
        nb::dict d;
        for (const plan_binding &input : plan.inputs)
            if (input.binding.calculator != nullptr) d[input.name.c_str()] = from_shape(input.binding.tensor.shape);
        return d;
    }
};

} // namespace

void bind_stateful(nb::module_ &module)
{
    module.def("_onnx_names", &input_and_output_names, nb::arg("path"));
    nb::class_<stateful_object>(module, "_Stateful")
        .def(nb::init<const std::string &, const pairs &, const names &, const names &,
                      const std::vector<std::pair<std::string, int64_t>> &, int64_t, const std::string &, int>(),
             nb::arg("path"), nb::arg("states"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("dimensions"),
             nb::arg("capacity"), nb::arg("calculator"), nb::arg("threads"))
        .def("run", &stateful_object::run,
             nb::sig("def run(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any"))
        .def("shapes", &stateful_object::shapes, nb::sig("def shapes(self) -> dict[str, tuple[int, ...]]"))
        .def(
            "rewind",
            [](stateful_object &s, int64_t length) {
                check(s.plan.alone([&] { return sdlf_stateful_rewind(s.stateful, length); }));
            },
            nb::arg("length"))
        .def_prop_ro("length", [](const stateful_object &s) { return sdlf_stateful_length(s.stateful); })
        .def_prop_ro("step", [](const stateful_object &s) { return sdlf_stateful_step(s.stateful); });
}
