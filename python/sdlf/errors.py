# SPDX-License-Identifier: MIT
"""Exceptions with the library's messages: subclasses of Error and of the matching built-in exception."""


class Error(RuntimeError):
    """The base class of all errors of the library."""


class ArgumentError(Error, ValueError):
    """An argument or option is out of range."""


class ShapeError(Error, ValueError):
    """Shapes or element types do not match."""


class OutOfMemoryError(Error, MemoryError):
    """Host or device memory ran out."""


class FileError(Error, OSError):
    """The operating system refused to read or write a file."""


class FormatError(Error, ValueError):
    """A file's content violates its format."""


class UnsupportedError(Error, NotImplementedError):
    """A calculator, layer or build does not support the request."""


class NumericError(Error, ArithmeticError):
    """A value became NaN or infinite."""


class DeviceError(Error):
    """A device reported a fault."""
