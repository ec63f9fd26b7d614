/* Data sets, Trainer, evaluation. */
#include "common.h"

#include <cstring>

#include "plan_object.h"

sdlf_optimizer to_optimizer(nb::handle object)
{
    sdlf_optimizer optimizer = {};
    if (object.is_none()) return optimizer;
    std::string name = nb::cast<std::string>(object.attr("name"));
    optimizer.type = sdlf_optimizer_class_find(name.c_str());
    if (optimizer.type == nullptr) throw nb::value_error(("there is no optimizer '" + name + "'").c_str());
    fill_options(optimizer.type->fields, &optimizer.options, nb::cast<nb::dict>(object.attr("options")), name.c_str());
    check(sdlf_optimizer_complete(&optimizer));
    return optimizer;
}

sdlf_schedule to_schedule(nb::handle object)
{
    static const struct {
        const char *name;
        float sdlf_schedule::*member;
    } members[] = {{"peak", &sdlf_schedule::peak},
                   {"final", &sdlf_schedule::final},
                   {"warmup", &sdlf_schedule::warmup},
                   {"gamma", &sdlf_schedule::gamma},
                   {"start_divisor", &sdlf_schedule::start_divisor},
                   {"final_divisor", &sdlf_schedule::final_divisor}};
    sdlf_schedule schedule = {};
    if (object.is_none()) return schedule;
    std::string name = nb::cast<std::string>(object.attr("name"));
    int kind = 0;
    while (sdlf_schedule_names[kind] != nullptr && name != sdlf_schedule_names[kind]) kind++;
    if (sdlf_schedule_names[kind] == nullptr) throw nb::value_error(("there is no schedule '" + name + "'").c_str());
    schedule.kind = static_cast<sdlf_schedule_kind>(kind);
    for (auto [key, value] : nb::cast<nb::dict>(object.attr("options"))) {
        std::string word = nb::cast<std::string>(key);
        bool found = word == "every";
        if (found) schedule.every = nb::cast<int>(value);
        for (const auto &m : members) {
            if (word != m.name) continue;
            schedule.*m.member = nb::cast<float>(value);
            found = true;
        }
        if (!found) throw nb::type_error(("a schedule has no option '" + word + "'").c_str());
    }
    check(sdlf_schedule_complete(&schedule));
    return schedule;
}

namespace
{

/* Opened from files, or around arrays. */
struct dataset_object {
    sdlf_dataset *opened = nullptr;
    sdlf_dataset own = {};
    host_array samples, labels;  /* of `own` */
    std::vector<int32_t> narrow; /* labels of another type */
    std::vector<std::string> names;
    std::vector<char *> name_pointers;
    dataset_object() = default;
    dataset_object(const dataset_object &) = delete;
    ~dataset_object()
    {
        sdlf_dataset_free(opened);
    }
    const sdlf_dataset *get() const
    {
        return opened != nullptr ? opened : &own;
    }
};

std::shared_ptr<dataset_object> open_dataset(const std::string &specification, const std::string &split,
                                             nb::object size, int channels, bool strict)
{
    if (split != "train" && split != "test")
        throw nb::value_error(("split '" + split + "' is neither train nor test").c_str());
    sdlf_dataset_options options = {};
    if (!size.is_none()) {
        int both;
        if (nb::try_cast(size, both)) {
            options.height = options.width = both;
        } else {
            std::vector<int> two = nb::cast<std::vector<int>>(size);
            if (two.size() != 2) throw nb::value_error("size: expected an integer, or (height, width)");
            options.height = two[0];
            options.width = two[1];
        }
    }
    options.channels = channels;
    options.strict = strict;
    std::shared_ptr<dataset_object> made = std::make_shared<dataset_object>();
    sdlf_status status;
    {
        nb::gil_scoped_release released;
        status = sdlf_dataset_open_with(&made->opened, specification.c_str(),
                                        split == "test" ? SDLF_SPLIT_TEST : SDLF_SPLIT_TRAIN, &options);
    }
    check(status);
    return made;
}

/* Smallest and largest label. */
std::pair<int64_t, int64_t> range_of(const std::vector<int64_t> &labels)
{
    std::pair<int64_t, int64_t> range = {labels[0], labels[0]};
    for (int64_t label : labels) {
        range.first = std::min(range.first, label);
        range.second = std::max(range.second, label);
    }
    return range;
}

std::shared_ptr<dataset_object> dataset_of_arrays(nb::handle samples, nb::handle labels, int class_count,
                                                  const std::vector<std::string> &names, nb::object normalization)
{
    std::shared_ptr<dataset_object> made = std::make_shared<dataset_object>();
    made->samples = to_host_array(samples, "samples");
    made->labels = to_host_array(labels, "labels");
    sdlf_shape shape = shape_of(made->samples, "samples"), counted = shape_of(made->labels, "labels");
    sdlf_dtype dtype = dtype_of(made->samples, "samples"), type = dtype_of(made->labels, "labels");
    if (shape.rank < 2)
        throw status_error(SDLF_ERROR_SHAPE,
                           "samples: expected (N,...), found " + std::string(sdlf_shape_print(shape).text));
    if (dtype != SDLF_UINT8 && dtype != SDLF_FLOAT32)
        throw nb::type_error("samples: expected uint8 or float32 (.astype('float32'))");
    if (counted.rank != 1 || counted.dim[0] != shape.dim[0] || counted.dim[0] == 0)
        throw status_error(SDLF_ERROR_SHAPE, "labels: expected " + std::to_string(shape.dim[0]) + " of them, found " +
                                                 sdlf_shape_print(counted).text);
    if (sdlf_dtype_is_float(type) || type == SDLF_BOOL)
        throw nb::type_error("labels: expected integers, the classes from 0 on");
    std::vector<int64_t> wide(static_cast<size_t>(counted.dim[0]));
    sdlf_convert(SDLF_INT64, wide.data(), type, made->labels.data(), counted.dim[0]);
    std::pair<int64_t, int64_t> range = range_of(wide);
    if (class_count == 0)
        class_count = !names.empty() ? static_cast<int>(names.size())
                                     : static_cast<int>(std::min<int64_t>(range.second + 1, INT32_MAX));
    if (range.first < 0 || range.second >= class_count)
        throw status_error(SDLF_ERROR_ARGUMENT, "labels: they go from " + std::to_string(range.first) + " to " +
                                                    std::to_string(range.second) + "; expected 0 to " +
                                                    std::to_string(class_count - 1));
    if (!names.empty() && static_cast<int>(names.size()) != class_count)
        throw status_error(SDLF_ERROR_ARGUMENT, "classes: expected " + std::to_string(class_count) + " names, found " +
                                                    std::to_string(names.size()));
    made->narrow.resize(wide.size());
    for (size_t i = 0; i < wide.size(); i++) made->narrow[i] = static_cast<int32_t>(wide[i]);
    sdlf_dataset &d = made->own;
    d.samples = sdlf_tensor_view(dtype, shape, const_cast<void *>(made->samples.data()));
    d.labels = sdlf_tensor_view(SDLF_INT32, counted, made->narrow.data());
    d.class_count = class_count;
    d.scale = dtype == SDLF_UINT8 ? 1.0f / 255 : 1;
    if (!normalization.is_none()) {
        auto [mean, deviation] = nb::cast<std::pair<std::vector<float>, std::vector<float>>>(normalization);
        if (mean.size() != deviation.size() || mean.empty() || mean.size() > SDLF_NORMALIZED_CHANNELS)
            throw nb::value_error("normalization: expected as many means as deviations");
        for (float one : deviation)
            if (!(one > 0)) throw nb::value_error("normalization: a deviation is above 0");
        d.mean = mean[0];
        d.scale = 1 / deviation[0];
        d.channels.count = mean.size() > 1 ? static_cast<int>(mean.size()) : 0;
        for (size_t i = 0; i < mean.size(); i++) {
            d.channels.mean[i] = mean[i];
            d.channels.scale[i] = 1 / deviation[i];
        }
    }
    made->names = names;
    for (std::string &name : made->names) made->name_pointers.push_back(name.data());
    if (!names.empty()) d.class_names = made->name_pointers.data();
    return made;
}

nb::list class_names(const dataset_object &d)
{
    nb::list names;
    for (int i = 0; d.get()->class_names != nullptr && i < d.get()->class_count; i++)
        names.append(d.get()->class_names[i]);
    return names;
}

/* ---- Trainer ---- */

struct trainer_object {
    std::shared_ptr<model_handle> model;
    std::shared_ptr<dataset_object> train, test;
    nb::object callback; /* while it runs: one that is kept could hold us, which Python's collector does not see */
    std::optional<nb::python_error> raised; /* by the callback, or Ctrl-C */
    sdlf_trainer *trainer = nullptr;
    std::mutex mutex;
    trainer_object() = default;
    trainer_object(const trainer_object &) = delete;
    ~trainer_object()
    {
        sdlf_trainer_free(trainer);
    }
};

nb::dict to_dict(const sdlf_progress *p)
{
    static const char *const events[] = {"step", "epoch", "unsaved"};
    nb::dict d;
    d["event"] = events[p->event];
    d["epoch"] = p->epoch;
    d["epochs"] = p->epochs;
    d["step"] = p->step;
    d["steps"] = p->steps;
    d["samples"] = p->samples;
    d["loss"] = p->loss;
    d["accuracy"] = p->accuracy;
    d["test_loss"] = p->test_loss;
    d["test_accuracy"] = p->test_accuracy;
    d["seconds"] = p->seconds;
    d["learning_rate"] = p->learning_rate;
    d["weights"] = p->weights;
    if (p->event == sdlf_progress::SDLF_PROGRESS_UNSAVED) d["message"] = sdlf_error_message();
    return d;
}

/* On the thread that trains, which has not Python's lock. What Python raises stops the training, and is raised where it was begun. */
void tell(const sdlf_progress *progress, void *user)
{
    trainer_object &t = *static_cast<trainer_object *>(user);
    nb::gil_scoped_acquire held;
    if (t.raised) return;
    try {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!t.callback.is_none() && nb::cast<bool>(t.callback(to_dict(progress)))) sdlf_trainer_stop(t.trainer);
    } catch (nb::python_error &e) {
        t.raised.emplace(std::move(e));
        sdlf_trainer_stop(t.trainer);
    }
}

std::shared_ptr<trainer_object> create(model_object &m, const std::shared_ptr<dataset_object> &train,
                                       const std::shared_ptr<dataset_object> &test, nb::dict words)
{
    std::shared_ptr<trainer_object> made = std::make_shared<trainer_object>();
    sdlf_trainer_options options = {};
    std::string forward, backward, checkpoint;
    for (auto [key, value] : words) {
        std::string word = nb::cast<std::string>(key);
        if (value.is_none()) continue;
        if (word == "batch")
            options.batch = nb::cast<int64_t>(value);
        else if (word == "epochs")
            options.epochs = nb::cast<int>(value);
        else if (word == "seed")
            options.seed = nb::cast<uint64_t>(value);
        else if (word == "optimizer")
            options.optimizer = to_optimizer(value);
        else if (word == "schedule")
            options.schedule = to_schedule(value);
        else if (word == "label_smoothing")
            options.label_smoothing = nb::cast<float>(value);
        else if (word == "clip_norm")
            options.clip_norm = nb::cast<float>(value);
        else if (word == "flip")
            options.augment.flip = nb::cast<bool>(value);
        else if (word == "crop")
            options.augment.crop = nb::cast<int>(value);
        else if (word == "shift")
            options.augment.shift = nb::cast<float>(value);
        else if (word == "rotate")
            options.augment.rotate = nb::cast<float>(value);
        else if (word == "scale")
            options.augment.scale = nb::cast<float>(value);
        else if (word == "elastic")
            options.augment.elastic = nb::cast<float>(value);
        else if (word == "calculator")
            forward = nb::cast<std::string>(value);
        else if (word == "backward")
            backward = nb::cast<std::string>(value);
        else if (word == "threads")
            options.threads = nb::cast<int>(value);
        else if (word == "device")
            options.device = nb::cast<int>(value);
        else if (word == "math") {
            options.math = sdlf_math_from_name(nb::cast<std::string>(value).c_str());
            if (options.math == SDLF_MATH_COUNT) throw nb::value_error("math is none of fp32, tf32, fp16, bf16");
        } else if (word == "checkpoint")
            checkpoint = nb::cast<std::string>(value);
        else if (word == "resume")
            options.resume = nb::cast<bool>(value);
        else
            throw nb::type_error(("Trainer has no option '" + word + "'").c_str());
    }
    if (!forward.empty()) options.forward = forward.c_str();
    if (!backward.empty()) options.backward = backward.c_str();
    if (!checkpoint.empty()) options.checkpoint = checkpoint.c_str();
    made->model = m.handle;
    made->train = train;
    made->test = test;
    options.callback = tell;
    options.user = made.get();
    m.forget_plans();
    check(alone(m.handle->mutex, [&] {
        return sdlf_trainer_create(&made->trainer, m.get(), train->get(), test ? test->get() : nullptr, &options);
    }));
    return made;
}

/* True: it came to its end; false: it was asked to stop. */
bool run(trainer_object &t, nb::object callback)
{
    std::unique_lock<std::mutex> locked(t.mutex, std::try_to_lock);
    if (!locked) throw status_error(SDLF_ERROR_ARGUMENT, "this trainer is running in another thread");
    t.raised.reset();
    t.callback = callback;
    sdlf_status status;
    {
        nb::gil_scoped_release released;
        status = sdlf_trainer_run(t.trainer);
        t.model->version++;
    }
    t.callback.reset();
    if (t.raised) {
        nb::python_error error = std::move(*t.raised);
        t.raised.reset();
        throw error;
    }
    if (status == SDLF_ERROR_INTERRUPTED) return false;
    check(status);
    return true;
}

/* ---- evaluation ---- */

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

nb::tuple evaluate(model_object &m, const std::shared_ptr<dataset_object> &data, const std::string &calculator,
                   int threads, int device, const std::string &math, int64_t batch)
{
    std::shared_ptr<calculator_handle> opened = open_calculator(calculator, threads, device, math);
    sdlf_evaluation e = {};
    watch watched;
    check(alone(m.handle->mutex, [&] {
        return sdlf_evaluate_while(&e, m.get(), data->get(), opened->calculator, batch, go_on, &watched);
    }));
    if (watched.raised) {
        sdlf_evaluation_release(&e);
        throw std::move(*watched.raised);
    }
    sdlf_shape shape = sdlf_shape(e.class_count, e.class_count);
    new_array confusion = make_array(SDLF_INT64, shape);
    std::memcpy(confusion.data, e.confusion, static_cast<size_t>(sdlf_shape_count(shape)) * sizeof(int64_t));
    nb::tuple result = nb::make_tuple(e.samples, e.correct, e.loss, e.seconds, confusion.object);
    sdlf_evaluation_release(&e);
    return result;
}

} // namespace

void bind_training(nb::module_ &module)
{
    nb::class_<dataset_object>(module, "Dataset", "Samples and their classes.")
        .def("__len__", [](const dataset_object &d) { return d.get()->labels.shape.dim[0]; })
        .def_prop_ro(
            "samples",
            [](const std::shared_ptr<dataset_object> &d) { return view_array(d->get()->samples, nb::cast(d), false); },
            "(N,C,H,W) uint8, or as the arrays were; read-only.")
        .def_prop_ro(
            "labels",
            [](const std::shared_ptr<dataset_object> &d) { return view_array(d->get()->labels, nb::cast(d), false); },
            "(N) int32; read-only.")
        .def_prop_ro("class_count", [](const dataset_object &d) { return d.get()->class_count; })
        .def_prop_ro("classes", &class_names, "Names of the classes; [] where they are numbers.")
        .def_prop_ro("name",
                     [](const dataset_object &d) { return std::string(d.get()->name ? d.get()->name : "arrays"); })
        .def_prop_ro(
            "unread", [](const dataset_object &d) { return d.get()->unread; },
            "Files that could not be read and were left out.");
    nb::class_<trainer_object>(module, "_Trainer")
        .def("run", &run, nb::arg("callback").none())
        .def("stop", [](trainer_object &t) { sdlf_trainer_stop(t.trainer); })
        .def_prop_ro("memory", [](const trainer_object &t) { return sdlf_trainer_memory(t.trainer); });
    module.def("_open_dataset", &open_dataset, nb::arg("specification"), nb::arg("split"), nb::arg("size").none(),
               nb::arg("channels"), nb::arg("strict"));
    module.def("_dataset_of_arrays", &dataset_of_arrays, nb::arg("samples"), nb::arg("labels"), nb::arg("class_count"),
               nb::arg("names"), nb::arg("normalization").none());
    module.def("_trainer", &create, nb::arg("model"), nb::arg("train"), nb::arg("test").none(), nb::arg("words"));
    module.def("_evaluate", &evaluate);
}
