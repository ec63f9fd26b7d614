/* SPDX-License-Identifier: MIT */
/* Model: reading from and writing to files. */
#include "common.h"

#include <cstdlib>

namespace
{

/* Wraps the result of a library constructor; throws if it fails. */
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

std::unique_ptr<model_object> from_onnx(const std::string &path, int64_t batch, const nb::dict &dimensions,
                                        const nb::dict &known)
{
    std::vector<std::string> names;
    std::vector<host_array> arrays;
    std::vector<sdlf_onnx_dimension> sizes;
    std::vector<sdlf_onnx_known> values;
    names.reserve(dimensions.size() + known.size()); /* so that their addresses stay valid */
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

nb::dict to_onnx(model_object &m, const std::string &path, int opset, bool external_data, bool normalize)
{
    sdlf_onnx_export_options options = {};
    options.opset = opset;
    options.external_data = external_data;
    options.normalize = normalize;
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

} // namespace

void bind_files(nb::class_<model_object> &type)
{
    type.def_static("_from_onnx", &from_onnx)
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
        .def("to_json", &to_json, "The network, without weights, in the form of network files: a str.");
}
