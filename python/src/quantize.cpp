/* SPDX-License-Identifier: MIT */
/* Writing a network with integer weights and activations as an ONNX file. */
#include "dataset_object.h"

namespace
{

struct watch {
    std::optional<nb::python_error> raised;
};

bool go_on(void *user)
{
    watch &w = *static_cast<watch *>(user);
    nb::gil_scoped_acquire held;
    if (PyErr_CheckSignals() == 0) return true;
    w.raised.emplace();
    return false;
}

sdlf_calibration calibration_of(const std::string &name)
{
    std::string known;
    for (int i = 0; sdlf_calibration_names[i] != nullptr; i++) {
        if (name == sdlf_calibration_names[i]) return static_cast<sdlf_calibration>(i);
        known += (i > 0 ? ", " : "") + std::string(sdlf_calibration_names[i]);
    }
    throw nb::value_error(("calibration '" + name + "' is none of " + known).c_str());
}

nb::dict described(const sdlf_quantized &made)
{
    nb::dict d;
    d["opset"] = made.opset;
    d["nodes"] = made.node_count;
    d["layers"] = made.layers;
    d["left"] = made.left;
    d["values"] = made.values;
    d["samples"] = made.samples;
    d["bytes"] = made.bytes;
    d["bytes_before"] = made.bytes_before;
    d["fixed_batch"] = made.fixed_batch;
    return d;
}

nb::dict quantize(model_object &m, const std::string &path, const std::shared_ptr<dataset_object> &data,
                  int weights_only, int64_t block, bool per_tensor, int64_t samples, const std::string &calibration,
                  double percentile, bool is_signed, const std::vector<std::string> &skip, int opset,
                  const std::string &calculator, int threads, int device)
{
    std::shared_ptr<calculator_handle> opened = data ? open_calculator(calculator, threads, device, "fp32") : nullptr;
    std::vector<const char *> names;
    for (const std::string &name : skip) names.push_back(name.c_str());
    watch watched;
    sdlf_quantization_options options = {};
    options.weights_only = weights_only;
    options.block = block;
    options.per_tensor = per_tensor;
    options.data = data ? data->get() : nullptr;
    options.calculator = opened ? opened->calculator : nullptr;
    options.samples = samples;
    options.calibration = calibration_of(calibration);
    options.percentile = percentile;
    options.signed_activations = is_signed;
    options.skip = names.data();
    options.skip_count = static_cast<int>(names.size());
    options.opset = opset;
    options.go_on = go_on;
    options.user = &watched;
    sdlf_quantized made = {};
    sdlf_status status;
    {
        nb::gil_scoped_release released;
        device_lock devices(opened, nullptr);
        std::lock_guard<std::recursive_mutex> locked(m.handle->mutex);
        status = sdlf_quantize(m.get(), path.c_str(), &options, &made);
    }
    if (watched.raised) throw std::move(*watched.raised);
    check_read(status, data);
    return described(made);
}

} // namespace

void bind_quantize(nb::module_ &module)
{
    module.def("_quantize", &quantize, nb::arg("model"), nb::arg("path"), nb::arg("data").none(),
               nb::arg("weights_only"), nb::arg("block"), nb::arg("per_tensor"), nb::arg("samples"),
               nb::arg("calibration"), nb::arg("percentile"), nb::arg("signed"), nb::arg("skip"), nb::arg("opset"),
               nb::arg("calculator"), nb::arg("threads"), nb::arg("device"));
}
