/* SPDX-License-Identifier: MIT */
/* Converting Python options to the library's structs. */
#include "common.h"

#include <cstdio>
#include <cstring>
#include <map>
#include <tuple>

template <class T> static void put(const sdlf_field *field, void *options, T value)
{
    std::memcpy(static_cast<char *>(options) + field->offset, &value, sizeof value);
}

std::pair<int, int> pair_of(nb::handle word, const std::string &what)
{
    int both;
    if (nb::try_cast(word, both)) return {both, both};
    std::vector<int> two = value_of<std::vector<int>>(word, what, "an integer, or two (vertical, horizontal)");
    if (two.size() != 2)
        throw nb::value_error((what + ": expected two integers, found " + std::to_string(two.size())).c_str());
    return {two[0], two[1]};
}

sdlf_math math_of(const std::string &name)
{
    sdlf_math math = sdlf_math_from_name(name.c_str());
    if (math == SDLF_MATH_COUNT)
        throw nb::value_error(("math '" + name + "' is none of fp32, tf32, fp16, bf16").c_str());
    return math;
}

device_lock::device_lock(const std::shared_ptr<calculator_handle> &a, const std::shared_ptr<calculator_handle> &b)
{
    calculator_handle *one = a.get(), *other = b.get();
    if (one > other) std::swap(one, other);
    if (one != nullptr && !sdlf_calculator_is_on_host(one->calculator))
        first = std::unique_lock<std::mutex>(one->mutex);
    if (other != nullptr && other != one && !sdlf_calculator_is_on_host(other->calculator))
        second = std::unique_lock<std::mutex>(other->mutex);
}

static int choice_of(const sdlf_field *field, nb::handle word, const std::string &what)
{
    std::string name = value_of<std::string>(word, what, "a name"), known;
    for (int i = 0; field->choices[i] != nullptr; i++) {
        if (name == field->choices[i]) return i;
        known += (i > 0 ? ", " : "") + std::string(field->choices[i]);
    }
    throw nb::value_error((what + ": '" + name + "' is none of " + known).c_str());
}

static void fill_field(const sdlf_field *field, void *options, nb::handle word, const std::string &what)
{
    switch (field->type) {
    case SDLF_FIELD_INT: put(field, options, value_of<int>(word, what, "an integer")); break;
    case SDLF_FIELD_FLOAT: put(field, options, value_of<float>(word, what, "a number")); break;
    case SDLF_FIELD_DOUBLE: put(field, options, value_of<double>(word, what, "a number")); break;
    case SDLF_FIELD_BOOL: put(field, options, value_of<bool>(word, what, "True or False")); break;
    case SDLF_FIELD_CHOICE: put(field, options, choice_of(field, word, what)); break;
    case SDLF_FIELD_SHAPE: put(field, options, to_shape(word, what)); break;
    case SDLF_FIELD_PAIR: {
        struct {
            int value[2];
        } pair;
        std::tie(pair.value[0], pair.value[1]) = pair_of(word, what);
        put(field, options, pair);
        break;
    }
    }
}

/* Zero means the default in the library's structs, so an explicit zero would be silently replaced. */
static void refuse_zero(const sdlf_field *field, nb::handle word, const std::string &what)
{
    double number;
    bool truth;
    if (!field->zero_means_default || field->fallback == 0 || nb::try_cast(word, truth, false)) return;
    if (!nb::try_cast(word, number) || number != 0) return;
    char text[200];
    std::snprintf(text, sizeof text, "%s: 0 cannot be asked for; left out, it is %g", what.c_str(), field->fallback);
    throw nb::value_error(text);
}

void fill_options(const sdlf_field *fields, void *options, const nb::dict &words, const char *type)
{
    for (auto [key, value] : words) {
        std::string name = nb::cast<std::string>(key);
        const sdlf_field *field = fields;
        while (field->name != nullptr && name != field->name) field++;
        if (field->name == nullptr) {
            std::string known;
            for (const sdlf_field *f = fields; f->name != nullptr; f++)
                known += (f != fields ? ", " : "") + std::string(f->name);
            throw nb::type_error(
                (std::string(type) + " has no option '" + name + "'; it has: " + (known.empty() ? "none" : known))
                    .c_str());
        }
        if (value.is_none()) continue;
        refuse_zero(field, value, std::string(type) + "." + name);
        fill_field(field, options, value, std::string(type) + "." + name);
    }
}

/* The name of an object of sdlf.optim. */
static std::string name_of(nb::handle object, const char *what, const char *example)
{
    if (!nb::hasattr(object, "name") || !nb::hasattr(object, "options"))
        throw nb::type_error(
            (std::string(what) + ": expected an object such as " + example + ", found " + class_of(object)).c_str());
    return nb::cast<std::string>(object.attr("name"));
}

sdlf_optimizer to_optimizer(nb::handle object)
{
    sdlf_optimizer optimizer = {};
    if (object.is_none()) return optimizer;
    std::string name = name_of(object, "optimizer", "optim.Adam()");
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
    std::string name = name_of(object, "schedule", "optim.OneCycle(0.1)");
    int kind = 0;
    while (sdlf_schedule_names[kind] != nullptr && name != sdlf_schedule_names[kind]) kind++;
    if (sdlf_schedule_names[kind] == nullptr) throw nb::value_error(("there is no schedule '" + name + "'").c_str());
    schedule.kind = static_cast<sdlf_schedule_kind>(kind);
    for (auto [key, value] : nb::cast<nb::dict>(object.attr("options"))) {
        std::string word = nb::cast<std::string>(key);
        bool found = word == "every";
        if (found) schedule.every = value_of<int>(value, "every", "an integer");
        for (const auto &m : members) {
            if (word != m.name) continue;
            schedule.*m.member = value_of<float>(value, word, "a number");
            found = true;
        }
        if (!found) throw nb::type_error(("a schedule has no option '" + word + "'").c_str());
    }
    check(sdlf_schedule_complete(&schedule));
    return schedule;
}

void read_normalization(nb::handle object, float &mean, float &scale, sdlf_channel_normalization &channels)
{
    std::pair<nb::object, nb::object> both;
    const char *expected = "numbers, or a sequence for each channel";
    if (!nb::try_cast(object, both)) throw nb::type_error("normalization: expected (means, deviations)");
    std::vector<float> means(1), deviations(1);
    if (!nb::try_cast(both.first, means[0]))
        means = value_of<std::vector<float>>(both.first, "normalization", expected);
    if (!nb::try_cast(both.second, deviations[0]))
        deviations = value_of<std::vector<float>>(both.second, "normalization", expected);
    if (means.size() != deviations.size() || means.empty() || means.size() > SDLF_NORMALIZED_CHANNELS)
        throw nb::value_error(
            "normalization: expected as many means as deviations, one for all or one for each of up to 16 channels");
    for (float deviation : deviations)
        if (!(deviation > 0)) throw nb::value_error("normalization: a deviation is above 0");
    mean = means[0];
    scale = 1 / deviations[0];
    channels = sdlf_channel_normalization{};
    channels.count = means.size() > 1 ? static_cast<int>(means.size()) : 0;
    for (size_t i = 0; i < means.size(); i++) {
        channels.mean[i] = means[i];
        channels.scale[i] = 1 / deviations[i];
    }
}

std::shared_ptr<calculator_handle> open_calculator(const std::string &name, int threads, int device,
                                                   const std::string &math)
{
    using key = std::tuple<std::string, int, int, std::string>;
    static std::map<key, std::weak_ptr<calculator_handle>> open; /* guarded by the GIL */
    std::weak_ptr<calculator_handle> &known = open[key(name, threads, device, math)];
    if (std::shared_ptr<calculator_handle> found = known.lock()) return found;
    sdlf_calculator_options options = {};
    options.threads = threads;
    options.device = device;
    options.math = math_of(math);
    sdlf_calculator *calculator = nullptr;
    check(sdlf_calculator_open(&calculator, name.c_str(), &options));
    std::shared_ptr<calculator_handle> made = std::make_shared<calculator_handle>(calculator);
    known = made;
    return made;
}

sdlf_loss to_loss(const std::string &name)
{
    std::string known;
    for (int i = 0; sdlf_loss_names[i] != nullptr; i++) {
        if (name == sdlf_loss_names[i]) return static_cast<sdlf_loss>(i);
        known += (i > 0 ? ", " : "") + std::string(sdlf_loss_names[i]);
    }
    throw nb::value_error(("loss '" + name + "' is none of " + known).c_str());
}
