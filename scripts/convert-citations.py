#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Converts citation graphs from their published formats to the format that `planetoid:DIR` reads.

    scripts/convert-citations.py SOURCE NAME DIR

SOURCE is a folder that has either

    ind.NAME.x, .tx, .allx, .y, .ty, .ally, .graph, .test.index   the Planetoid files, with their split: the nodes of x are
                      trained on, the --validation nodes behind them validate, those of test.index test; or
    NAME.content, NAME.cites   a line a node (its id, its features, its class, with tabs between them) and a line a citation
                      (two ids). The split is drawn: --train-per-class nodes of each class, then --validation and --test others.

DIR gets edges.txt, features.txt, labels.txt, train.txt, val.txt and test.txt; docs/guides/graph-convolution.md describes them. Needs only Python.
The Planetoid files are pickles: only numbers, lists and arrays in them are read, and no code in them is run.
"""
import argparse
import collections
import os
import random
import sys

from array_pickles import Malformed, attempt


# ---- a graph on its way ----

class Citations:
    def __init__(self, nodes):
        self.features = [{} for _ in range(nodes)]  # of each node: value by column
        self.labels = [0] * nodes
        self.edges = set()  # (smaller, larger)
        self.parts = {"train": [], "val": [], "test": []}
        self.columns = 0
        self.notes = []

    def link(self, a, b):
        if a != b:
            self.edges.add((min(a, b), max(a, b)))


def write(folder, name, lines):
    """Gives the file its own name only when it is complete."""
    path = os.path.join(folder, name)
    with open(path + ".part", "w", encoding="ascii") as file:
        file.writelines(line + "\n" for line in lines)
    os.replace(path + ".part", path)


def save(graph, name, folder):
    os.makedirs(folder, exist_ok=True)
    nodes = len(graph.labels)
    write(folder, "edges.txt", [f"# {name}, undirected", f"# Nodes: {nodes} Edges: {len(graph.edges)}"]
          + [f"{a}\t{b}" for a, b in sorted(graph.edges)])
    write(folder, "features.txt", [f"# {name}: {nodes} nodes, {graph.columns} features"]
          + [" ".join(f"{column}:{value:.9g}" for column, value in sorted(row.items())) for row in graph.features])
    write(folder, "labels.txt", [str(label) for label in graph.labels])
    for part, members in graph.parts.items():
        write(folder, part + ".txt", [str(node) for node in sorted(members)])
    print(f"{name}  {nodes:,} nodes  {len(graph.edges):,} edges  {graph.columns:,} features  "
          f"{max(graph.labels) + 1} classes  {len(graph.parts['train']):,} to train  "
          f"{len(graph.parts['val']):,} to validate  {len(graph.parts['test']):,} to test")
    for note in graph.notes:
        print(f"note: {note}")
    print(f"written to {folder}: sdlf gcn train --graph planetoid:{folder}")


# ---- the Planetoid files ----

def read_index(path):
    members = []
    with open(path, encoding="ascii", errors="replace") as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if not text:
                continue
            if not text.isdigit():
                raise Malformed(f"{path}:{number}: expected a node's number, found '{text[:24]}'")
            members.append(int(text))
    if not members or len(set(members)) != len(members):
        raise Malformed(f"{path}: expected nodes, each once, found {len(members)} with {len(set(members))} different ones")
    return members


def class_of(row):
    """The class of a one-hot row; None if there is none."""
    return max(range(len(row)), key=row.__getitem__) if any(row) else None


def read_planetoid(source, name, options):
    def path(part):
        return os.path.join(source, f"ind.{name}.{part}")
    labels = {part: attempt(path(part), lambda found: found.rows()) for part in ("y", "ty", "ally")}
    features = {part: attempt(path(part), lambda found: found.rows()) for part in ("tx", "allx")}
    test = read_index(path("test.index"))
    known = len(labels["ally"])
    nodes = max(max(test) + 1, known)
    for part, rows, expected in (("allx", len(features["allx"][0]), known), ("tx", len(features["tx"][0]), len(test)),
                                 ("ty", len(labels["ty"]), len(test))):
        if rows != expected:
            raise Malformed(f"{path(part)}: expected {expected} rows, found {rows}")
    if min(test) < known:
        raise Malformed(f"{path('test.index')}: expected nodes from {known}, behind those of ally, found {min(test)}")
    graph = Citations(nodes)
    graph.columns = max(features["allx"][1], features["tx"][1])
    rows = list(zip(range(known), features["allx"][0], labels["ally"])) + list(zip(test, features["tx"][0], labels["ty"]))
    without = nodes - len(rows)
    for node, values, row in rows:
        label = class_of(row)
        without += label is None
        graph.features[node], graph.labels[node] = values, label or 0
    if without:
        graph.notes.append(f"{without} nodes have no class; they are written with class 0")
    train = len(labels["y"])
    if train + options.validation > known:
        raise Malformed(f"{path('ally')}: expected {train} nodes to train and {options.validation} to validate, found {known}")
    graph.parts = {"train": list(range(train)), "val": list(range(train, train + options.validation)), "test": test}

    def link_all(neighbours):
        for node, others in neighbours.items():
            for other in others:
                if not (0 <= node < nodes and 0 <= other < nodes):
                    raise Malformed(f"expected nodes below {nodes}, found an edge from {node} to {other}")
                graph.link(node, other)
    attempt(path("graph"), link_all)
    return graph


# ---- content and cites ----

def read_content(path):
    ids, names, rows, labels = {}, [], [], []
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            fields = line.split()
            if not fields:
                continue
            if len(fields) < 3:
                raise Malformed(f"{path}:{number}: expected an id, features and a class, found {len(fields)} fields")
            if rows and len(fields) - 2 != width:
                raise Malformed(f"{path}:{number}: expected {width} features, found {len(fields) - 2}")
            if fields[0] in ids:
                raise Malformed(f"{path}:{number}: '{fields[0]}' has a line already")
            width = len(fields) - 2
            ids[fields[0]] = len(ids)
            try:
                values = [float(field) for field in fields[1:-1]]
            except ValueError as error:
                raise Malformed(f"{path}:{number}: expected numbers, found otherwise: {error}") from None
            rows.append({column: value for column, value in enumerate(values) if value != 0})
            names.append(fields[-1])
    if not rows:
        raise Malformed(f"{path}: expected a line a node, found none")
    classes = sorted(set(names))
    labels = [classes.index(name) for name in names]
    return ids, rows, labels, classes, width


def draw_parts(graph, options):
    order = list(range(len(graph.labels)))
    random.Random(options.seed).shuffle(order)
    wanted = collections.Counter({label: options.train_per_class for label in set(graph.labels)})
    others = []
    for node in order:
        if wanted[graph.labels[node]] > 0:
            wanted[graph.labels[node]] -= 1
            graph.parts["train"].append(node)
        else:
            others.append(node)
    if sum(wanted.values()) > 0 or len(others) < options.validation + options.test:
        raise Malformed(f"expected {options.train_per_class} nodes of each class, then {options.validation} to validate and "
                        f"{options.test} to test, found {len(order)} nodes; --train-per-class, --validation and --test say how many")
    graph.parts["val"] = others[:options.validation]
    graph.parts["test"] = others[options.validation:options.validation + options.test]


def read_plain(source, name, options):
    content, cites = (os.path.join(source, f"{name}.{ending}") for ending in ("content", "cites"))
    ids, rows, labels, classes, width = read_content(content)
    graph = Citations(len(rows))
    graph.features, graph.labels, graph.columns = rows, labels, width
    unknown = 0
    with open(cites, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            fields = line.split()
            if not fields:
                continue
            if len(fields) != 2:
                raise Malformed(f"{cites}:{number}: expected two ids, found {len(fields)} fields")
            if fields[0] in ids and fields[1] in ids:
                graph.link(ids[fields[0]], ids[fields[1]])
            else:
                unknown += 1
    if unknown:
        graph.notes.append(f"{unknown} citations name a paper that {name}.content does not have; they are left out")
    graph.notes.append("classes, from 0: " + ", ".join(classes))
    draw_parts(graph, options)
    return graph


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="the folder with the published files")
    parser.add_argument("name", help="cora, citeseer, pubmed ...")
    parser.add_argument("folder", help="where the text files go")
    parser.add_argument("--train-per-class", type=int, default=20, help="of NAME.content (default: 20)")
    parser.add_argument("--validation", type=int, default=500, help="nodes to validate (default: 500)")
    parser.add_argument("--test", type=int, default=1000, help="nodes to test, of NAME.content (default: 1000)")
    parser.add_argument("--seed", type=int, default=1, help="of the split of NAME.content (default: 1)")
    options = parser.parse_args()
    if min(options.train_per_class, options.validation, options.test) < 1:
        parser.error("--train-per-class, --validation and --test are at least 1")
    try:
        plain = os.path.exists(os.path.join(options.source, options.name + ".content"))
        graph = (read_plain if plain else read_planetoid)(options.source, options.name, options)
        save(graph, options.name, options.folder)
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")
    except Malformed as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
