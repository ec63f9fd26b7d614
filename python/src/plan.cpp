/* SPDX-License-Identifier: MIT */
/* Plan: creating and inspecting. */
#include "plan_object.h"

#include <algorithm>
#include <cstring>

/* True if the host can read the binding in place. */
static bool is_on_host(const sdlf_binding &binding)
{
    return sdlf_calculator_is_on_host(binding.calculator);
}

std::shared_ptr<plan_object> make_plan(const std::shared_ptr<model_handle> &model, sdlf_plan_options options,
                                       std::shared_ptr<calculator_handle> forward,
                                       std::shared_ptr<calculator_handle> backward)
{
    std::shared_ptr<plan_object> made = std::make_shared<plan_object>();
    made->model = model;
    made->forward = forward;
    made->backward = backward;
    made->mode = options.mode;
    made->batch = options.batch;
    made->version = model->version;
    options.forward = forward->calculator;
    options.backward = backward ? backward->calculator : nullptr;
    model->plans++; /* counted down when `made` is destroyed */
    check(made->alone([&] {
        std::lock_guard<std::recursive_mutex> locked(model->mutex);
        return sdlf_plan_create(&made->plan, model->model, &options);
    }));
    std::vector<std::string> names = input_names(model->model);
    if (options.mode == SDLF_TRAIN && std::find(names.begin(), names.end(), "labels") == names.end())
        names.push_back("labels");
    for (const std::string &name : names) {
        plan_binding input = {name, {}};
        bool bound = sdlf_plan_input(made->plan, name.c_str(), &input.binding) == SDLF_OK;
        if (!bound) input.binding = {};
        if (bound || name != "labels") made->inputs.push_back(input);
    }
    for (int i = 0; i < sdlf_model_output_count(model->model); i++) {
        plan_binding output = {sdlf_model_output_name(model->model, i), {}};
        check(sdlf_plan_output(made->plan, output.name.c_str(), &output.binding));
        made->outputs.push_back(output);
    }
    plan_binding loss = {"loss", {}};
    bool named =
        std::any_of(made->outputs.begin(), made->outputs.end(), [](const plan_binding &o) { return o.name == "loss"; });
    if (options.mode == SDLF_TRAIN && !named && sdlf_plan_output(made->plan, "loss", &loss.binding) == SDLF_OK)
        made->outputs.push_back(loss);
    return made;
}

plan_object::~plan_object()
{
    if (model == nullptr) return;
    if (plan != nullptr) {
        std::optional<nb::gil_scoped_release> released;
        if (has_python_lock()) released.emplace();
        device_lock devices(forward, backward);
        std::lock_guard<std::recursive_mutex> locked(model->mutex);
        sdlf_plan_free(plan);
    }
    model->plans--;
}

sdlf_status plan_object::refresh()
{
    uint64_t now = model->version;
    if (version == now && sdlf_plan_is_current(plan)) return SDLF_OK;
    std::lock_guard<std::recursive_mutex> locked(model->mutex);
    sdlf_status status = sdlf_plan_load_parameters(plan);
    if (status == SDLF_OK) version = now;
    return status;
}

namespace
{

void backward(plan_object &p)
{
    check(p.alone([&] { return sdlf_plan_backward(p.plan); }));
}

/* A copy of a plan's tensor, in the plan's layout. */
nb::object copied(plan_object &p, const sdlf_binding &binding)
{
    const sdlf_tensor &t = binding.tensor;
    if (!sdlf_tensor_is_contiguous(&t) && !sdlf_tensor_is_channels_last(&t))
        throw status_error(SDLF_ERROR_UNSUPPORTED, "a tensor with gaps between its elements cannot be read");
    size_t bytes = static_cast<size_t>(sdlf_tensor_bytes(&t));
    new_array made = make_array(t.dtype, t.shape, t.stride);
    check(p.alone([&] {
        sdlf_status status = sdlf_plan_synchronize(p.plan);
        if (status != SDLF_OK || bytes == 0) return status;
        if (!is_on_host(binding))
            return binding.calculator->type->download(binding.calculator, made.data, t.data,
                                                      static_cast<int64_t>(bytes));
        std::memcpy(made.data, t.data, bytes);
        return SDLF_OK;
    }));
    return made.object;
}

nb::object activation(plan_object &p, const std::string &layer, bool gradient)
{
    sdlf_binding binding;
    check(sdlf_plan_activation(p.plan, layer.c_str(), gradient, &binding));
    return copied(p, binding);
}

nb::object gradient(plan_object &p, const std::string &parameter)
{
    sdlf_binding binding;
    check(sdlf_plan_gradient(p.plan, parameter.c_str(), &binding));
    return copied(p, binding);
}

nb::object in_place(const std::shared_ptr<plan_object> &p, const std::string &name, bool input)
{
    for (const plan_binding &one : input ? p->inputs : p->outputs) {
        if (one.name != name) continue;
        if (one.binding.calculator == nullptr)
            throw status_error(SDLF_ERROR_ARGUMENT, "nothing depends on input '" + name + "'");
        if (!is_on_host(one.binding)) { /* the reader does not know the plan's queue */
            check(p->alone([&] { return sdlf_plan_synchronize(p->plan); }));
            return view_device(one.binding.tensor, one.binding.calculator->space, nb::cast(p));
        }
        return view_array(one.binding.tensor, nb::cast(p), input);
    }
    throw nb::key_error(name.c_str());
}

nb::dict metrics(plan_object &p)
{
    sdlf_metrics m = {};
    check(p.alone([&] { return sdlf_plan_metrics(p.plan, &m); }));
    nb::dict d;
    d["loss"] = m.samples > 0 ? m.loss_sum / m.samples : 0.0;
    d["accuracy"] = m.samples > 0 ? m.correct / m.samples : 0.0;
    d["samples"] = static_cast<int64_t>(m.samples);
    return d;
}

nb::list layers(const plan_object &p)
{
    nb::list all;
    for (int i = 0; i < sdlf_plan_layer_count(p.plan); i++) {
        sdlf_layer_info info = sdlf_plan_layer_info(p.plan, i);
        nb::dict d;
        d["layer"] = info.layer;
        d["type"] = info.type;
        d["forward"] = info.forward ? nb::cast(info.forward) : nb::none();
        d["backward"] = info.backward ? nb::cast(info.backward) : nb::none();
        d["shape"] = from_shape(info.shape);
        d["dtype"] = sdlf_dtype_name(info.dtype);
        d["parameters"] = info.parameters;
        d["flops"] = info.forward_cost.flops;
        d["bytes"] = info.forward_cost.bytes;
        d["seconds"] = info.forward_seconds;
        d["backward_seconds"] = info.backward_seconds;
        all.append(d);
    }
    return all;
}

nb::dict memory(const plan_object &p)
{
    sdlf_memory_info info = sdlf_plan_memory(p.plan);
    nb::dict d;
    d["arena"] = info.arena;
    d["unshared"] = info.unshared;
    d["parameters"] = info.parameters;
    d["states"] = info.states;
    return d;
}

std::shared_ptr<plan_object> create(model_object &m, int64_t batch, const std::string &mode, const std::string &dtype,
                                    const std::string &forward, nb::object backward, int threads, int device,
                                    const std::string &math, bool keep_activations, bool gradients_only, bool no_fusion,
                                    nb::handle optimizer, float clip_norm, float label_smoothing, uint64_t seed,
                                    const std::string &loss, bool eval_mode)
{
    if (mode != "infer" && mode != "train")
        throw nb::value_error(("mode '" + mode + "' is neither infer nor train").c_str());
    sdlf_plan_options options = {};
    options.batch = batch;
    options.mode = mode == "train" ? SDLF_TRAIN : SDLF_INFER;
    options.dtype = sdlf_dtype_from_name(dtype.c_str());
    if (options.dtype != SDLF_FLOAT32 && options.dtype != SDLF_FLOAT64)
        throw nb::value_error(("dtype '" + dtype + "' is neither float32 nor float64").c_str());
    options.keep_activations = keep_activations;
    options.gradients_only = gradients_only;
    options.no_fusion = no_fusion;
    options.optimizer = to_optimizer(optimizer);
    options.clip_norm = clip_norm;
    options.label_smoothing = label_smoothing;
    options.seed = seed;
    options.loss = to_loss(loss);
    options.eval_mode = eval_mode;
    std::shared_ptr<calculator_handle> other;
    if (!backward.is_none()) other = open_calculator(nb::cast<std::string>(backward), threads, device, math);
    return make_plan(m.handle, options, open_calculator(forward, threads, device, math), other);
}

} // namespace

void bind_plan(nb::module_ &module)
{
    nb::class_<plan_object>(
        module, "Plan", "A model prepared to run for one batch size, or to train step by step: what Model.plan makes.")
        .def("run", &run_plan, nb::sig("def run(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any"),
             "Forward pass: arrays (N,...) in the order of the inputs, or by their names, N the plan's batch; the "
             "result, an "
             "array of NumPy's, or a dictionary of results by their names.")
        .def("__call__", &run_plan,
             nb::sig("def __call__(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any"), "The same as run.")
        .def(
            "step", &step_plan, nb::arg("learning_rate"), nb::arg("args"), nb::arg("kwargs"),
            nb::sig("def step(self, learning_rate: float, *args: typing.Any, **kwargs: typing.Any) -> None"),
            "One training step at this learning rate: forward, backward, update. Arrays as for run, and labels=: int32 "
            "(N), or float targets (N,...); the result of the forward pass is left out: metrics() has the loss.")
        .def("backward", &backward,
             "Gradients of the last run, of a plan with gradients_only; gradient() and activation() read them.")
        .def("activation", &activation, nb::arg("layer"), nb::arg("gradient") = false,
             nb::sig("def activation(self, layer: str, gradient: bool = False) -> numpy.ndarray"),
             "A layer's output (N,...), or the gradient by it, of a plan with keep_activations: a new array.")
        .def("gradient", &gradient, nb::arg("parameter"),
             nb::sig("def gradient(self, parameter: str) -> numpy.ndarray"),
             "The gradient by a parameter, of a plan with gradients_only: a new array of the parameter's shape.")
        .def(
            "input",
            [](const std::shared_ptr<plan_object> &p, const std::string &name) { return in_place(p, name, true); },
            nb::arg("name"), nb::sig("def input(self, name: str) -> typing.Any"),
            "The memory of an input (N,...), to be written in place before forward(): a NumPy array, or, on a GPU, an "
            "object "
            "for from_dlpack of PyTorch or CuPy, taken when the plan's work is done; what writes there must be done "
            "before forward().")
        .def(
            "output",
            [](const std::shared_ptr<plan_object> &p, const std::string &name) { return in_place(p, name, false); },
            nb::arg("name"), nb::sig("def output(self, name: str) -> typing.Any"),
            "The memory of a result (N,...), which the next run overwrites: a read-only NumPy array, or, on a GPU, an "
            "object "
            "for from_dlpack, taken when the plan's work is done. Take it again after step() and backward(); what "
            "reads it must be done before the next run. On a GPU nothing keeps others from writing there: do not.")
        .def(
            "forward",
            [](plan_object &p) {
                check(p.alone([&] {
                    sdlf_status status = p.mode == SDLF_INFER ? p.refresh() : SDLF_OK;
                    if (status == SDLF_OK) status = sdlf_plan_forward(p.plan);
                    return status != SDLF_OK ? status : sdlf_plan_synchronize(p.plan);
                }));
            },
            "Forward pass of what the inputs' memory holds.")
        .def("metrics", &metrics, nb::sig("def metrics(self) -> dict[str, float]"),
             "Since they were last cleared, a dict: loss and accuracy, means, and the samples that they are over.")
        .def(
            "clear_metrics", [](plan_object &p) { check(p.alone([&] { return sdlf_plan_clear_metrics(p.plan); })); },
            "Begin new means: metrics() is over the steps from here on.")
        .def(
            "store_parameters",
            [](plan_object &p) {
                check(p.alone([&] {
                    std::lock_guard<std::recursive_mutex> locked(p.model->mutex);
                    return sdlf_plan_store_parameters(p.plan);
                }));
            },
            "Bring what a device has trained back to the model.")
        .def(
            "load_parameters",
            [](plan_object &p) {
                check(p.alone([&] {
                    std::lock_guard<std::recursive_mutex> locked(p.model->mutex);
                    return sdlf_plan_load_parameters(p.plan);
                }));
            },
            "Bring the model's parameters, as they are now, to the plan.")
        .def(
            "time",
            [](plan_object &p, int repeats) { check(p.alone([&] { return sdlf_plan_time(p.plan, repeats); })); },
            nb::arg("repeats") = 10, "Time every operation `repeats` times; layers() then has medians, in seconds.")
        .def("layers", &layers, nb::sig("def layers(self) -> list[dict[str, typing.Any]]"),
             "The plan's layers and fused groups, a list of dicts: shapes, costs in FLOPs and bytes, and, after "
             "time(), seconds.")
        .def(
            "info", [](nb::handle self) { return nb::module_::import_("sdlf.plan").attr("info")(self); },
            nb::sig("def info(self) -> sdlf.table.Table"),
            "A Table of the layers and fused groups: what computes them, shapes for the batch, parameters, MFLOPs and "
            "kB of "
            "memory traffic of the forward pass, and, after time(), microseconds.")
        .def(
            "_repr_html_",
            [](nb::handle self) { return nb::module_::import_("sdlf.plan").attr("info")(self).attr("_repr_html_")(); },
            nb::sig("def _repr_html_(self) -> str"))
        .def("__repr__",
             [](const plan_object &p) {
                 return "<sdlf.Plan: batch " + std::to_string(p.batch) + ", " +
                        std::to_string(sdlf_plan_layer_count(p.plan)) + " layers and fused groups>";
             })
        .def("memory", &memory, nb::sig("def memory(self) -> dict[str, int]"),
             "Bytes that the plan holds, a dict: arena (unshared: without the sharing of memory), parameters, states "
             "of the "
             "optimizer.")
        .def_prop_ro(
            "batch", [](const plan_object &p) { return p.batch; }, "Samples of a run, an int: N.")
        .def_prop_ro(
            "inputs",
            [](const plan_object &p) {
                nb::list names;
                for (const plan_binding &input : p.inputs) names.append(input.name);
                return names;
            },
            nb::for_getter(nb::sig("def inputs(self, /) -> list[str]")), "Names of the inputs, a list of str.")
        .def_prop_ro(
            "outputs",
            [](const plan_object &p) {
                nb::list names;
                for (const plan_binding &output : p.outputs) names.append(output.name);
                return names;
            },
            nb::for_getter(nb::sig("def outputs(self, /) -> list[str]")), "Names of the results, a list of str.");
    module.def("_plan", &create, nb::arg("model"), nb::arg("batch"), nb::arg("mode"), nb::arg("dtype"),
               nb::arg("calculator"), nb::arg("backward").none(), nb::arg("threads"), nb::arg("device"),
               nb::arg("math"), nb::arg("keep_activations"), nb::arg("gradients_only"), nb::arg("no_fusion"),
               nb::arg("optimizer").none(), nb::arg("clip_norm"), nb::arg("label_smoothing"), nb::arg("seed"),
               nb::arg("loss"), nb::arg("eval_mode"));
}
