/* SPDX-License-Identifier: MIT */
/* Running and training on arrays, with an explicit plan or with a model's cached plans. */
#include "plan_object.h"

#include <algorithm>

namespace
{

/* An array for an input; checked before anything is computed. */
struct given {
    const plan_binding *input;
    any_array array;
    sdlf_dtype dtype;
    bool on_device; /* on the input's device */
};

/* An array in host memory or on the input's device. */
any_array find_array(const plan_binding &input, nb::handle object, const std::string &what)
{
    host_array array;
    if (nb::try_cast(object, array)) return any_array(array);
    any_array elsewhere;
    if (!nb::try_cast(object, elsewhere) || elsewhere.device_type() == nb::device::cpu::value)
        return any_array(to_host_array(object, what)); /* throws a message */
    std::string found = space_of(elsewhere), wanted = input.binding.calculator->space;
    if (found != wanted)
        throw nb::type_error((what + " lies on " + found + ", expected memory of the host" +
                              (wanted == SDLF_HOST_SPACE ? "" : " or of " + wanted) +
                              ": copy it there, or choose where to compute (use, calculator, device)")
                                 .c_str());
    return elsewhere;
}

given look(const plan_binding &input, nb::handle object)
{
    if (input.binding.calculator == nullptr) return {&input, {}, SDLF_NONE, false}; /* any object */
    const sdlf_tensor &wanted = input.binding.tensor;
    const std::string what = "input '" + input.name + "'";
    given g = {&input, find_array(input, object, what), SDLF_NONE, false};
    g.on_device = g.array.device_type() != nb::device::cpu::value;
    g.dtype = dtype_of(g.array, what);
    bool same = static_cast<int>(g.array.ndim()) == wanted.shape.rank;
    for (int i = 0; same && i < wanted.shape.rank; i++)
        same = static_cast<int64_t>(g.array.shape(static_cast<size_t>(i))) == wanted.shape.dim[i];
    if (!same)
        throw status_error(SDLF_ERROR_SHAPE, what + " has the shape " + sdlf_shape_print(wanted.shape).text +
                                                 ", found " + sdlf_shape_print(shape_of(g.array, what)).text);
    if (g.on_device ? wanted.dtype != g.dtype : !converts(wanted.dtype, g.dtype))
        throw nb::type_error((what + " is of " + sdlf_dtype_name(wanted.dtype) + ", found " + sdlf_dtype_name(g.dtype) +
                              ": convert it (.astype, .to)")
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
            for (const plan_binding &input : p.inputs) known += (known.empty() ? "" : ", ") + input.name;
            throw nb::type_error(("the network has no input '" + name + "'; it has: " + known).c_str());
        }
        if (i < positional.size()) throw nb::type_error(("input '" + name + "' is given twice").c_str());
        all.push_back(look(p.inputs[i], value));
    }
    if (all.size() < p.inputs.size())
        for (const plan_binding &input : p.inputs)
            if (input.binding.calculator != nullptr &&
                std::none_of(all.begin(), all.end(), [&](const given &g) { return g.input == &input; }))
                throw nb::type_error(("input '" + input.name + "' is missing").c_str());
    return all;
}

sdlf_status write_one(plan_object &p, const given &g)
{
    if (g.dtype == SDLF_NONE) return SDLF_OK;
    if (g.on_device)
        return sdlf_plan_write_device(p.plan, g.input->name.c_str(), g.array.data(), g.dtype,
                                      static_cast<int64_t>(g.array.nbytes()));
    return sdlf_plan_write_converted(p.plan, g.input->name.c_str(), g.array.data(), g.dtype,
                                     static_cast<int64_t>(g.array.size()));
}

/* Write the inputs, compute, read the results: one array, or a dictionary of several. */
template <class function>
nb::object compute(plan_object &p, const nb::args &positional, const nb::kwargs &named, bool want_results,
                   function &&work)
{
    std::vector<given> arrays = look_at_all(p, positional, named);
    std::vector<new_array> results;
    if (want_results)
        for (const plan_binding &output : p.outputs)
            results.push_back(make_array(output.binding.tensor.dtype, output.binding.tensor.shape));
    check(p.alone([&] {
        sdlf_status status = p.model != nullptr && p.mode == SDLF_INFER ? p.refresh() : SDLF_OK;
        for (size_t i = 0; i < arrays.size() && status == SDLF_OK; i++) status = write_one(p, arrays[i]);
        if (status == SDLF_OK) status = work();
        for (size_t i = 0; i < results.size() && status == SDLF_OK; i++)
            status = sdlf_plan_read(p.plan, p.outputs[i].name.c_str(), results[i].data,
                                    p.outputs[i].binding.tensor.dtype, sdlf_tensor_bytes(&p.outputs[i].binding.tensor));
        return status;
    }));
    if (!want_results) return nb::none();
    if (results.size() == 1) return results[0].object;
    nb::dict d;
    for (size_t i = 0; i < results.size(); i++) d[p.outputs[i].name.c_str()] = results[i].object;
    return d;
}

} // namespace

nb::object run_with(plan_object &p, const nb::args &positional, const nb::kwargs &named,
                    const std::function<sdlf_status()> &work)
{
    return compute(p, positional, named, true, work);
}

nb::object run_plan(plan_object &p, nb::args positional, nb::kwargs named)
{
    return compute(p, positional, named, true, [&] { return sdlf_plan_forward(p.plan); });
}

nb::object step_plan(plan_object &p, float rate, nb::args positional, nb::kwargs named)
{
    return compute(p, positional, named, false, [&] {
        std::lock_guard<std::recursive_mutex> locked(p.model->mutex);
        sdlf_status status = sdlf_plan_step(p.plan, rate);
        p.model->version++;
        return status;
    });
}

namespace
{

/* The batch size of the first given input of the model. */
int64_t batch_of(const model_object &m, const nb::args &positional, const nb::kwargs &named)
{
    nb::handle first = positional.size() > 0 ? nb::handle(positional[0]) : nb::handle();
    if (!first.is_valid())
        for (const std::string &name : input_names(m.get()))
            if (!first.is_valid() && named.contains(name.c_str())) first = named[name.c_str()];
    if (!first.is_valid()) throw nb::type_error("an input is missing: the batch is axis 0 of the first that is given");
    nb::ndarray<nb::ro> array;
    if (!nb::try_cast(first, array)) to_host_array(first, "the first input"); /* throws a message */
    if (array.ndim() == 0 || array.shape(0) == 0)
        throw status_error(SDLF_ERROR_SHAPE, "the first input has no samples: axis 0 is the batch");
    return static_cast<int64_t>(array.shape(0));
}

/* Keeps the plans of the most recently used batch sizes. */
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
    if (!calculator) calculator = m.calculator = open_calculator(sdlf_calculator_class_default()->name, 0, 0, "fp32");
    std::shared_ptr<plan_object> plan = cached_plan(m, batch_of(m, positional, named), calculator);
    return run_plan(*plan, positional, named);
}

void use_calculator(model_object &m, const std::string &calculator, int threads, int device, const std::string &math)
{
    m.calculator = open_calculator(calculator, threads, device, math);
    m.forget_plans();
}
