/* Model, Node: building, files, parameters. */
#include "common.h"

#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "plan_object.h"

void model_object::forget_plans()
{
    std::vector<std::shared_ptr<plan_object>> old;
    std::lock_guard<std::mutex> locked(cache_mutex);
    old.swap(cache);
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

/* What a constructor of the library made; its failure is the caller's exception. */
template <class function> std::unique_ptr<model_object> made_by(function &&make)
{
    sdlf_model *model = nullptr;
    sdlf_status status;
    {
        nb::gil_scoped_release released;
        status = make(&model);
    }
    check(status);
    return std::make_unique<model_object>(model);
}

void require_no_views(const model_object &m, const char *action)
{
    if (m.handle->views.load() > 0)
        throw status_error(SDLF_ERROR_ARGUMENT,
                           std::string(action) + " would free parameters of which " +
                               std::to_string(m.handle->views.load()) +
                               " arrays are still in use: copy these (numpy.array) and delete them");
}

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
    m.forget_plans();
    std::lock_guard<std::recursive_mutex> locked(m.handle->mutex);
    return made_node(self, sdlf_input(m.get(), name.c_str(), type, to_shape(shape, "shape")));
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
    m.forget_plans();
    std::lock_guard<std::recursive_mutex> locked(m.handle->mutex);
    sdlf_model_set_origin(m.get(), origin.empty() ? nullptr : origin.c_str());
    sdlf_node node = sdlf_model_add(m.get(), found, memory.data(), nodes.data(), static_cast<int>(nodes.size()));
    sdlf_model_set_origin(m.get(), nullptr);
    return made_node(model, node);
}

void set_output(model_object &m, const std::string &name, const node_object &node)
{
    if (node.handle != m.handle) throw nb::value_error("the node belongs to another model");
    m.forget_plans();
    std::lock_guard<std::recursive_mutex> locked(m.handle->mutex);
    sdlf_output(m.get(), name.c_str(), node.node);
    check(sdlf_model_status(m.get()));
}

void build(model_object &m, uint64_t seed)
{
    m.forget_plans();
    require_no_views(m, "building");
    check(alone(m.handle->mutex, [&] { return sdlf_model_build(m.get(), seed); }));
    m.handle->version++;
}

std::unique_ptr<model_object> from_onnx(const std::string &path, int64_t batch, const nb::dict &dimensions,
                                        const nb::dict &known)
{
    std::vector<std::string> names;
    std::vector<host_array> arrays;
    std::vector<sdlf_onnx_dimension> sizes;
    std::vector<sdlf_onnx_known> values;
    names.reserve(dimensions.size() + known.size()); /* which keeps their addresses */
    for (auto [key, value] : dimensions) {
        names.push_back(nb::cast<std::string>(key));
        sizes.push_back({names.back().c_str(), nb::cast<int64_t>(value)});
    }
    for (auto [key, value] : known) {
        names.push_back(nb::cast<std::string>(key));
        arrays.push_back(to_host_array(value, names.back()));
        const host_array &a = arrays.back();
        values.push_back({names.back().c_str(), sdlf_tensor_view(dtype_of(a, names.back()), shape_of(a, names.back()),
                                                                 const_cast<void *>(a.data()))});
    }
    sdlf_onnx_options options = {};
    options.batch = batch;
    options.dimensions = sizes.data();
    options.dimension_count = static_cast<int>(sizes.size());
    options.known = values.data();
    options.known_count = static_cast<int>(values.size());
    return made_by([&](sdlf_model **model) { return sdlf_model_from_onnx(model, path.c_str(), &options); });
}

std::unique_ptr<model_object> builtin(const std::string &name, nb::object sample, int classes)
{
    if (sample.is_none() && classes == 10)
        return made_by([&](sdlf_model **model) { return sdlf_network_builtin(model, name.c_str()); });
    if (sample.is_none()) throw nb::type_error("for a number of classes, give the shape of a sample (C,H,W), too");
    sdlf_shape shape = to_shape(sample, "sample");
    return made_by([&](sdlf_model **model) { return sdlf_network_builtin_for(model, name.c_str(), shape, classes); });
}

nb::dict to_onnx(model_object &m, const std::string &path, int opset, bool external_data)
{
    sdlf_onnx_export_options options = {};
    options.opset = opset;
    options.external_data = external_data;
    sdlf_onnx_exported made = {};
    check(alone(m.handle->mutex, [&] { return sdlf_model_to_onnx(m.get(), path.c_str(), &options, &made); }));
    nb::dict d;
    d["opset"] = made.opset;
    d["nodes"] = made.node_count;
    d["parameters"] = made.parameter_count;
    d["bytes"] = made.bytes;
    d["external_bytes"] = made.external_bytes;
    d["external_file"] = std::string(made.external_file);
    d["fixed_batch"] = made.fixed_batch;
    return d;
}

void to_c(model_object &m, const std::string &path, const std::optional<std::string> &name)
{
    sdlf_c_export_options options = {};
    if (name) options.name = name->c_str();
    check(alone(m.handle->mutex, [&] { return sdlf_model_to_c(m.get(), path.c_str(), &options, nullptr); }));
}

std::string to_json(const model_object &m)
{
    char *text = nullptr;
    check(sdlf_network_write(m.get(), &text));
    std::unique_ptr<char, decltype(&std::free)> owned(text, &std::free);
    return text;
}

/* ---- parameters ---- */

std::vector<std::string> parameter_names(const model_object &m)
{
    std::vector<std::string> names;
    for (int i = 0; i < sdlf_model_parameter_count(m.get()); i++)
        names.emplace_back(sdlf_model_parameter(m.get(), i)->name);
    return names;
}

sdlf_parameter *find_parameter(const model_object &m, const std::string &name)
{
    sdlf_parameter *parameter = sdlf_model_find_parameter(m.get(), name.c_str());
    if (parameter == nullptr) throw nb::key_error(name.c_str());
    if (parameter->value.data == nullptr) throw status_error(SDLF_ERROR_ARGUMENT, name + " has no value here");
    return parameter;
}

struct view_owner {
    std::shared_ptr<model_handle> handle;
    ~view_owner()
    {
        handle->views--;
    }
};

nb::object parameter(const model_object &m, const std::string &name)
{
    const sdlf_parameter *found = find_parameter(m, name);
    m.handle->views++;
    nb::capsule owner(new view_owner{m.handle}, [](void *p) noexcept { delete static_cast<view_owner *>(p); });
    return view_array(found->value, owner, false);
}

void set_parameter(model_object &m, const std::string &name, nb::handle object)
{
    sdlf_parameter *found = find_parameter(m, name);
    host_array array = to_host_array(object, name);
    sdlf_dtype dtype = dtype_of(array, name);
    sdlf_shape shape = shape_of(array, name);
    if (!sdlf_shape_equal(shape, found->value.shape))
        throw status_error(SDLF_ERROR_SHAPE, name + " has the shape " + sdlf_shape_print(found->value.shape).text +
                                                 ", found " + sdlf_shape_print(shape).text);
    std::lock_guard<std::recursive_mutex> locked(m.handle->mutex);
    sdlf_convert(found->value.dtype, found->value.data, dtype, array.data(), sdlf_tensor_count(&found->value));
    m.handle->version++;
}

nb::dict parameter_info(const model_object &m, const std::string &name)
{
    const sdlf_parameter *found = sdlf_model_find_parameter(m.get(), name.c_str());
    if (found == nullptr) throw nb::key_error(name.c_str());
    nb::dict d;
    d["shape"] = from_shape(found->spec.shape);
    d["trainable"] = found->spec.trainable;
    d["decay"] = found->spec.decay;
    d["layer"] = sdlf_model_layer(m.get(), found->layer)->name;
    return d;
}

/* ---- looking ---- */

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
    auto [mean, deviation] = nb::cast<std::pair<std::vector<float>, std::vector<float>>>(value);
    if (mean.size() != deviation.size() || mean.empty() || mean.size() > SDLF_NORMALIZED_CHANNELS)
        throw nb::value_error(
            "normalization: expected as many means as deviations, one for all or one for each of up to 16 channels");
    for (float d : deviation)
        if (!(d > 0)) throw nb::value_error("normalization: a deviation is above 0");
    sdlf_fit fit = n->fit;
    *n = sdlf_normalization{};
    n->fit = fit;
    n->known = true;
    n->mean = mean[0];
    n->scale = 1 / deviation[0];
    n->channels.count = mean.size() > 1 ? static_cast<int>(mean.size()) : 0;
    for (size_t i = 0; i < mean.size(); i++) {
        n->channels.mean[i] = mean[i];
        n->channels.scale[i] = 1 / deviation[i];
    }
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

} // namespace

void bind_model(nb::module_ &module)
{
    nb::class_<node_object>(module, "Node", "One output of one layer of a model; what layers take and return.")
        .def_prop_ro(
            "model", [](const node_object &n) { return n.model; }, "The model that it belongs to.")
        .def_prop_ro("name", &node_name, "The layer's name.")
        .def_prop_ro("shape", &node_shape, "Its shape for a batch of 1; () until the model is built.")
        .def("__repr__", [](const node_object &n) { return "<sdlf.Node '" + node_name(n) + "'>"; })
        .def(
            "output",
            [](const node_object &n, int index) {
                return node_object{n.model, n.handle, sdlf_node{n.node.layer, index}};
            },
            nb::arg("index"), "Another output of the same layer.");

    nb::class_<model_object>(module, "Model")
        .def(
            "__init__",
            [](model_object *self, const std::string &name) {
                sdlf_model *model = sdlf_model_create(name.c_str());
                if (model == nullptr) throw std::bad_alloc();
                new (self) model_object(model);
            },
            nb::arg("name") = "model")
        .def_static("_from_onnx", &from_onnx)
        .def_static("_open",
                    [](const std::string &path) {
                        return made_by([&](sdlf_model **model) { return sdlf_model_open(model, path.c_str()); });
                    })
        .def_static("_read_network",
                    [](const std::string &path) {
                        return made_by([&](sdlf_model **model) { return sdlf_network_read(model, path.c_str()); });
                    })
        .def_static("_builtin", &builtin, nb::arg("name"), nb::arg("sample").none(), nb::arg("classes"))
        .def_static("_parse",
                    [](const std::string &text) {
                        return made_by([&](sdlf_model **model) {
                            return sdlf_network_parse(model, text.data(), text.size(), nullptr);
                        });
                    })
        .def("_take", [](model_object &m, const model_object &other) { m.handle = other.handle; })
        .def("run", &run_model,
             "The result for arrays in the order of the inputs, or by their names; a dictionary where there are "
             "several results. Axis 0 "
             "of the first input is the batch; plans of the last four batch sizes are kept. Other threads run "
             "meanwhile.")
        .def("__call__", &run_model)
        .def("_use", &use_calculator)
        .def("_add", &add_layer, nb::arg("type"), nb::arg("inputs"), nb::arg("name").none(), nb::arg("options"),
             nb::arg("origin"))
        .def("input", &add_input, nb::arg("name"), nb::arg("shape"), nb::arg("dtype") = "float32",
             "An input; its shape is that of one sample, without the batch.")
        .def("output", &set_output, nb::arg("name"), nb::arg("node"), "Declare a result.")
        .def(
            "clear_outputs",
            [](model_object &m) {
                m.forget_plans();
                sdlf_model_clear_outputs(m.get());
            },
            "Forget the declared results.")
        .def("build", &build, nb::arg("seed") = 1, "Infer all shapes, make the parameters and draw them from the seed.")
        .def("_save",
             [](model_object &m, const std::string &path, bool checkpoint) {
                 check(alone(m.handle->mutex, [&] {
                     return checkpoint ? sdlf_model_save_checkpoint(m.get(), path.c_str())
                                       : sdlf_model_save(m.get(), path.c_str());
                 }));
             })
        .def("_load",
             [](model_object &m, const std::string &path) {
                 check(alone(m.handle->mutex, [&] { return sdlf_model_load(m.get(), path.c_str()); }));
                 m.handle->version++;
             })
        .def("_to_onnx", &to_onnx)
        .def("_to_c", &to_c, nb::arg("path"), nb::arg("name").none())
        .def("to_json", &to_json, "The network, without weights, in the form of network files.")
        .def("_parameter_names", &parameter_names)
        .def("_parameter", &parameter)
        .def("_set_parameter", &set_parameter)
        .def("_parameter_info", &parameter_info)
        .def(
            "freeze",
            [](model_object &m, const std::string &name, bool frozen) {
                m.forget_plans();
                check(sdlf_model_freeze(m.get(), name.c_str(), frozen));
            },
            nb::arg("parameter"), nb::arg("frozen") = true,
            "Have training leave a parameter alone, or change it again.")
        .def(
            "replace_head",
            [](model_object &m, int count, uint64_t seed) {
                m.forget_plans();
                require_no_views(m, "a new head");
                check(alone(m.handle->mutex, [&] { return sdlf_model_replace_head(m.get(), count, seed); }));
                m.handle->version++;
            },
            nb::arg("classes"), nb::arg("seed") = 1,
            "Give a classifier another number of classes; all but its last layer is kept.")
        .def_prop_ro("name", [](const model_object &m) { return std::string(sdlf_model_name(m.get())); })
        .def_prop_ro(
            "inputs", [](const model_object &m) { return input_names(m.get()); }, "Names of the inputs.")
        .def_prop_ro("outputs", &outputs, "Names of the declared results.")
        .def_prop_ro("_layers", &layers)
        .def_prop_rw(
            "normalization", &normalization, &set_normalization, nb::arg().none(),
            "How raw samples become the input: (means, deviations), of one channel or of each; None: not known.")
        .def_prop_rw("classes", &classes, &set_classes,
                     "Names of the classes, in the order of the scores; [] if not known.")
        .def_prop_ro(
            "trainable_count", [](const model_object &m) { return sdlf_model_trainable_count(m.get()); },
            "Scalars that training changes.")
        .def(
            "hash", [](const model_object &m) { return sdlf_model_hash(m.get()); }, "A check sum of all parameters.");
}
