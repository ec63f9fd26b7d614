/* SPDX-License-Identifier: MIT */
/* Model: its parameters as arrays over the model's memory. */
#include "common.h"

void require_no_views(const model_object &m, const char *action)
{
    if (m.handle->views.load() > 0)
        throw status_error(SDLF_ERROR_ARGUMENT,
                           std::string(action) + " would free parameters of which " +
                               std::to_string(m.handle->views.load()) +
                               " arrays are still in use: copy these (numpy.array) and delete them");
}

namespace
{

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
    alone(m.handle->mutex, [&] {
        sdlf_convert(found->value.dtype, found->value.data, dtype, array.data(), sdlf_tensor_count(&found->value));
    });
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

} // namespace

void bind_parameters(nb::class_<model_object> &type)
{
    type.def("_parameter_names", &parameter_names, nb::sig("def _parameter_names(self) -> list[str]"))
        .def("_parameter", &parameter, nb::sig("def _parameter(self, name: str) -> numpy.ndarray"))
        .def("_set_parameter", &set_parameter)
        .def("_parameter_info", &parameter_info,
             nb::sig("def _parameter_info(self, name: str) -> dict[str, typing.Any]"))
        .def(
            "freeze",
            [](model_object &m, const std::string &name, bool frozen) {
                require_no_plans(m, "freezing");
                check(sdlf_model_freeze(m.get(), name.c_str(), frozen));
            },
            nb::arg("parameter"), nb::arg("frozen") = true,
            "Have training leave a parameter alone, or change it again.")
        .def(
            "replace_head",
            [](model_object &m, int count, uint64_t seed) {
                require_no_plans(m, "a new head");
                require_no_views(m, "a new head");
                check(alone(m.handle->mutex, [&] { return sdlf_model_replace_head(m.get(), count, seed); }));
                m.handle->version++;
            },
            nb::arg("classes"), nb::arg("seed") = 1,
            "Give a classifier another number of classes; all but its last layer is kept.");
}
