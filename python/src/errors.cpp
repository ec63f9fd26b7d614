#include "common.h"

status_error::status_error(sdlf_status status) : std::runtime_error(sdlf_error_message()), status(status)
{
}

namespace
{

struct exception_class {
    sdlf_status status;
    const char *name, *doc;
    PyObject **base; /* of Python's own, beside Error */
    PyObject *object;
};

PyObject *error_class;

exception_class classes[] = {
    {SDLF_ERROR_ARGUMENT, "ArgumentError", "An argument or option is out of range.", &PyExc_ValueError, nullptr},
    {SDLF_ERROR_SHAPE, "ShapeError", "Shapes or element types do not fit together.", &PyExc_ValueError, nullptr},
    {SDLF_ERROR_MEMORY, "OutOfMemoryError", "Host or device memory ran out.", &PyExc_MemoryError, nullptr},
    {SDLF_ERROR_IO, "FileError", "The operating system refused to read or write a file.", &PyExc_OSError, nullptr},
    {SDLF_ERROR_FORMAT, "FormatError", "A file's content is not what its format says.", &PyExc_ValueError, nullptr},
    {SDLF_ERROR_UNSUPPORTED, "UnsupportedError", "A calculator, layer or build lacks what was asked for.",
     &PyExc_NotImplementedError, nullptr},
    {SDLF_ERROR_NUMERIC, "NumericError", "A value became NaN or infinite.", &PyExc_ArithmeticError, nullptr},
    {SDLF_ERROR_INTERRUPTED, "Interrupted", "Training was asked to stop before its end; running it again goes on.",
     nullptr, nullptr},
    {SDLF_ERROR_DEVICE, "DeviceError", "A device reported a fault.", nullptr, nullptr},
};

} // namespace

void bind_errors(nb::module_ &module)
{
    error_class =
        PyErr_NewExceptionWithDoc("sdlf.Error", "What all errors of the library are.", PyExc_RuntimeError, nullptr);
    if (error_class == nullptr) throw nb::python_error();
    module.attr("Error") = nb::borrow(error_class);
    for (exception_class &c : classes) {
        nb::tuple bases = c.base ? nb::make_tuple(nb::borrow(error_class), nb::borrow(*c.base))
                                 : nb::make_tuple(nb::borrow(error_class));
        c.object = PyErr_NewExceptionWithDoc((std::string("sdlf.") + c.name).c_str(), c.doc, bases.ptr(), nullptr);
        if (c.object == nullptr) throw nb::python_error();
        module.attr(c.name) = nb::borrow(c.object);
    }
    nb::register_exception_translator(
        [](const std::exception_ptr &thrown, void *) {
            try {
                std::rethrow_exception(thrown);
            } catch (const status_error &e) {
                PyObject *found = error_class;
                for (const exception_class &c : classes)
                    if (c.status == e.status) found = c.object;
                PyErr_SetString(found, e.what());
            }
        },
        nullptr);
}
