/* SPDX-License-Identifier: MIT */
/* An ONNX file whose open sizes follow the arrays that it is run with. */
#include "plan_object.h"

#include <sdlf/plan_cache.h>

namespace
{

using names = std::vector<std::string>;

/* Not thread-safe: the Python class serialises calls. */
struct sized_object {
    plan_object plan; /* without a model; the C object owns its contents */
    sdlf_plan_cache *plans = nullptr;

    sized_object(const std::string &path, const names &inputs, const names &outputs, int keep,
                 const std::string &calculator, int threads, int device, const std::string &math)
    {
        plan.forward = open_calculator(calculator, threads, device, math.c_str());
        sdlf_plan_cache_options options = {};
        options.calculator = plan.forward->calculator;
        options.most = keep;
        check(sdlf_plan_cache_create(&plans, path.c_str(), &options));
        for (const std::string &name : inputs) plan.inputs.push_back({name, {}});
        for (const std::string &name : outputs) plan.outputs.push_back({name, {}});
    }

    sized_object(const sized_object &) = delete;

    ~sized_object()
    {
        plan.alone([&] {
            sdlf_plan_cache_free(plans);
            return SDLF_OK;
        });
    }

    /* Select the plan for these arrays; all inputs are given by name. */
    void prepare(const nb::kwargs &named)
    {
        std::vector<sdlf_onnx_shape> shapes;
        for (const plan_binding &input : plan.inputs) {
            if (!named.contains(input.name.c_str())) continue;
            const std::string what = "input '" + input.name + "'";
            shapes.push_back({input.name.c_str(), shape_of(to_host_array(named[input.name.c_str()], what), what)});
        }
        check(plan.alone(
            [&] { return sdlf_plan_cache_get(plans, shapes.data(), static_cast<int>(shapes.size()), &plan.plan); }));
        for (plan_binding &input : plan.inputs)
            if (sdlf_plan_input(plan.plan, input.name.c_str(), &input.binding) != SDLF_OK) input.binding = {};
        for (plan_binding &output : plan.outputs)
            check(sdlf_plan_output(plan.plan, output.name.c_str(), &output.binding));
    }

    nb::object run(nb::args positional, nb::kwargs named)
    {
        prepare(named);
        return run_with(plan, positional, named, [this] { return sdlf_plan_forward(plan.plan); });
    }
};

} // namespace

void bind_sized(nb::module_ &module)
{
    nb::class_<sized_object>(module, "_Sized")
        .def(nb::init<const std::string &, const names &, const names &, int, const std::string &, int, int,
                      const std::string &>(),
             nb::arg("path"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("keep"), nb::arg("calculator"),
             nb::arg("threads"), nb::arg("device"), nb::arg("math"))
        .def("run", &sized_object::run, nb::sig("def run(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any"))
        .def_prop_ro("made", [](const sized_object &s) { return sdlf_plan_cache_made(s.plans); });
}
