# SPDX-License-Identifier: MIT
"""The models that are changed: the ONNX project's node tests, and random models of one node."""
import warnings

import numpy as np
from onnx import numpy_helper

from mutations.attention import network
from mutations.case import Case
from mutations.drawn import DRAWN
from operators.drawing import reseed
from operators.families import FAMILIES, versions


def is_array(value):
    return isinstance(value, np.ndarray) and value.dtype != object and value.dtype.kind not in "USOc"


def node_tests():
    """(name, model, inputs) of every node test whose values are arrays of numbers, always in the same order."""
    from onnx.backend.test.case import node  # pylint: disable=import-outside-toplevel
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = node.collect_testcases()
    found = []
    for test in tests:
        graph = test.model.graph
        inputs = list(test.data_sets[0][0]) if test.data_sets else []
        inputs = [numpy_helper.to_array(v) if hasattr(v, "DESCRIPTOR") and hasattr(v, "raw_data") else v for v in inputs]
        inputs = [np.asarray(v) if np.isscalar(v) else v for v in inputs]
        domains = {n.domain for n in graph.node} | {o.domain for o in test.model.opset_import}
        if len(inputs) == len(graph.input) and all(map(is_array, inputs)) and domains <= {"", "ai.onnx", "ai.onnx.ml"} and len(graph.node) < 40:
            found.append((test.name, test.model, {v.name: a for v, a in zip(graph.input, inputs)}))
    return sorted(found, key=lambda t: t[0])


class Networks:
    """Only networks of several layers."""

    def draw(self, r):
        return network(r)


class Sources:
    """`kinds`: operators that SDLF converts; no others are drawn."""

    def __init__(self, kinds, only=None):
        self.tests, self.further = {}, not only
        for test in node_tests():
            of = {n.op_type for n in test[1].graph.node}
            if of <= kinds and (not only or of & only):
                self.tests.setdefault("+".join(sorted(of)), []).append(test)
        self.families = [(draw, kind) for draw, names in FAMILIES.items() for kind in names.split() if not only or kind in only]

    def draw(self, r):
        """A case that is usually valid."""
        if self.further and r.random() < 0.12:
            return r.choice(DRAWN + [network] * 4)(r)
        if not self.tests or (self.families and r.random() < 0.35):
            draw, kind = r.choice(self.families)
            opset = r.choice(versions(kind))
            reseed(str(r.random()))
            case = draw(kind, opset)
            for i, (name, array, constant) in enumerate(case.inputs):
                case.inputs[i] = (name, array, constant and r.random() < 0.8)
            return Case(f"drawn {kind}", *case.model())
        name, model, feeds = r.choice(self.tests[r.choice(sorted(self.tests))])
        copy = type(model)()
        copy.CopyFrom(model)
        case = Case(name, copy, feeds)
        for i, name in enumerate(list(case.feeds)):
            if r.random() < (0.2 if i == 0 else 0.6):
                case.to_constant(name)
        return case
