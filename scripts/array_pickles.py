# SPDX-License-Identifier: MIT
"""Reads pickles of numpy arrays and scipy matrices without numpy and scipy: only numbers, lists and arrays; no code in them is run."""
import collections
import pickle
import struct


class Malformed(Exception):
    """An error in the input, and its position."""


class Dtype:
    """numpy.dtype: a number's type, in the notation of the module struct."""
    codes = {"f4": "f", "f8": "d", "i1": "b", "u1": "B", "b1": "?", "i2": "h", "i4": "i", "i8": "q", "u4": "I", "u8": "Q"}

    def __init__(self, code, *_):
        self.code, self.order = code, "<"

    def __setstate__(self, state):
        self.order = ">" if state[1] in (">", b">") else "<"

    def numbers(self, raw):
        if self.code not in self.codes or not isinstance(raw, (bytes, str)):
            raise Malformed(f"expected an array of numbers, found one of '{self.code}'")
        data = raw.encode("latin1") if isinstance(raw, str) else raw
        item = struct.Struct(self.order + self.codes[self.code])
        return [value for value, in item.iter_unpack(data)]


class Array:
    """numpy.ndarray: a shape and numbers, row after row."""
    shape, numbers = (0,), []

    def __setstate__(self, state):
        _, self.shape, dtype, by_columns, raw = state
        self.numbers = dtype.numbers(raw)
        count = 1
        for side in self.shape:
            count *= side
        if count != len(self.numbers):
            raise Malformed(f"expected {count} numbers, found {len(self.numbers)}")
        if by_columns and len(self.shape) == 2:
            rows, columns = self.shape
            self.numbers = [self.numbers[c * rows + r] for r in range(rows) for c in range(columns)]

    def rows(self):
        if len(self.shape) != 2:
            raise Malformed(f"expected rows of numbers, found an array of {len(self.shape)} axes")
        width = self.shape[1]
        return [self.numbers[i * width:(i + 1) * width] for i in range(self.shape[0])]


class Matrix:
    """scipy.sparse.csr_matrix: fills its attributes from the pickle."""

    def rows(self):
        shape = getattr(self, "_shape", None) or getattr(self, "shape", None)
        start, column, value = self.indptr.numbers, self.indices.numbers, self.data.numbers
        if len(start) != shape[0] + 1 or len(column) != len(value) or start[-1] > len(value):
            raise Malformed("the offsets of a sparse matrix do not fit its elements")
        found = [{} for _ in range(shape[0])]
        for row in range(shape[0]):
            for e in range(start[row], start[row + 1]):
                if not 0 <= column[e] < shape[1]:
                    raise Malformed(f"row {row} has column {column[e]}, expected 0 to {shape[1] - 1}")
                found[row][column[e]] = found[row].get(column[e], 0) + value[e]
        return [{c: v for c, v in row.items() if v != 0} for row in found], shape[1]


def plain_object(kind, *_):
    return kind.__new__(kind)


KNOWN = {
    "_reconstruct": lambda *_: Array(), "ndarray": Array, "dtype": Dtype, "csr_matrix": Matrix,
    "scalar": lambda dtype, raw: dtype.numbers(raw)[0], "defaultdict": collections.defaultdict, "list": list, "int": int,
    "object": object, "_reconstructor": plain_object, "encode": lambda text, *_: text.encode("latin1"),
}
MODULES = ("numpy", "scipy.sparse", "collections", "builtins", "__builtin__", "copyreg", "copy_reg", "_codecs")


class Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if name in KNOWN and any(module == known or module.startswith(known + ".") for known in MODULES):
            return KNOWN[name]
        raise Malformed(f"expected numbers, lists and arrays, found {module}.{name}")


def unpickle(path):
    with open(path, "rb") as file:
        try:
            return Unpickler(file, encoding="latin1").load()
        except Malformed as error:
            raise Malformed(f"{path}: {error}") from None
        except Exception as error:  # a damaged pickle can raise many exceptions
            raise Malformed(f"{path}: expected a pickle, found something else ({error})") from None


def attempt(path, read):
    """The object in a pickle, passed through `read`."""
    try:
        return read(unpickle(path))
    except Malformed as error:
        raise error if str(error).startswith(path) else Malformed(f"{path}: {error}") from None
    except (AttributeError, TypeError, IndexError):
        raise Malformed(f"{path}: the object in it is of another kind than expected") from None
