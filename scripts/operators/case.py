# SPDX-License-Identifier: MIT
"""A case: a model of one node, with its inputs."""
import numpy as np
import onnx
from onnx import helper, numpy_helper


class Case:
    """One node: its inputs (name, array or None, constant?), its attributes, its number of outputs."""

    def __init__(self, kind, opset):
        self.kind, self.opset, self.inputs, self.attributes, self.outputs = kind, opset, [], {}, 1

    def add(self, array, constant=False):
        self.inputs.append((f"i{len(self.inputs)}", None if array is None else np.asarray(array), constant))
        return self

    def set(self, **attributes):
        schema = onnx.defs.get_schema(self.kind, max_inclusive_version=self.opset)
        for name, value in attributes.items():
            if value is not None and name in schema.attributes:
                self.attributes[name] = value
        return self

    def model(self):
        def info(name, array):
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape))

        while self.inputs and self.inputs[-1][1] is None:
            self.inputs.pop()
        names = ["" if array is None else name for name, array, _ in self.inputs]
        outputs = [f"o{i}" for i in range(self.outputs)]
        node = helper.make_node(self.kind, names, outputs, **self.attributes)
        there = [(n, a) for n, a, constant in self.inputs if a is not None and not constant]
        weights = [numpy_helper.from_array(a, n) for n, a, constant in self.inputs if a is not None and constant]
        graph = helper.make_graph([node], "case", [info(n, a) for n, a in there],
                                  [helper.make_empty_tensor_value_info(o) for o in outputs], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 10
        return model, dict(there)

    def __str__(self):
        shapes = ", ".join("-" if a is None else f"{a.dtype}{list(a.shape)}{'c' if c else ''}" +
                           (f"={a.tolist()}" if a.size < 7 and a.dtype != np.float32 else "") for _, a, c in self.inputs)
        return f"{self.kind} opset {self.opset} ({shapes}) {self.attributes}"
