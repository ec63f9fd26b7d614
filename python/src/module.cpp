/* SPDX-License-Identifier: MIT */
/* The extension module sdlf._sdlf: the C library's objects as Python objects. The package python/sdlf adds the convenient interface. */
#include "common.h"

#include <thread>

static nb::list layer_classes()
{
    nb::list all;
    const sdlf_layer_class *type;
    for (int i = 0; (type = sdlf_layer_class_at(i)) != nullptr; i++) all.append(type->name);
    return all;
}

static nb::list calculators()
{
    nb::list all;
    const sdlf_calculator_class *type;
    for (int i = 0; (type = sdlf_calculator_class_at(i)) != nullptr; i++) all.append(type->name);
    return all;
}

/* True if the calculator can be opened on that device. `text`: what it runs on, or why it cannot. */
static bool try_calculator(const sdlf_calculator_class *type, int device, std::string &text)
{
    sdlf_calculator *calculator = nullptr;
    sdlf_calculator_options options = {};
    options.device = device;
    char described[400] = "";
    bool there = sdlf_calculator_open(&calculator, type->name, &options) == SDLF_OK;
    if (there) calculator->type->describe(calculator, described, sizeof described);
    text = there ? described : sdlf_error_message();
    sdlf_calculator_close(calculator);
    return there;
}

/* Each calculator of the build on each of its devices: (name, usable, what it runs on or why it is not usable). Each is opened in a
 * separate thread, since opening one makes its GPU the thread's current CUDA device. */
static nb::list describe_calculators()
{
    nb::list all;
    const sdlf_calculator_class *type;
    for (int i = 0; (type = sdlf_calculator_class_at(i)) != nullptr; i++) {
        int devices = type->device_count != nullptr ? type->device_count() : 0;
        for (int device = 0; device == 0 || device < devices; device++) {
            std::string name = type->name, text;
            if (devices > 1) name += ":" + std::to_string(device);
            bool there = false;
            {
                nb::gil_scoped_release released;
                std::thread([&] { there = try_calculator(type, device, text); }).join();
            }
            all.append(nb::make_tuple(name, there, text));
        }
    }
    const char *reason = nullptr, *name;
    for (int i = 0; (name = sdlf_calculator_unavailable(i, &reason)) != nullptr; i++)
        all.append(nb::make_tuple(name, false, "not in this build: " + std::string(reason)));
    return all;
}

NB_MODULE(_sdlf, module)
{
    module.doc() = "The C library, as sdlf uses it.";
    module.attr("version") = SDLF_VERSION;
    bind_errors();
    bind_model(module);
    bind_plan(module);
    bind_dataset(module);
    bind_trainer(module);
    bind_quantize(module);
    bind_stateful(module);
    bind_sized(module);
    module.def("layer_classes", &layer_classes, nb::sig("def layer_classes() -> list[str]"),
               "The name of every layer class, a list of str.");
    module.def("calculators", &calculators, nb::sig("def calculators() -> list[str]"),
               "Names of the calculators of this build, a list of str.");
    module.def("_describe_calculators", &describe_calculators);
}
