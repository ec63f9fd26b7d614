/* Plan, and running a model without making one by hand. */
#include "plan_object.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

std::shared_ptr<calculator_handle> open_calculator(const std::string &name, int threads, int device,
                                                   const std::string &math)
{
    using key = std::tuple<std::string, int, int, std::string>;
    static std::map<key, std::weak_ptr<calculator_handle>> open; /* guarded by Python's lock */
    std::weak_ptr<calculator_handle> &known = open[key(name, threads, device, math)];
    if (std::shared_ptr<calculator_handle> found = known.lock()) return found;
    sdlf_calculator_options options = {};
    options.threads = threads;
    options.device = device;
    options.math = sdlf_math_from_name(math.c_str());
    if (options.math == SDLF_MATH_COUNT)
        throw nb::value_error(("math '" + math + "' is none of fp32, tf32, fp16, bf16").c_str());
    sdlf_calculator *calculator = nullptr;
    check(sdlf_calculator_open(&calculator, name.c_str(), &options));
    std::shared_ptr<calculator_handle> made = std::make_shared<calculator_handle>(calculator);
    known = made;
    return made;
}

/* A binding of a plan may be read in place by the host. */
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
    check(alone(model->mutex, [&] { return sdlf_plan_create(&made->plan, model->model, &options); }));
    std::vector<std::string> names = input_names(model->model);
    if (options.mode == SDLF_TRAIN && std::find(names.begin(), names.end(), "labels") == names.end())
        names.push_back("labels");
    for (const std::string &name : names) { /* those that nothing depends on, or that are constant, have no binding */
        bool constant = false;
        for (int i = 0; i < options.constant_count; i++) constant = constant || name == options.constants[i].input;
        plan_input input = {name, {}};
        if (!constant && sdlf_plan_input(made->plan, name.c_str(), &input.binding) == SDLF_OK)
            made->inputs.push_back(input);
    }
    for (int i = 0; i < sdlf_model_output_count(model->model); i++) {
        plan_input output = {sdlf_model_output_name(model->model, i), {}};
        check(sdlf_plan_output(made->plan, output.name.c_str(), &output.binding));
        made->outputs.push_back(output);
    }
    plan_input loss = {"loss", {}};
    bool named =
        std::any_of(made->outputs.begin(), made->outputs.end(), [](const plan_input &o) { return o.name == "loss"; });
    if (options.mode == SDLF_TRAIN && !named && sdlf_plan_output(made->plan, "loss", &loss.binding) == SDLF_OK)
        made->outputs.push_back(loss);
    return made;
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

/* An array for an input, checked, before anything is computed. */
struct given {
    const plan_input *input;
    host_array array;
    sdlf_dtype dtype;
};

given look(const plan_input &input, nb::handle object)
{
    given g = {&input, to_host_array(object, "input '" + input.name + "'"), SDLF_NONE};
    const sdlf_tensor &wanted = input.binding.tensor;
    const std::string what = "input '" + input.name + "'";
    g.dtype = dtype_of(g.array, what);
    bool same = static_cast<int>(g.array.ndim()) == wanted.shape.rank;
    for (int i = 0; same && i < wanted.shape.rank; i++)
        same = static_cast<int64_t>(g.array.shape(static_cast<size_t>(i))) == wanted.shape.dim[i];
    if (!same)
        throw status_error(SDLF_ERROR_SHAPE, what + " has the shape " + sdlf_shape_print(wanted.shape).text +
                                                 ", found " + sdlf_shape_print(shape_of(g.array, what)).text);
    if (!converts(wanted.dtype, g.dtype))
        throw nb::type_error((what + " is of " + sdlf_dtype_name(wanted.dtype) + ", found " + sdlf_dtype_name(g.dtype) +
                              ": convert it (.astype)")
                                 .c_str());
    return g;
}

std::vector<given> look_at_all(const plan_object &p, const nb::args &positional, const nb::kwargs &named)
{
    std::vector<given> all;
    if (positional.size() > p.inputs.size())
        throw nb::type_error(("the network has " + std::to_string(p.inputs.size()) + " inputs, found " +
                              std::to_string(positional.size()))
                                 .c_str());
    for (size_t i = 0; i < positional.size(); i++) all.push_back(look(p.inputs[i], positional[i]));
    for (auto [key, value] : named) {
        std::string name = nb::cast<std::string>(key);
        size_t i = 0;
        while (i < p.inputs.size() && p.inputs[i].name != name) i++;
        if (i == p.inputs.size()) {
            std::string known;
            for (const plan_input &input : p.inputs) known += (known.empty() ? "" : ", ") + input.name;
            throw nb::type_error(("the network has no input '" + name + "'; it has: " + known).c_str());
        }
        if (i < positional.size()) throw nb::type_error(("input '" + name + "' is given twice").c_str());
        all.push_back(look(p.inputs[i], value));
    }
    if (all.size() < p.inputs.size())
        for (const plan_input &input : p.inputs)
            if (std::none_of(all.begin(), all.end(), [&](const given &g) { return g.input == &input; }))
                throw nb::type_error(("input '" + input.name + "' is missing").c_str());
    return all;
}

sdlf_status write_one(plan_object &p, const given &g)
{
    const sdlf_tensor &to = g.input->binding.tensor;
    if (g.dtype == to.dtype) return sdlf_plan_write(p.plan, g.input->name.c_str(), g.array.data());
    int64_t count = sdlf_tensor_count(&to);
    std::vector<std::max_align_t> converted(
        static_cast<size_t>(count) * sdlf_dtype_size(to.dtype) / sizeof(std::max_align_t) + 1);
    sdlf_convert(to.dtype, converted.data(), g.dtype, g.array.data(), count);
    return sdlf_plan_write(p.plan, g.input->name.c_str(), converted.data());
}

/* Write the inputs, compute, read the results: one array, or a dictionary of several. */
template <class function>
nb::object compute(plan_object &p, const nb::args &positional, const nb::kwargs &named, bool want_results,
                   function &&work)
{
    std::vector<given> arrays = look_at_all(p, positional, named);
    std::vector<new_array> results;
    if (want_results)
        for (const plan_input &output : p.outputs)
            results.push_back(make_array(output.binding.tensor.dtype, output.binding.tensor.shape));
    check(alone(p.mutex, [&] {
        sdlf_status status = p.mode == SDLF_INFER ? p.refresh() : SDLF_OK;
        for (size_t i = 0; i < arrays.size() && status == SDLF_OK; i++) status = write_one(p, arrays[i]);
        if (status == SDLF_OK) status = work();
        for (size_t i = 0; i < results.size() && status == SDLF_OK; i++)
            status = sdlf_plan_read(p.plan, p.outputs[i].name.c_str(), results[i].data);
        return status;
    }));
    if (!want_results) return nb::none();
    if (results.size() == 1) return results[0].object;
    nb::dict d;
    for (size_t i = 0; i < results.size(); i++) d[p.outputs[i].name.c_str()] = results[i].object;
    return d;
}

nb::object run(plan_object &p, nb::args positional, nb::kwargs named)
{
    return compute(p, positional, named, true, [&] { return sdlf_plan_forward(p.plan); });
}

nb::object step(plan_object &p, float rate, nb::args positional, nb::kwargs named)
{
    return compute(p, positional, named, false, [&] {
        std::lock_guard<std::recursive_mutex> locked(p.model->mutex);
        sdlf_status status = sdlf_plan_step(p.plan, rate);
        p.model->version++;
        return status;
    });
}

void backward(plan_object &p)
{
    check(alone(p.mutex, [&] { return sdlf_plan_backward(p.plan); }));
}

/* A copy of what a plan holds. */
nb::object copied(plan_object &p, const sdlf_binding &binding)
{
    const sdlf_tensor &t = binding.tensor;
    if (is_on_host(binding)) {
        check(alone(p.mutex, [&] { return sdlf_plan_synchronize(p.plan); }));
        return view_array(t, nb::none(), false).attr("copy")();
    }
    if (!sdlf_tensor_is_contiguous(&t))
        throw status_error(SDLF_ERROR_UNSUPPORTED, "a tensor on a device that is not row-major cannot be read");
    new_array made = make_array(t.dtype, t.shape);
    check(alone(p.mutex, [&] {
        sdlf_status status = sdlf_plan_synchronize(p.plan);
        return status != SDLF_OK
                   ? status
                   : binding.calculator->type->download(binding.calculator, made.data, t.data, sdlf_tensor_bytes(&t));
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
    for (const plan_input &one : input ? p->inputs : p->outputs) {
        if (one.name != name) continue;
        if (!is_on_host(one.binding))
            throw status_error(SDLF_ERROR_UNSUPPORTED, "'" + name + "' lies on a device: write and read it with run");
        return view_array(one.binding.tensor, nb::cast(p), input);
    }
    throw nb::key_error(name.c_str());
}

nb::dict metrics(plan_object &p)
{
    sdlf_metrics m = {};
    check(alone(p.mutex, [&] { return sdlf_plan_metrics(p.plan, &m); }));
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
                                    nb::handle optimizer, float clip_norm, float label_smoothing, uint64_t seed)
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
    std::shared_ptr<calculator_handle> other;
    if (!backward.is_none()) other = open_calculator(nb::cast<std::string>(backward), threads, device, math);
    return make_plan(m.handle, options, open_calculator(forward, threads, device, math), other);
}

/* ---- Model.run ---- */

int64_t batch_of(const model_object &m, const nb::args &positional, const nb::kwargs &named)
{
    nb::handle first;
    if (positional.size() > 0)
        first = positional[0];
    else if (sdlf_model_input_count(m.get()) > 0) {
        std::string name = input_names(m.get())[0];
        if (named.contains(name.c_str())) first = named[name.c_str()];
    }
    if (!first.is_valid()) throw nb::type_error("the first input is missing");
    host_array array = to_host_array(first, "the first input");
    if (array.ndim() == 0 || array.shape(0) == 0)
        throw status_error(SDLF_ERROR_SHAPE, "the first input has no samples: axis 0 is the batch");
    return static_cast<int64_t>(array.shape(0));
}

/* Plans stay for the batches that were used last. */
std::shared_ptr<plan_object> cached_plan(model_object &m, int64_t batch,
                                         const std::shared_ptr<calculator_handle> &calculator)
{
    enum { PLANS = 4 };
    {
        std::lock_guard<std::mutex> locked(m.cache_mutex);
        for (size_t i = m.cache.size(); i-- > 0;) {
            if (m.cache[i]->batch != batch || m.cache[i]->forward != calculator) continue;
            std::rotate(m.cache.begin() + static_cast<std::ptrdiff_t>(i),
                        m.cache.begin() + static_cast<std::ptrdiff_t>(i) + 1, m.cache.end());
            return m.cache.back();
        }
    }
    sdlf_plan_options options = {};
    options.batch = batch;
    std::shared_ptr<plan_object> made = make_plan(m.handle, options, calculator, nullptr), oldest;
    std::lock_guard<std::mutex> locked(m.cache_mutex);
    m.cache.push_back(made);
    if (m.cache.size() > PLANS) {
        oldest = m.cache.front();
        m.cache.erase(m.cache.begin());
    }
    return made;
}

} // namespace

nb::object run_model(model_object &m, nb::args positional, nb::kwargs named)
{
    std::shared_ptr<calculator_handle> calculator = m.calculator;
    if (!calculator) calculator = m.calculator = open_calculator(sdlf_calculator_class_usual()->name, 0, 0, "fp32");
    std::shared_ptr<plan_object> plan = cached_plan(m, batch_of(m, positional, named), calculator);
    return run(*plan, positional, named);
}

void use_calculator(model_object &m, const std::string &calculator, int threads, int device, const std::string &math)
{
    m.calculator = open_calculator(calculator, threads, device, math);
    m.forget_plans();
}

void bind_plan(nb::module_ &module)
{
    nb::class_<plan_object>(module, "Plan", "A model made ready to run for one batch size.")
        .def("run", &run,
             "Forward pass: arrays in the order of the inputs, or by their names; the result, or a dictionary of "
             "results.")
        .def("__call__", &run)
        .def("step", &step, nb::arg("learning_rate"), nb::arg("args"), nb::arg("kwargs"),
             "One training step: forward, backward, update.")
        .def("backward", &backward, "Gradients of the last run, of a plan with gradients_only.")
        .def("activation", &activation, nb::arg("layer"), nb::arg("gradient") = false,
             "A layer's output, or the gradient by it, of a plan with keep_activations.")
        .def("gradient", &gradient, nb::arg("parameter"), "The gradient by a parameter, of a plan with gradients_only.")
        .def(
            "input",
            [](const std::shared_ptr<plan_object> &p, const std::string &name) { return in_place(p, name, true); },
            nb::arg("name"), "The memory of an input, to be written in place before a run without arguments.")
        .def(
            "output",
            [](const std::shared_ptr<plan_object> &p, const std::string &name) { return in_place(p, name, false); },
            nb::arg("name"), "The memory of a result, which the next run overwrites.")
        .def(
            "forward",
            [](plan_object &p) {
                check(alone(p.mutex, [&] {
                    sdlf_status status = p.mode == SDLF_INFER ? p.refresh() : SDLF_OK;
                    if (status == SDLF_OK) status = sdlf_plan_forward(p.plan);
                    return status != SDLF_OK ? status : sdlf_plan_synchronize(p.plan);
                }));
            },
            "Forward pass of what the inputs' memory holds.")
        .def("metrics", &metrics, "Mean loss and accuracy since they were last cleared.")
        .def("clear_metrics",
             [](plan_object &p) { check(alone(p.mutex, [&] { return sdlf_plan_clear_metrics(p.plan); })); })
        .def(
            "store_parameters",
            [](plan_object &p) {
                check(alone(p.mutex, [&] {
                    std::lock_guard<std::recursive_mutex> locked(p.model->mutex);
                    return sdlf_plan_store_parameters(p.plan);
                }));
            },
            "Bring what a device has trained back to the model.")
        .def(
            "load_parameters",
            [](plan_object &p) { check(alone(p.mutex, [&] { return sdlf_plan_load_parameters(p.plan); })); },
            "Bring the model's parameters, as they are now, to the plan.")
        .def(
            "time",
            [](plan_object &p, int repeats) { check(alone(p.mutex, [&] { return sdlf_plan_time(p.plan, repeats); })); },
            nb::arg("repeats") = 10, "Time every step; layers() then has medians.")
        .def("layers", &layers, "The plan's layers and fused groups, with shapes, costs and, after time(), seconds.")
        .def("memory", &memory, "Exact bytes.")
        .def_prop_ro("batch", [](const plan_object &p) { return p.batch; })
        .def_prop_ro("inputs",
                     [](const plan_object &p) {
                         nb::list names;
                         for (const plan_input &input : p.inputs) names.append(input.name);
                         return names;
                     })
        .def_prop_ro("outputs", [](const plan_object &p) {
            nb::list names;
            for (const plan_input &output : p.outputs) names.append(output.name);
            return names;
        });
    module.def("_plan", &create, nb::arg("model"), nb::arg("batch"), nb::arg("mode"), nb::arg("dtype"),
               nb::arg("calculator"), nb::arg("backward").none(), nb::arg("threads"), nb::arg("device"),
               nb::arg("math"), nb::arg("keep_activations"), nb::arg("gradients_only"), nb::arg("no_fusion"),
               nb::arg("optimizer").none(), nb::arg("clip_norm"), nb::arg("label_smoothing"), nb::arg("seed"));
}
