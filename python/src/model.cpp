/* SPDX-License-Identifier: MIT */
/* Model, Node: building and inspecting. */
#include "common.h"

#include <cstring>

#include "plan_object.h"

void model_object::forget_plans()
{
    std::vector<std::shared_ptr<plan_object>> old;
    std::lock_guard<std::mutex> locked(cache_mutex);
    old.swap(cache);
}

void require_no_plans(model_object &m, const char *action)
{
    m.forget_plans();
    if (m.handle->plans.load() > 0)
        throw status_error(SDLF_ERROR_ARGUMENT, std::string("there is a plan or a trainer of the model: ") + action +
                                                    " needs them deleted first");
}

std::vector<std::string> input_names(const sdlf_model *model)
{
    std::vector<std::string> names;
    for (int i = 0; i < sdlf_model_input_count(model); i++)
        names.emplace_back(sdlf_model_layer(model, sdlf_model_input(model, i).layer)->name);
    return names;
}

namespace
{

node_object made_node(nb::handle model, sdlf_node node)
{
    const std::shared_ptr<model_handle> &handle = nb::cast<model_object &>(model).handle;
    if (node.layer < 0) check(sdlf_model_status(handle->model));
    if (node.layer < 0) throw status_error(SDLF_ERROR_ARGUMENT, "the layer could not be made");
    return {nb::borrow(model), handle, node};
}

node_object add_input(nb::handle self, const std::string &name, nb::handle shape, const std::string &dtype)
{
    model_object &m = nb::cast<model_object &>(self);
    sdlf_dtype type = sdlf_dtype_from_name(dtype.c_str());
    if (type == SDLF_NONE)
        throw nb::value_error(("dtype '" + dtype + "' is not known; for example 'float32', 'int64'").c_str());
    require_no_plans(m, "another input");
    sdlf_shape dimensions = to_shape(shape, "shape");
    return made_node(self, alone(m.handle->mutex, [&] { return sdlf_input(m.get(), name.c_str(), type, dimensions); }));
}

node_object add_layer(nb::handle model, const std::string &type, const std::vector<node_object> &inputs,
                      const std::optional<std::string> &name, const nb::dict &options, const std::string &origin)
{
    model_object &m = nb::cast<model_object &>(model);
    const sdlf_layer_class *found = sdlf_layer_class_find(type.c_str());
    if (found == nullptr) throw nb::value_error(("there is no layer class '" + type + "'").c_str());
    std::vector<sdlf_node> nodes;
    for (const node_object &node : inputs) {
        if (node.handle != m.handle) throw nb::value_error((type + ": its inputs belong to different models").c_str());
        nodes.push_back(node.node);
    }
    std::vector<std::max_align_t> memory(found->options_size / sizeof(std::max_align_t) + 1);
    std::memset(memory.data(), 0, memory.size() * sizeof(std::max_align_t));
    fill_options(found->fields, memory.data(), options, found->name);
    if (name)
        *reinterpret_cast<const char **>(memory.data()) = name->c_str(); /* the first member of every options struct */
    require_no_plans(m, "another layer");
    return made_node(model, alone(m.handle->mutex, [&] {
                         sdlf_model_set_origin(m.get(), origin.empty() ? nullptr : origin.c_str());
                         sdlf_node node = sdlf_model_add(m.get(), found, memory.data(), nodes.data(),
                                                         static_cast<int>(nodes.size()));
                         sdlf_model_set_origin(m.get(), nullptr);
                         return node;
                     }));
}

void set_output(model_object &m, const std::string &name, const node_object &node)
{
    if (node.handle != m.handle) throw nb::value_error("the node belongs to another model");
    require_no_plans(m, "another result");
    for (int i = 0; i < sdlf_model_output_count(m.get()); i++)
        if (name == sdlf_model_output_name(m.get(), i))
            throw status_error(SDLF_ERROR_ARGUMENT, "there is a result '" + name + "' already");
    check(alone(m.handle->mutex, [&] {
        sdlf_output(m.get(), name.c_str(), node.node);
        return sdlf_model_status(m.get());
    }));
}

void build(model_object &m, uint64_t seed)
{
    require_no_plans(m, "building");
    require_no_views(m, "building");
    check(alone(m.handle->mutex, [&] { return sdlf_model_build(m.get(), seed); }));
    m.handle->version++;
}

nb::list layers(const model_object &m)
{
    nb::list all;
    std::vector<int64_t> counts(static_cast<size_t>(sdlf_model_layer_count(m.get())));
    for (int i = 0; i < sdlf_model_parameter_count(m.get()); i++) {
        const sdlf_parameter *p = sdlf_model_parameter(m.get(), i);
        counts[static_cast<size_t>(p->layer)] += sdlf_shape_count(p->spec.shape);
    }
    for (int i = 0; i < sdlf_model_layer_count(m.get()); i++) {
        const sdlf_layer *layer = sdlf_model_layer(m.get(), i);
        nb::list inputs;
        for (int j = 0; j < sdlf_model_layer_input_count(m.get(), i); j++)
            inputs.append(sdlf_model_layer(m.get(), sdlf_model_layer_input(m.get(), i, j).layer)->name);
        nb::dict d;
        d["name"] = layer->name;
        d["type"] = layer->type->name;
        d["inputs"] = nb::tuple(inputs);
        d["shape"] = from_shape(sdlf_model_node_shape(m.get(), sdlf_node{i, 0}));
        d["parameters"] = counts[static_cast<size_t>(i)];
        all.append(d);
    }
    return all;
}

nb::object normalization(const model_object &m)
{
    const sdlf_normalization *n = sdlf_model_normalization(m.get());
    if (!n->known) return nb::none();
    nb::list mean, deviation;
    int count = n->channels.count;
    for (int i = 0; i < (count > 0 ? count : 1); i++) {
        mean.append(count > 0 ? n->channels.mean[i] : n->mean);
        deviation.append(1 / (count > 0 ? n->channels.scale[i] : n->scale));
    }
    return nb::make_tuple(nb::tuple(mean), nb::tuple(deviation));
}

void set_normalization(model_object &m, nb::object value)
{
    sdlf_normalization *n = sdlf_model_normalization(m.get());
    if (value.is_none()) {
        *n = sdlf_normalization{};
        n->scale = 1;
        return;
    }
    sdlf_normalization changed = {};
    read_normalization(value, changed.mean, changed.scale, changed.channels);
    changed.fit = n->fit;
    changed.known = true;
    *n = changed;
}

std::vector<std::string> classes(const model_object &m)
{
    std::vector<std::string> names;
    for (int i = 0; i < sdlf_model_class_count(m.get()); i++) names.emplace_back(sdlf_model_class_name(m.get(), i));
    return names;
}

void set_classes(model_object &m, const std::vector<std::string> &names)
{
    std::vector<const char *> all;
    for (const std::string &name : names) all.push_back(name.c_str());
    check(sdlf_model_set_classes(m.get(), all.data(), static_cast<int>(all.size())));
}

nb::list outputs(const model_object &m)
{
    nb::list all;
    for (int i = 0; i < sdlf_model_output_count(m.get()); i++) all.append(sdlf_model_output_name(m.get(), i));
    return all;
}

nb::tuple node_shape(const node_object &node)
{
    return from_shape(sdlf_model_node_shape(node.get(), node.node));
}

std::string node_name(const node_object &node)
{
    return sdlf_model_layer(node.get(), node.node.layer)->name;
}

/* Without this, a node that its own model refers to would keep both alive forever. */
int traverse_node(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    Py_VISIT(nb::inst_ptr<node_object>(self)->model.ptr());
    return 0;
}

int clear_node(PyObject *self)
{
    nb::inst_ptr<node_object>(self)->model.reset();
    return 0;
}

PyType_Slot node_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse_node)},
                            {Py_tp_clear, reinterpret_cast<void *>(clear_node)},
                            {0, nullptr}};

node_object find_node(nb::handle self, const std::string &layer)
{
    const model_object &m = nb::cast<const model_object &>(self);
    for (int i = 0; i < sdlf_model_layer_count(m.get()); i++)
        if (layer == sdlf_model_layer(m.get(), i)->name) return {nb::borrow(self), m.handle, sdlf_node{i, 0}};
    throw nb::key_error(layer.c_str());
}

} // namespace

void bind_model(nb::module_ &module)
{
    nb::class_<node_object>(module, "Node", nb::type_slots(node_slots),
                            "One output of one layer of a model; what layers take and return.")
        .def_prop_ro(
            "model", [](const node_object &n) { return n.model; },
            nb::for_getter(nb::sig("def model(self, /) -> Model")), "The Model that it belongs to.")
        .def_prop_ro("name", &node_name, "The layer's name, a str.")
        .def_prop_ro("shape", &node_shape, nb::for_getter(nb::sig("def shape(self, /) -> tuple[int, ...]")),
                     "Its shape for a batch of 1, a tuple of int; () until the model is built.")
        .def("__repr__", [](const node_object &n) { return "<sdlf.Node '" + node_name(n) + "'>"; })
        .def(
            "output",
            [](const node_object &n, int index) {
                if (index < 0 || index >= SDLF_MAX_LAYER_OUTPUTS)
                    throw nb::index_error("a layer has at most 4 outputs");
                return node_object{n.model, n.handle, sdlf_node{n.node.layer, index}};
            },
            nb::arg("index"), "Another output of the same layer, from 0: a Node.");

    nb::class_<model_object> type(module, "Model");
    bind_files(type);
    bind_parameters(type);
    type.def(
            "__init__",
            [](model_object *self, const std::string &name) {
                sdlf_model *model = sdlf_model_create(name.c_str());
                if (model == nullptr) throw std::bad_alloc();
                new (self) model_object(model);
            },
            nb::arg("name") = "model")
        .def("_take", [](model_object &m, const model_object &other) { m.handle = other.handle; })
        .def(
            "run", &run_model, nb::sig("def run(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any"),
            "The result for arrays (N,...) in the order of the inputs, or by their names: a new array of NumPy's, or a "
            "dictionary where there are several results. Axis 0 of the first input is the batch N; plans of the last "
            "four batch sizes are kept. Other threads run "
            "meanwhile.")
        .def("__call__", &run_model,
             nb::sig("def __call__(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any"),
             "The same as run: the result for arrays (N,...).")
        .def("_use", &use_calculator)
        .def("_add", &add_layer, nb::arg("type"), nb::arg("inputs"), nb::arg("name").none(), nb::arg("options"),
             nb::arg("origin"))
        .def("input", &add_input, nb::arg("name"), nb::arg("shape"), nb::arg("dtype") = "float32",
             nb::sig("def input(self, name: str, shape: collections.abc.Sequence[int] | int, dtype: str = \"float32\") "
                     "-> Node"),
             "An input: a Node. shape: that of one sample (C,H,W), (F), ..., without the batch; dtype: \"float32\", "
             "\"int32\", ...")
        .def("node", &find_node, nb::arg("layer"), "The output of a layer by its name, to go on from: a Node.")
        .def("output", &set_output, nb::arg("name"), nb::arg("node"), "Declare a Node a result, under this name.")
        .def(
            "clear_outputs",
            [](model_object &m) {
                require_no_plans(m, "forgetting the results");
                sdlf_model_clear_outputs(m.get());
            },
            "Forget the declared results.")
        .def("build", &build, nb::arg("seed") = 1,
             "Infer all shapes, make the parameters and draw them from the seed, an int.")
        .def_prop_ro(
            "name", [](const model_object &m) { return std::string(sdlf_model_name(m.get())); }, "Its name, a str.")
        .def_prop_ro(
            "inputs", [](const model_object &m) { return input_names(m.get()); }, "Names of the inputs, a list of str.")
        .def_prop_ro("outputs", &outputs, nb::for_getter(nb::sig("def outputs(self, /) -> list[str]")),
                     "Names of the declared results, a list of str.")
        .def("_output_layer",
             [](const model_object &m, int index) {
                 int count = sdlf_model_output_count(m.get());
                 int layer =
                     index < count ? sdlf_model_output(m.get(), index).layer : sdlf_model_layer_count(m.get()) - 1;
                 return std::string(sdlf_model_layer(m.get(), layer)->name);
             })
        .def_prop_ro("_layers", &layers, nb::for_getter(nb::sig("def _layers(self, /) -> list[dict[str, typing.Any]]")))
        .def_prop_rw(
            "normalization", &normalization, &set_normalization, nb::arg().none(),
            nb::for_getter(nb::sig("def normalization(self, /) -> typing.Any")),
            nb::for_setter(nb::sig("def normalization(self, value: typing.Any, /) -> None")),
            "How raw samples become the input: (means, deviations), of one channel or of each; None: not known.")
        .def_prop_rw("classes", &classes, &set_classes,
                     "Names of the classes, in the order of the scores (N,C), a list of str; [] if not known.")
        .def_prop_ro(
            "trainable_count", [](const model_object &m) { return sdlf_model_trainable_count(m.get()); },
            "Scalars that training changes, an int.")
        .def(
            "hash", [](const model_object &m) { return sdlf_model_hash(m.get()); },
            "A check sum of all parameters, an int of 64 bits.");
}
