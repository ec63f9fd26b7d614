/* SPDX-License-Identifier: MIT */
#include "common.h"

status_error::status_error(sdlf_status status) : std::runtime_error(sdlf_error_message()), status(status)
{
}

/* The exception class in sdlf/errors.py. */
static const char *class_name(sdlf_status status)
{
    switch (status) {
    case SDLF_ERROR_ARGUMENT: return "ArgumentError";
    case SDLF_ERROR_SHAPE: return "ShapeError";
    case SDLF_ERROR_MEMORY: return "OutOfMemoryError";
    case SDLF_ERROR_IO: return "FileError";
    case SDLF_ERROR_FORMAT: return "FormatError";
    case SDLF_ERROR_UNSUPPORTED: return "UnsupportedError";
    case SDLF_ERROR_NUMERIC: return "NumericError";
    case SDLF_ERROR_DEVICE: return "DeviceError";
    default: return "Error";
    }
}

void bind_errors()
{
    nb::register_exception_translator(
        [](const std::exception_ptr &thrown, void *) {
            try {
                std::rethrow_exception(thrown);
            } catch (const status_error &e) {
                nb::object type = nb::module_::import_("sdlf.errors").attr(class_name(e.status));
                PyErr_SetString(type.ptr(), e.what());
            }
        },
        nullptr);
}
