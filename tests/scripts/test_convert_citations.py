#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does scripts/convert-citations.py read both published forms, refuse what is malformed, and write what sdlf reads?

    test_convert_citations.py SCRIPT SDLF

The input is made up: pickles as numpy and scipy write them, from classes that bear their names, so that neither is needed.
"""
import collections
import json
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import types

import checking
from checking import check

script, sdlf = sys.argv[1:3]


def run(*words):
    code, said, errors = checking.run(script, *words)
    return code, said + errors


def lines(folder, name):
    with open(os.path.join(folder, name), encoding="ascii") as file:
        return [line.rstrip("\n") for line in file if not line.startswith("#")]


# ---- what numpy and scipy put into a pickle ----

def named(kind, where, name):
    parts = where.split(".")
    for i in range(len(parts)):
        sys.modules.setdefault(".".join(parts[:i + 1]), types.ModuleType(parts[i]))
    kind.__module__, kind.__qualname__, kind.__name__ = where, name, name
    setattr(sys.modules[where], name, kind)


class dtype:
    def __init__(self, code, order="<"):
        self.code, self.order = code, order

    def __reduce__(self):
        return dtype, (self.code, False, True), (3, self.order, None, None, None, -1, -1, 0)


class ndarray:
    def __init__(self, shape, code, numbers, order="<", by_columns=False):
        self.state = (1, shape, dtype(code, order), by_columns,
                      struct.pack(order + {"f4": "f", "f8": "d", "i4": "i"}[code] * len(numbers), *numbers))

    def __reduce__(self):
        return reconstruct, (ndarray, (0,), b"b"), self.state


def reconstruct(*_):
    raise AssertionError("only written")


class csr_matrix:
    def __init__(self, shape, rows):
        starts, columns, values = [0], [], []
        for row in rows:
            columns += row.keys()
            values += row.values()
            starts.append(len(columns))
        self.__dict__ = {"_shape": shape, "maxprint": 50, "indptr": ndarray((len(starts),), "i4", starts),
                         "indices": ndarray((len(columns),), "i4", columns), "data": ndarray((len(values),), "f4", values)}


for kind, where, name in ((dtype, "numpy", "dtype"), (ndarray, "numpy", "ndarray"), (csr_matrix, "scipy.sparse.csr", "csr_matrix"),
                          (reconstruct, "numpy.core.multiarray", "_reconstruct")):
    named(kind, where, name)


class Thief:
    def __reduce__(self):
        return os.system, ("touch stolen",)


def write_planetoid(**changes):
    """7 nodes: 0 and 1 train, 2 validates, 3 is not used, 4 and 6 test, 5 is isolated and has no class."""
    parts = {
        "y": ndarray((2, 2), "i4", [1, 0, 1, 0]),
        "ally": ndarray((4, 2), "i4", [1, 1, 0, 0, 0, 0, 1, 1], by_columns=True),
        "ty": ndarray((2, 2), "f8", [0, 1, 1, 0], order=">"),
        "allx": csr_matrix((4, 3), [{0: 1.0, 2: 0.5}, {}, {1: 2.0, 0: 0.0}, {2: 1.0}]),
        "tx": csr_matrix((2, 3), [{1: 1.0}, {0: 3.0}]),
        "graph": collections.defaultdict(list, {0: [1, 2, 1], 1: [0], 2: [0, 2], 6: [4], 4: [6, 3]}),
    }
    parts.update(changes)
    for part, value in parts.items():
        with open("ind.tiny." + part, "wb") as file:
            pickle.dump(value, file, protocol=2)
    with open("ind.tiny.test.index", "w", encoding="ascii") as file:
        file.write("6\n4\n")


def planetoid_is_converted():
    write_planetoid()
    code, said = run(".", "tiny", "out", "--validation", "1")
    check("planetoid files are read", code == 0, said)
    check("and told", "7 nodes  4 edges  3 features  2 classes  2 to train  1 to validate  2 to test" in said, said)
    check("nodes without a class are told", "1 nodes have no class" in said, said)
    check("edges, each once", lines("out", "edges.txt") == ["0\t1", "0\t2", "3\t4", "4\t6"], lines("out", "edges.txt"))
    check("features, those of test by their index", lines("out", "features.txt") ==
          ["0:1 2:0.5", "", "1:2", "2:1", "0:3", "", "1:1"], lines("out", "features.txt"))
    check("classes", lines("out", "labels.txt") == ["0", "0", "1", "1", "0", "0", "1"], lines("out", "labels.txt"))
    check("parts", [lines("out", part + ".txt") for part in ("train", "val", "test")] == [["0", "1"], ["2"], ["4", "6"]])
    check("nothing half done is left", not [name for name in os.listdir("out") if name.endswith(".part")])
    done = subprocess.run([sdlf, "gcn", "train", "--graph", "planetoid:out", "--epochs", "2", "--json"], capture_output=True,
                          text=True)
    check("sdlf trains on it", done.returncode == 0 and len(json.loads(done.stdout)["runs"]) == 1, done.stderr)


def malformed_pickles_are_refused():
    write_planetoid(graph={0: [9]})
    code, said = run(".", "tiny", "bad", "--validation", "1")
    check("an edge to nowhere", code == 1 and "ind.tiny.graph: expected nodes below 7, found an edge from 0 to 9" in said, said)
    write_planetoid(ty=ndarray((1, 2), "i4", [0, 1]))
    code, said = run(".", "tiny", "bad", "--validation", "1")
    check("rows that lack", code == 1 and "ind.tiny.ty: expected 2 rows, found 1" in said, said)
    write_planetoid(tx=csr_matrix((2, 3), [{7: 1.0}, {}]))
    code, said = run(".", "tiny", "bad", "--validation", "1")
    check("a column too many", code == 1 and "ind.tiny.tx: row 0 has column 7" in said, said)
    write_planetoid(graph=Thief())
    code, said = run(".", "tiny", "bad", "--validation", "1")
    check("code in a pickle is not run", code == 1 and "found" in said and "system" in said and not os.path.exists("stolen"), said)
    write_planetoid()
    with open("ind.tiny.y", "wb") as file:
        file.write(b"\x80\x02]")
    code, said = run(".", "tiny", "bad", "--validation", "1")
    check("a pickle that breaks off", code == 1 and "ind.tiny.y: expected a pickle" in said, said)
    write_planetoid()
    code, said = run(".", "tiny", "bad")
    check("a split that does not fit", code == 1 and "2 nodes to train and 500 to validate, found 4" in said, said)
    code, said = run(".", "absent", "bad")
    check("files that are not there", code == 1 and "ind.absent.y: No such file" in said, said)
    check("and nothing was written", not os.path.exists("bad"))


def plain_files_are_converted():
    with open("web.content", "w", encoding="ascii") as file:
        file.write("p9\t0\t1\tmaths\r\nx-1\t1\t0\tart\n\n31336\t0.5\t0\tmaths\n7\t0\t0\tart\nq\t1\t1\tart\nr\t0\t1\tmaths\n")
    with open("web.cites", "w", encoding="ascii") as file:
        file.write("p9 x-1\nx-1 p9\n7\t7\n31336 q\nghost q\n")
    few = ("--train-per-class", "1", "--validation", "2", "--test", "2")
    code, said = run(".", "web", "plain", *few)
    check("content and cites are read", code == 0 and "6 nodes  2 edges  2 features  2 classes" in said, said)
    check("unknown papers are told", "1 citations name a paper" in said and "classes, from 0: art, maths" in said, said)
    check("edges by line", lines("plain", "edges.txt") == ["0\t1", "2\t4"], lines("plain", "edges.txt"))
    check("features by line", lines("plain", "features.txt") == ["1:1", "0:1", "0:0.5", "", "0:1 1:1", "1:1"])
    check("classes in the order of their names", lines("plain", "labels.txt") == ["1", "0", "1", "0", "0", "1"])
    parts = [lines("plain", part + ".txt") for part in ("train", "val", "test")]
    check("each node in one part", sorted(sum(parts, [])) == list("012345") and [len(p) for p in parts] == [2, 2, 2], parts)
    again = run(".", "web", "again", *few)
    check("the same seed draws the same parts", again[0] == 0 and lines("again", "val.txt") == parts[1])
    code, said = run(".", "web", "none")
    check("too few nodes", code == 1 and "20 nodes of each class" in said and not os.path.exists("none"), said)
    for text, expected in (("a 1 0 x\nb 1 x\n", "web.content:2: expected 2 features, found 1"),
                           ("a 1 0 x\na 1 0 x\n", "web.content:2: 'a' has a line already"),
                           ("a one x\n", "web.content:1: expected numbers"), ("a x\n", "web.content:1: expected an id"),
                           ("", "web.content: expected a line a node")):
        with open("web.content", "w", encoding="ascii") as file:
            file.write(text)
        code, said = run(".", "web", "none")
        check(expected, code == 1 and expected in said, said)


with tempfile.TemporaryDirectory() as work:
    script, sdlf = os.path.abspath(script), os.path.abspath(sdlf)
    os.chdir(work)
    planetoid_is_converted()
    malformed_pickles_are_refused()
    plain_files_are_converted()
    os.chdir("/")
checking.conclude()
