/* SPDX-License-Identifier: MIT */
/* Trainer and evaluation. */
#include "dataset_object.h"

#include <cstring>
#include <utility>

namespace
{

struct trainer_object {
    std::shared_ptr<model_handle> model;
    std::shared_ptr<dataset_object> train, test;
    nb::object callback;       /* only during run: a kept one could refer back to us, unseen by the cycle collector */
    std::exception_ptr raised; /* by the callback or Ctrl-C */
    sdlf_trainer *trainer = nullptr;
    std::mutex mutex;
    trainer_object() = default;
    trainer_object(const trainer_object &) = delete;
    ~trainer_object()
    {
        if (trainer == nullptr) return;
        std::optional<nb::gil_scoped_release> released; /* may be called with or without the GIL */
        if (has_python_lock()) released.emplace();
        std::lock_guard<std::recursive_mutex> locked(model->mutex);
        sdlf_trainer_free(trainer);
        model->plans--;
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
    d["test_iou"] = p->test_iou;
    d["loss_scale"] = p->loss_scale;
    d["skipped_steps"] = p->skipped_steps;
    d["test_error"] = p->test_error;
    d["waited"] = p->waited;
    d["seconds"] = p->seconds;
    d["learning_rate"] = p->learning_rate;
    d["weights"] = p->weights;
    if (p->event == sdlf_progress::SDLF_PROGRESS_UNSAVED) d["message"] = sdlf_error_message();
    return d;
}

/* Called on the training thread, without the GIL. An exception stops the training and is rethrown by the call that
 * started it. */
void tell(const sdlf_progress *progress, void *user)
{
    trainer_object &t = *static_cast<trainer_object *>(user);
    nb::gil_scoped_acquire held;
    if (t.raised) return;
    try {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!t.callback.is_none() && nb::cast<bool>(t.callback(to_dict(progress)))) sdlf_trainer_stop(t.trainer);
    } catch (...) { /* no exception may pass through the library */
        t.raised = std::current_exception();
        sdlf_trainer_stop(t.trainer);
    }
}

void put_text(char *to, size_t size, const std::string &word, const std::string &text)
{
    if (text.size() >= size)
        throw nb::value_error((word + ": expected fewer than " + std::to_string(size) + " characters").c_str());
    std::memcpy(to, text.c_str(), text.size() + 1);
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
            options.batch = value_of<int64_t>(value, word, "an integer");
        else if (word == "epochs")
            options.epochs = value_of<int>(value, word, "an integer");
        else if (word == "seed")
            options.seed = value_of<uint64_t>(value, word, "an integer from 0 on");
        else if (word == "optimizer")
            options.optimizer = to_optimizer(value);
        else if (word == "schedule")
            options.schedule = to_schedule(value);
        else if (word == "label_smoothing")
            options.label_smoothing = value_of<float>(value, word, "a number");
        else if (word == "loss")
            options.loss = to_loss(value_of<std::string>(value, word, "a name"));
        else if (word == "huber_delta")
            options.huber_delta = value_of<float>(value, word, "a number");
        else if (word == "class_weights")
            put_text(options.class_weights, sizeof options.class_weights, word,
                     value_of<std::string>(value, word, "a text"));
        else if (word == "rate_scales")
            put_text(options.rate_scales, sizeof options.rate_scales, word,
                     value_of<std::string>(value, word, "a text"));
        else if (word == "weight_decays")
            put_text(options.weight_decays, sizeof options.weight_decays, word,
                     value_of<std::string>(value, word, "a text"));
        else if (word == "ema")
            options.ema = value_of<float>(value, word, "a number");
        else if (word == "lookahead")
            options.lookahead = value_of<int>(value, word, "an integer");
        else if (word == "lookahead_share")
            options.lookahead_share = value_of<float>(value, word, "a number");
        else if (word == "accumulate")
            options.accumulate = value_of<int>(value, word, "an integer");
        else if (word == "trivial")
            options.automatic.trivial = value_of<bool>(value, word, "True or False");
        else if (word == "rand_augment")
            options.automatic.rand_augment = value_of<int>(value, word, "an integer");
        else if (word == "rand_magnitude")
            options.automatic.rand_magnitude = value_of<int>(value, word, "an integer");
        else if (word == "mixup")
            options.mixing.mixup = value_of<float>(value, word, "a number");
        else if (word == "cutmix")
            options.mixing.cutmix = value_of<float>(value, word, "a number");
        else if (word == "clip_norm")
            options.clip_norm = value_of<float>(value, word, "a number");
        else if (word == "loss_scale")
            options.loss_scale = value_of<float>(value, word, "a number");
        else if (word == "flip")
            options.augment.flip = value_of<bool>(value, word, "True or False");
        else if (word == "crop")
            options.augment.crop = value_of<int>(value, word, "an integer");
        else if (word == "shift")
            options.augment.shift = value_of<float>(value, word, "a number");
        else if (word == "rotate")
            options.augment.rotate = value_of<float>(value, word, "a number");
        else if (word == "scale")
            options.augment.scale = value_of<float>(value, word, "a number");
        else if (word == "elastic")
            options.augment.elastic = value_of<float>(value, word, "a number");
        else if (word == "flip_alternate")
            options.augment.flip_alternate = value_of<bool>(value, word, "True or False");
        else if (word == "reflect")
            options.augment.reflect = value_of<bool>(value, word, "True or False");
        else if (word == "resized_crop")
            options.augment.resized_crop = value_of<float>(value, word, "a number");
        else if (word == "cutout")
            options.augment.cutout = value_of<int>(value, word, "an integer");
        else if (word == "brightness")
            options.augment.brightness = value_of<float>(value, word, "a number");
        else if (word == "contrast")
            options.augment.contrast = value_of<float>(value, word, "a number");
        else if (word == "saturation")
            options.augment.saturation = value_of<float>(value, word, "a number");
        else if (word == "hue")
            options.augment.hue = value_of<float>(value, word, "a number");
        else if (word == "calculator")
            forward = value_of<std::string>(value, word, "a name");
        else if (word == "backward")
            backward = value_of<std::string>(value, word, "a name");
        else if (word == "threads")
            options.threads = value_of<int>(value, word, "an integer");
        else if (word == "device")
            options.device = value_of<int>(value, word, "an integer");
        else if (word == "math")
            options.math = math_of(value_of<std::string>(value, word, "a name"));
        else if (word == "checkpoint")
            checkpoint = value_of<std::string>(value, word, "a path");
        else if (word == "resume")
            options.resume = value_of<bool>(value, word, "True or False");
        else
            throw nb::type_error(("Trainer has no option '" + word + "'").c_str());
    }
    for (auto [name, zero] : {std::pair<const char *, bool>{"batch", options.batch == 0},
                              {"epochs", options.epochs == 0},
                              {"seed", options.seed == 0}})
        if (zero && words.contains(name))
            throw nb::value_error((std::string(name) + ": expected at least 1, found 0").c_str());
    if (!forward.empty()) options.forward = forward.c_str();
    if (!backward.empty()) options.backward = backward.c_str();
    if (!checkpoint.empty()) options.checkpoint = checkpoint.c_str();
    made->model = m.handle;
    made->train = train;
    made->test = test;
    options.callback = tell;
    options.user = made.get();
    m.forget_plans();
    sdlf_status status = alone(m.handle->mutex, [&] {
        return sdlf_trainer_create(&made->trainer, m.get(), train->get(), test ? test->get() : nullptr, &options);
    });
    check_read(status, train, test);
    m.handle->plans++;
    return made;
}

/* True: training finished; false: it was asked to stop. */
bool run(trainer_object &t, nb::object callback)
{
    std::unique_lock<std::mutex> locked(t.mutex, std::try_to_lock);
    if (!locked) throw status_error(SDLF_ERROR_ARGUMENT, "this trainer is running in another thread");
    t.raised = nullptr;
    t.callback = callback;
    sdlf_status status;
    {
        nb::gil_scoped_release released;
        status = sdlf_trainer_run(t.trainer);
        t.model->version++;
    }
    t.callback.reset();
    if (t.raised) std::rethrow_exception(std::exchange(t.raised, nullptr));
    if (status == SDLF_ERROR_INTERRUPTED) return false;
    check_read(status, t.train, t.test);
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
                   int threads, int device, const std::string &math, int64_t batch, const std::string &views)
{
    std::shared_ptr<calculator_handle> opened = open_calculator(calculator, threads, device, math);
    static const char *const names[] = {"one", "flip", "shift"};
    sdlf_evaluation e = {};
    sdlf_evaluation_options options = {};
    int kind = 0;
    while (kind < SDLF_VIEWS_COUNT && views != names[kind]) kind++;
    if (kind == SDLF_VIEWS_COUNT) throw nb::value_error(("views '" + views + "' is none of one, flip, shift").c_str());
    watch watched;
    options.batch = batch;
    options.views = static_cast<sdlf_views>(kind);
    options.go_on = go_on;
    options.user = &watched;
    sdlf_status status;
    {
        nb::gil_scoped_release released;
        device_lock devices(opened, nullptr);
        std::lock_guard<std::recursive_mutex> locked(m.handle->mutex);
        status = sdlf_evaluate_with(&e, m.get(), data->get(), opened->calculator, &options);
    }
    check_read(status, data);
    if (watched.raised) {
        sdlf_evaluation_release(&e);
        throw std::move(*watched.raised);
    }
    nb::object confusion = nb::none();
    if (e.confusion != nullptr) {
        sdlf_shape shape = sdlf_shape(e.class_count, e.class_count);
        new_array counts = make_array(SDLF_INT64, shape);
        std::memcpy(counts.data, e.confusion, static_cast<size_t>(sdlf_shape_count(shape)) * sizeof(int64_t));
        confusion = counts.object;
    }
    nb::tuple result = nb::make_tuple(e.samples, e.correct, e.loss, e.seconds, confusion, sdlf_loss_names[e.kind],
                                      sdlf_evaluation_accuracy(&e), sdlf_evaluation_mae(&e), sdlf_evaluation_rmse(&e),
                                      sdlf_evaluation_f1(&e));
    sdlf_evaluation_release(&e);
    return result;
}

/* Data sets may hold Python functions: the cycle collector must see them. */
int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    const trainer_object *t = nb::inst_ptr<trainer_object>(self);
    for (const std::shared_ptr<dataset_object> &data : {t->train, t->test}) {
        nb::object held = data ? nb::find(*data) : nb::object();
        if (held.is_valid()) Py_VISIT(held.ptr());
    }
    return 0;
}

PyType_Slot trainer_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse)}, {0, nullptr}};

} // namespace

void bind_trainer(nb::module_ &module)
{
    nb::class_<trainer_object>(module, "_Trainer", nb::type_slots(trainer_slots))
        .def("run", &run, nb::arg("callback").none())
        .def("stop", [](trainer_object &t) { sdlf_trainer_stop(t.trainer); })
        .def_prop_ro("memory", [](const trainer_object &t) { return sdlf_trainer_memory(t.trainer); });
    module.def("_trainer", &create, nb::arg("model"), nb::arg("train"), nb::arg("test").none(), nb::arg("words"));
    module.def("_evaluate", &evaluate);
}
