/* SPDX-License-Identifier: MIT */
/* Dataset, opened from files or wrapping arrays; dataset_function.cpp wraps functions. */
#include "dataset_object.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace
{

std::shared_ptr<dataset_object> open_dataset(const std::string &specification, const std::string &split,
                                             nb::object size, int channels, bool strict, bool targets,
                                             nb::object sample, bool whole)
{
    if (split != "train" && split != "test")
        throw nb::value_error(("split '" + split + "' is neither train nor test").c_str());
    sdlf_dataset_options options = {};
    if (!size.is_none()) {
        std::tie(options.height, options.width) = pair_of(size, "size");
    }
    options.channels = channels;
    options.strict = strict;
    options.targets = targets;
    options.whole = whole;
    if (!sample.is_none()) options.sample = to_shape(sample, "sample");
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

/* The number of classes (0: not given), and their names, if names were given. */
std::pair<int, std::vector<std::string>> read_classes(nb::handle classes)
{
    const char *expected = "how many, or their names";
    int count = 0;
    if (classes.is_none()) return {0, {}};
    if (nb::isinstance<nb::bool_>(classes) || nb::isinstance<nb::str>(classes))
        throw nb::type_error((std::string("classes: expected ") + expected + ", found " + class_of(classes)).c_str());
    if (!nb::try_cast(classes, count)) return {0, value_of<std::vector<std::string>>(classes, "classes", expected)};
    if (count < 1) throw nb::value_error(("classes: expected at least 1, found " + std::to_string(count)).c_str());
    return {count, {}};
}

void name_classes(dataset_object &made, const std::vector<std::string> &names)
{
    made.names = names;
    for (std::string &name : made.names) made.name_pointers.push_back(name.data());
    if (!names.empty()) made.own.class_names = made.name_pointers.data();
}

/* Float targets: one row of numbers per sample. */
void take_targets(dataset_object &made, sdlf_shape shape, sdlf_dtype type, int count,
                  const std::vector<std::string> &names)
{
    int64_t each = sdlf_shape_span(shape, 1, shape.rank);
    if (each < 1 || each > INT32_MAX || (count != 0 && count != each) ||
        (!names.empty() && static_cast<int64_t>(names.size()) != each))
        throw status_error(SDLF_ERROR_ARGUMENT, "classes: the labels are " + std::to_string(each) +
                                                    " float targets of each sample, and as many names were expected");
    made.targets.resize(static_cast<size_t>(sdlf_shape_count(shape)));
    sdlf_convert(SDLF_FLOAT32, made.targets.data(), type, made.labels.data(), sdlf_shape_count(shape));
    made.own.labels = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(shape.dim[0], each), made.targets.data());
    made.own.class_count = static_cast<int>(each);
    name_classes(made, names);
}

} // namespace

void take_normalization(dataset_object &made, nb::handle normalization)
{
    sdlf_dataset &d = made.own;
    d.scale = d.samples.dtype == SDLF_UINT8 ? 1.0f / 255 : 1;
    if (!normalization.is_none()) read_normalization(normalization, d.mean, d.scale, d.channels);
}

void take_labels(dataset_object &made, nb::handle labels, nb::handle classes, int64_t samples)
{
    auto [class_count, names] = read_classes(classes);
    made.labels = to_host_array(labels, "labels");
    sdlf_shape counted = shape_of(made.labels, "labels");
    sdlf_dtype type = dtype_of(made.labels, "labels");
    bool targets = sdlf_dtype_is_float(type) || counted.rank > 1;
    if ((counted.rank != 1 && !targets) || counted.rank == 0 || counted.dim[0] != samples || samples == 0)
        throw status_error(SDLF_ERROR_SHAPE, "labels: expected " + std::to_string(samples) + " of them, found " +
                                                 sdlf_shape_print(counted).text);
    if (targets) {
        take_targets(made, counted, type, class_count, names);
        return;
    }
    if (type == SDLF_BOOL) throw nb::type_error("labels: expected integers, the classes from 0 on");
    std::vector<int64_t> wide(static_cast<size_t>(samples));
    sdlf_convert(SDLF_INT64, wide.data(), type, made.labels.data(), samples);
    std::pair<int64_t, int64_t> range = range_of(wide);
    if (class_count == 0)
        class_count = !names.empty() ? static_cast<int>(names.size())
                                     : static_cast<int>(std::min<int64_t>(range.second, INT32_MAX - 1)) + 1;
    if (class_count <= 0)
        throw status_error(SDLF_ERROR_ARGUMENT,
                           "labels: expected classes from 0 on, found " + std::to_string(range.first));
    if (range.first < 0 || range.second >= class_count)
        throw status_error(SDLF_ERROR_ARGUMENT, "labels: they go from " + std::to_string(range.first) + " to " +
                                                    std::to_string(range.second) + "; expected 0 to " +
                                                    std::to_string(class_count - 1));
    if (!names.empty() && static_cast<int>(names.size()) != class_count)
        throw status_error(SDLF_ERROR_ARGUMENT, "classes: expected " + std::to_string(class_count) + " names, found " +
                                                    std::to_string(names.size()));
    made.narrow.resize(wide.size());
    for (size_t i = 0; i < wide.size(); i++) made.narrow[i] = static_cast<int32_t>(wide[i]);
    made.own.labels = sdlf_tensor_view(SDLF_INT32, counted, made.narrow.data());
    made.own.class_count = class_count;
    name_classes(made, names);
}

namespace
{

std::shared_ptr<dataset_object> dataset_of_arrays(nb::handle samples, nb::handle labels, nb::object classes,
                                                  nb::object normalization)
{
    std::shared_ptr<dataset_object> made = std::make_shared<dataset_object>();
    made->samples = to_host_array(samples, "samples");
    sdlf_shape shape = shape_of(made->samples, "samples");
    sdlf_dtype dtype = dtype_of(made->samples, "samples");
    if (shape.rank < 2)
        throw status_error(SDLF_ERROR_SHAPE,
                           "samples: expected (N,...), found " + std::string(sdlf_shape_print(shape).text));
    if (dtype != SDLF_UINT8 && dtype != SDLF_FLOAT32)
        throw nb::type_error("samples: expected uint8 or float32 (.astype('float32'))");
    made->own.samples = sdlf_tensor_view(dtype, shape, const_cast<void *>(made->samples.data()));
    take_labels(*made, labels, classes, shape.dim[0]);
    take_normalization(*made, normalization);
    return made;
}

nb::list unread_files(const dataset_object &d)
{
    nb::list messages;
    for (int64_t i = 0; i < d.get()->unread; i++) { // file names may be in any encoding
        const char *text = d.get()->unread_files[i];
        messages.append(nb::steal(PyUnicode_DecodeUTF8(text, Py_ssize_t(std::strlen(text)), "replace")));
    }
    return messages;
}

nb::list class_names(const dataset_object &d)
{
    nb::list names;
    for (int i = 0; d.get()->class_names != nullptr && i < d.get()->class_count; i++)
        names.append(d.get()->class_names[i]);
    return names;
}

/* A function may refer back to its data set: Python's cycle collector must see it. */
int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    Py_VISIT(nb::inst_ptr<dataset_object>(self)->function.call.ptr());
    return 0;
}

/* A library thread may still call the function, so it is replaced, not removed. */
int clear(PyObject *self)
{
    nb::inst_ptr<dataset_object>(self)->function.call = nb::none();
    return 0;
}

PyType_Slot dataset_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void *>(traverse)}, {Py_tp_clear, reinterpret_cast<void *>(clear)}, {0, nullptr}};

nb::object samples_of(const std::shared_ptr<dataset_object> &d)
{
    return d->get()->samples.data != nullptr ? view_array(d->get()->samples, nb::cast(d), false) : nb::none();
}

const char *name_of(const dataset_object &d)
{
    if (d.get()->name != nullptr) return d.get()->name;
    return d.get()->read != nullptr ? "function" : "arrays";
}

} // namespace

void bind_dataset(nb::module_ &module)
{
    bind_dataset_function();
    nb::class_<dataset_object>(module, "Dataset", nb::type_slots(dataset_slots), "Samples and their classes.")
        .def(
            "__len__", [](const dataset_object &d) { return d.get()->labels.shape.dim[0]; }, "Samples, N.")
        .def_prop_ro("samples", &samples_of, nb::for_getter(nb::sig("def samples(self, /) -> numpy.ndarray | None")),
                     "(N,C,H,W) uint8, or (N,...) uint8 or float32 as the arrays were; read-only. None where samples "
                     "are made when they are needed.")
        .def_prop_ro(
            "labels",
            [](const std::shared_ptr<dataset_object> &d) { return view_array(d->get()->labels, nb::cast(d), false); },
            nb::for_getter(nb::sig("def labels(self, /) -> numpy.ndarray")),
            "(N) int32, or float targets (N,K) float32; read-only.")
        .def_prop_ro(
            "class_count", [](const dataset_object &d) { return d.get()->class_count; },
            "Classes, an int; of float targets (N,K): K.")
        .def_prop_ro("classes", &class_names, nb::for_getter(nb::sig("def classes(self, /) -> list[str]")),
                     "Names of the classes, or of float targets, a list of str; [] where they "
                     "are numbers.")
        .def_prop_ro("name", &name_of, "What it was opened as, a str; \"arrays\" or \"function\".")
        .def_prop_ro(
            "unread", [](const dataset_object &d) { return d.get()->unread; },
            "Files that could not be read and were left out, an int.")
        .def_prop_ro("unread_files", &unread_files, nb::for_getter(nb::sig("def unread_files(self, /) -> list[str]")),
                     "What is wrong with each of these, with its name; a list of str.")
        .def_static(
            "open", &open_dataset, nb::arg("specification"), nb::arg("split") = "train", nb::kw_only(),
            nb::arg("size") = nb::none(), nb::arg("channels") = 0, nb::arg("strict") = false,
            nb::arg("targets") = false, nb::arg("sample") = nb::none(), nb::arg("whole") = false,
            nb::sig("def open(specification: str, split: str = \"train\", *, size: int | tuple[int, int] | None = "
                    "None, channels: int = 0, "
                    "strict: bool = False, targets: bool = False, sample: collections.abc.Sequence[int] | None = None, "
                    "whole: bool = False) -> Dataset"),
            "Open \"mnist:DIR\", \"folder:DIR\", \"cifar10:DIR\", ... as `sdlf train --data` does; `split` is "
            "\"train\" "
            "or \"test\".\n\nsize, channels: of the samples, (H,W) or one for both, and C, for pictures of any size; "
            "None "
            "and 0: as they are. strict: a file that cannot be read is an error. targets: labels are numbers, float "
            "targets (csv, npz and npy sets). sample: the shape that the network takes, without the batch, which "
            "arrays "
            "of any rank (npz, npy) are read as. whole: all samples of csv, npz and npy sets that are not in two "
            "parts, "
            "of which else a fifth is held out for testing.")
        .def_static(
            "from_arrays", &dataset_of_arrays, nb::arg("samples"), nb::arg("labels"), nb::kw_only(),
            nb::arg("classes") = nb::none(), nb::arg("normalization") = nb::none(),
            nb::sig("def from_arrays(samples: typing.Any, labels: typing.Any, *, classes: int | "
                    "collections.abc.Sequence[str] | None = None, "
                    "normalization: typing.Any | None = None) -> Dataset"),
            "A data set of arrays: samples (N,...) uint8 or float32, which are not copied where they are row-major, "
            "and integer labels (N), or float targets (N) or (N,...).\n\nclasses: how many, or their names; None: the "
            "largest label and one. normalization: (means, deviations) of the samples, one of all or one of each "
            "channel; None: bytes are divided by 255, floats stay.")
        .def_static(
            "from_function", &dataset_of_function, nb::arg("function"), nb::arg("labels"), nb::arg("shape"),
            nb::kw_only(), nb::arg("dtype") = "uint8", nb::arg("classes") = nb::none(),
            nb::arg("normalization") = nb::none(), nb::arg("readers") = 1,
            nb::sig(
                "def from_function(function: collections.abc.Callable[[int], typing.Any], labels: typing.Any, shape: "
                "collections.abc.Sequence[int] | int, *, dtype: str = \"uint8\", classes: int | "
                "collections.abc.Sequence[str] | None = None, "
                "normalization: typing.Any | None = None, readers: int = 1) -> Dataset"),
            "A data set whose samples need not be in memory: function(i) returns sample i, from 0, an array of that "
            "shape (...) of uint8 or float32, whenever a batch is made. It is copied once, into the batch. Labels are "
            "those of all samples, as in from_arrays: integers (N), or float targets (N) or (N,...).\n\nThe same index "
            "must give the same sample. The function is called on another thread, ahead of time, and on `readers` of "
            "them at once, which pays where it spends its time in functions that release Python's lock. What it raises "
            "ends the training, and is raised there. classes, normalization: as in from_arrays.");
}
