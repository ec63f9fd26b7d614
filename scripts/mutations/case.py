# SPDX-License-Identifier: MIT
"""A case: a model, the arrays of its inputs, and what was changed in it."""
import numpy as np
import onnx
from onnx import helper, numpy_helper

MOST = 20000  # elements of an array that a change creates


class Case:
    """`feeds` has an array for each input of the graph; `batch` is the size of open first dimensions in it, or 0; `samples` is the
    plan's number of samples for a model whose first dimensions are 1, or 0; `conditioned`: small errors of a value cause only small errors
    in the values computed from it."""

    def __init__(self, name, model, feeds):
        self.conditioned = False
        self.name, self.model, self.feeds, self.batch, self.samples, self.changes = name, model, dict(feeds), 0, 0, []

    @property
    def graph(self):
        return self.model.graph

    def kinds(self):
        return [node.op_type for node in self.graph.node]

    def constants(self):
        return {tensor.name: tensor for tensor in self.graph.initializer}

    def arrays(self):
        """Names of the inputs and weights, which have elements."""
        return sorted(self.feeds) + sorted(self.constants())

    def array(self, name):
        if name in self.feeds:
            return self.feeds[name]
        try:
            return numpy_helper.to_array(self.constants()[name])
        except (ValueError, TypeError, KeyError):
            return None

    def put(self, name, array):
        """Replace the elements of an input or a weight; False if there are too many."""
        array = np.asarray(array)
        if array.size > MOST:
            return False
        if name in self.feeds:
            self.feeds[name] = array
        else:
            self.constants()[name].CopyFrom(numpy_helper.from_array(array, name))
        return True

    def to_constant(self, name):
        self.graph.initializer.append(numpy_helper.from_array(self.feeds.pop(name), name))
        for i, value in enumerate(self.graph.input):
            if value.name == name:
                del self.graph.input[i]
                break

    def to_input(self, name):
        array = self.array(name)
        if array is None:
            return False
        for i, tensor in enumerate(self.graph.initializer):
            if tensor.name == name:
                del self.graph.initializer[i]
                break
        if name not in {value.name for value in self.graph.input}:
            self.graph.input.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, []))
        self.feeds[name] = array
        return True

    def of_sample(self, number):
        """The inputs of one sample."""
        return {name: a[number:number + 1] if a.ndim > 0 and a.shape[0] == self.samples else a for name, a in self.feeds.items()}

    def finish(self):
        """Declare the types and shapes of the inputs, and those of the outputs by inference."""
        graph = self.graph
        for value in list(graph.input):
            if value.name not in self.feeds:
                graph.input.remove(value)
                continue
            array = self.feeds[value.name]
            dims = list(array.shape)
            if self.batch > 0 and dims and dims[0] == self.batch:
                dims[0] = "N"
            if self.samples > 0 and dims and dims[0] == self.samples:
                dims[0] = 1
            value.CopyFrom(helper.make_tensor_value_info(value.name, element_type(array), dims))
        del graph.value_info[:]
        for value in graph.output:
            value.CopyFrom(helper.make_empty_tensor_value_info(value.name))
        try:
            inferred = onnx.shape_inference.infer_shapes(self.model)
        except Exception:  # pylint: disable=broad-except
            return
        for value, known in zip(graph.output, inferred.graph.output):
            kind = known.type.tensor_type.elem_type
            if kind != 0:
                value.type.tensor_type.elem_type = kind

    def __str__(self):
        arrays = []
        for name in self.arrays():
            a = self.array(name)
            if a is not None:
                small = f"={a.tolist()}" if a.size < 9 else ""
                arrays.append(f"{name}:{'' if name in self.feeds else 'const '}{a.dtype}{list(a.shape)}{small}")
        nodes = [f"{','.join(n.output)} = {n.op_type}({', '.join(n.input)}"
                 + "".join(f", {a.name}={attribute(a)}" for a in n.attribute) + ")" for n in self.graph.node[:12]]
        opset = self.model.opset_import[0].version if self.model.opset_import else 0
        return (f"{self.name}, opset {opset}" + (f", batch {self.batch}" if self.batch else "")
                + (f", {self.samples} samples" if self.samples else "") + "\n    changed: "
                + "; ".join(self.changes) + "\n    " + "\n    ".join(nodes) + "\n    " + ", ".join(arrays)[:700])


def attribute(a):
    try:
        value = helper.get_attribute_value(a)
    except ValueError:
        return "?"
    return value if not hasattr(value, "DESCRIPTOR") else "..."


def element_type(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)
