# SPDX-License-Identifier: MIT
"""What goes wrong, with the library's message: classes below Error, and below Python's own of that kind."""


class Error(RuntimeError):
    """What all errors of the library are."""


class ArgumentError(Error, ValueError):
    """An argument or option is out of range."""


class ShapeError(Error, ValueError):
    """Shapes or element types do not fit together."""


class OutOfMemoryError(Error, MemoryError):
    """Host or device memory ran out."""


class FileError(Error, OSError):
    """The operating system refused to read or write a file."""


class FormatError(Error, ValueError):
    """A file's content is not what its format says."""


class UnsupportedError(Error, NotImplementedError):
    """A calculator, layer or build lacks what was asked for."""


class NumericError(Error, ArithmeticError):
    """A value became NaN or infinite."""


class DeviceError(Error):
    """A device reported a fault."""
