#!/usr/bin/env python3
"""Regenerate tests/fixtures/torch_*.json: what PyTorch computes for every layer, optimiser and schedule.

    python3 scripts/make-torch-fixtures.py [FOLDER]

Needs PyTorch (CPU). The tests read the files and need no Python. All is computed in float64 from inputs that float32
holds exactly, and is drawn from fixed seeds: the files change only where a case, or PyTorch, does.

A layer's case is a network as in a network file. Its inputs are the weights of fully connected layers "x0", "x1" whose
own input is the identity matrix, so that the gradients of the inputs are gradients of parameters: x[n,e] = weight[e,n].
A layer "readout" of three classes and the cross-entropy make a scalar loss of the output "y".
"""
import json
import math
import os
import sys

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def draw(generator, *shape):
    """Multiples of 2^-8 in [-0.5, 0.5]."""
    return torch.randint(-128, 129, shape, generator=generator).double() / 256


def distinct(generator, unit, *shape):
    """All different: odd multiples of unit / 2 around 0."""
    count = math.prod(shape)
    return ((torch.randperm(count, generator=generator).double() - count // 2 + 0.5) * unit).reshape(shape)


def numbers(tensor):
    """Flat, with eight significant digits."""
    return [float(f"{value:.8g}") for value in tensor.detach().reshape(-1).tolist()]


# ---- layers ----


def layer_case(name, layer, shapes, compute, parameters=None, unit=2**-5, fixed=None, after=None, ties=False, mode="train"):
    """compute(x, p): the layer's output of the list of inputs and the parameters by name. `fixed`: parameters that are no
    gradient's, with their values. `after`: of those, what they are after a training step."""
    generator = torch.Generator().manual_seed(len(name) * 1000 + sum(map(ord, name)))
    batch = shapes[0][0]
    network = {"inputs": [{"name": "eye", "shape": [batch]}], "layers": []}
    values, x = {}, []
    for index, shape in enumerate(shapes):
        count = math.prod(shape[1:])
        weight = distinct(generator, unit, count, batch)
        if ties:
            weight = torch.round(weight * 2) / 2
        values[f"x{index}.weight"] = weight.requires_grad_()
        x.append(weight.T.reshape(shape))
        network["layers"].append({"type": "fully_connected", "name": f"x{index}", "inputs": ["eye"], "units": count,
                                  "no_bias": True})
        network["layers"].append({"type": "reshape", "name": f"in{index}", "inputs": [f"x{index}"], "shape": shape[1:]})
    inputs = [f"in{index}" for index in range(len(shapes))]
    is_loss = layer["type"] == "softmax_cross_entropy"
    if is_loss:
        network["inputs"].append({"name": "labels", "shape": [], "dtype": "int32"})
        inputs.append("labels")
    network["layers"].append({**layer, "name": "layer", "inputs": inputs})
    for key, shape in (parameters or {}).items():
        values[f"layer.{key}"] = draw(generator, *shape).requires_grad_()
    p = {key.split(".")[1]: value for key, value in values.items() if key.startswith("layer.")}
    p.update(fixed or {})
    labels = torch.arange(batch) % 3
    y = compute(x, p, labels) if is_loss else compute(x, p)
    network["outputs"] = {"y": "layer"}
    loss = y
    if not is_loss:
        features = math.prod(y.shape[1:])
        values["readout.weight"] = draw(generator, 3, features).requires_grad_()
        values["readout.bias"] = draw(generator, 3).requires_grad_()
        network["layers"].append({"type": "fully_connected", "name": "readout", "inputs": ["layer"], "units": 3})
        network["outputs"] = {"logits": "readout", "y": "layer"}
        loss = F.cross_entropy(y.flatten(1) @ values["readout.weight"].T + values["readout.bias"], labels)
    case = {"name": name, "mode": mode, "batch": batch, "network": network, "labels": labels.tolist(),
            "parameters": {key: numbers(value) for key, value in values.items()}, "output": numbers(y)}
    case["parameters"].update({f"layer.{key}": numbers(value) for key, value in (fixed or {}).items()})
    if mode == "train":
        loss.backward()
        case["loss"] = float(f"{loss.item():.8g}")
        case["gradients"] = {key: numbers(value.grad) for key, value in values.items()}
    if after:
        case["after"] = {f"layer.{key}": numbers(value) for key, value in after().items()}
    return case


def conv2d(name, shape, filters, kernel, bias=True, groups=1, extra=(0, 0), **options):
    layer = {"type": "conv2d", "filters": filters, "kernel": kernel, **options}
    parameters = {"weight": [filters, shape[1] // groups, *kernel]}
    if groups != 1:
        layer["groups"] = groups
    if bias:
        parameters["bias"] = [filters]
    else:
        layer["no_bias"] = True
    if extra != (0, 0):
        layer["padding_extra"] = list(extra)
    pad = options.get("padding", [0, 0])

    def compute(x, p):
        padded = F.pad(x[0], (pad[1], pad[1] + extra[1], pad[0], pad[0] + extra[0]))
        return F.conv2d(padded, p["weight"], p.get("bias"), stride=options.get("stride", 1),
                        dilation=options.get("dilation", 1), groups=groups)

    return layer_case(name, layer, [shape], compute, parameters)


def batch_norm2d(name, shape, mode, **options):
    channels = shape[1]
    mean, variance = torch.arange(channels) / 4 - 0.5, torch.arange(channels) / 2 + 0.25
    kept = {"running_mean": mean.clone(), "running_var": variance.clone()}
    epsilon, momentum = options.get("epsilon", 1e-5), options.get("momentum", 0.1)
    compute = lambda x, p: F.batch_norm(x[0], mean, variance, p["weight"], p["bias"], mode == "train", momentum, epsilon)
    after = (lambda: {"running_mean": mean, "running_var": variance}) if mode == "train" else None
    return layer_case(name, {"type": "batch_norm2d", **options}, [shape], compute,
                      {"weight": [channels], "bias": [channels]}, fixed=kept, after=after, mode=mode)


def max_pool2d(name, shape, window, ties=False, **options):
    layer = {"type": "max_pool2d", "window": window, **options}
    if ties:
        layer["ties"] = "first"
    compute = lambda x, p: F.max_pool2d(x[0], window, options.get("stride", window), options.get("padding", 0),
                                        options.get("dilation", 1))
    return layer_case(name, layer, [shape], compute, ties=ties)


def avg_pool2d(name, shape, window, **options):
    compute = lambda x, p: F.avg_pool2d(x[0], window, options.get("stride", window), options.get("padding", 0),
                                        count_include_pad=options.get("count_padding", False))
    return layer_case(name, {"type": "avg_pool2d", "window": window, **options}, [shape], compute)


def activation(function, compute, unit=2**-3, **options):
    return layer_case(function, {"type": function, **options}, [[2, 13]], lambda x, p: compute(x[0]), unit=unit)


def softmax(function, compute, axis, shape):
    return layer_case(f"{function} along {axis}", {"type": function, "axis": axis}, [shape],
                      lambda x, p: compute(x[0], dim=axis), unit=2**-3)


def cross_entropy(smoothing):
    return layer_case(f"softmax_cross_entropy smoothed by {smoothing}",
                      {"type": "softmax_cross_entropy", "smoothing": smoothing}, [[4, 5]],
                      lambda x, p, labels: F.cross_entropy(x[0], labels, label_smoothing=smoothing), unit=2**-3)


def layers():
    linear = {"type": "fully_connected", "units": 4}
    return [
        conv2d("conv2d", [2, 2, 5, 4], 3, [3, 3]),
        conv2d("conv2d strided and padded", [2, 2, 6, 5], 2, [3, 2], stride=[2, 1], padding=[1, 1]),
        conv2d("conv2d dilated, padded unevenly", [2, 1, 5, 6], 2, [2, 3], dilation=[2, 2], padding=[1, 2], extra=(1, -1)),
        conv2d("conv2d grouped, no bias", [2, 4, 4, 4], 4, [3, 3], bias=False, groups=2),
        conv2d("conv2d depthwise", [2, 3, 4, 4], 3, [3, 3], groups=3, padding=[1, 1]),
        max_pool2d("max_pool2d", [2, 2, 4, 6], [2, 2]),
        max_pool2d("max_pool2d overlapping, padded, dilated", [2, 1, 6, 6], [2, 3], stride=[1, 2], padding=[1, 1],
                   dilation=[2, 1]),
        max_pool2d("max_pool2d with ties", [2, 2, 5, 5], [3, 3], ties=True, stride=[2, 2], padding=[1, 1]),
        avg_pool2d("avg_pool2d", [2, 2, 4, 5], [2, 2]),
        avg_pool2d("avg_pool2d padded", [2, 1, 5, 5], [3, 3], stride=[2, 2], padding=[1, 1]),
        avg_pool2d("avg_pool2d padding counted", [2, 1, 5, 5], [3, 2], stride=[2, 1], padding=[1, 1], count_padding=True),
        layer_case("global_avg_pool2d", {"type": "global_avg_pool2d"}, [[2, 3, 3, 4]],
                   lambda x, p: F.adaptive_avg_pool2d(x[0], 1)),
        layer_case("fully_connected", linear, [[3, 2, 3]],
                   lambda x, p: F.linear(x[0].flatten(1), p["weight"], p["bias"]), {"weight": [4, 6], "bias": [4]}),
        layer_case("fully_connected, no bias", {**linear, "no_bias": True}, [[3, 7]],
                   lambda x, p: F.linear(x[0], p["weight"]), {"weight": [4, 7]}),
        batch_norm2d("batch_norm2d", [3, 2, 3, 2], "train"),
        batch_norm2d("batch_norm2d of rows", [5, 3], "train", epsilon=0.01, momentum=0.25),
        batch_norm2d("batch_norm2d in inference", [2, 3, 2, 2], "infer"),
        layer_case("dropout in inference", {"type": "dropout", "probability": 0.5}, [[2, 5]], lambda x, p: x[0],
                   mode="infer"),
        activation("relu", F.relu),
        activation("relu6", F.relu6, unit=0.75),
        activation("clip", lambda x: x.clamp(-0.5, 0.75), low=-0.5, high=0.75),
        activation("leaky_relu", lambda x: F.leaky_relu(x, 0.125), slope=0.125),
        activation("sigmoid", torch.sigmoid),
        activation("tanh", torch.tanh),
        layer_case("flatten", {"type": "flatten"}, [[2, 2, 3]], lambda x, p: x[0].flatten(1)),
        layer_case("reshape", {"type": "reshape", "shape": [3, -1]}, [[2, 2, 6]], lambda x, p: x[0].reshape(2, 3, 4)),
        layer_case("add", {"type": "add"}, [[2, 7], [2, 7]], lambda x, p: x[0] + x[1]),
        layer_case("concat", {"type": "concat"}, [[2, 2, 3], [2, 1, 3]], lambda x, p: torch.cat(x, 1)),
        layer_case("concat along 2", {"type": "concat", "axis": 2}, [[2, 2, 3], [2, 2, 4]], lambda x, p: torch.cat(x, 2)),
        softmax("softmax", F.softmax, 1, [3, 6]),
        softmax("softmax", F.softmax, 2, [2, 3, 4]),
        softmax("log_softmax", F.log_softmax, 1, [2, 4, 3]),
        cross_entropy(0.0),
        cross_entropy(0.1),
    ]


# ---- optimisers ----


def optimizer_case(kind, make, clip_norm=0.0, **options):
    """Five steps of nine weights with given gradients and rates."""
    generator = torch.Generator().manual_seed(5)
    weight = draw(generator, 9).requires_grad_()
    start, gradients, weights = numbers(weight), [], []
    rates = [0.1, 0.1, 0.05, 0.2, 0.025]
    optimizer = make([weight], {key: value for key, value in options.items()})
    for rate in rates:
        for group in optimizer.param_groups:
            group["lr"] = rate
        weight.grad = draw(generator, 9) * 2
        gradients.append(numbers(weight.grad))
        if clip_norm > 0:
            torch.nn.utils.clip_grad_norm_([weight], clip_norm)
        optimizer.step()
        weights.append(numbers(weight))
    return {"optimizer": kind, "options": options, "clip_norm": clip_norm, "rates": rates, "start": start,
            "gradients": gradients, "weights": weights}


def optimizers():
    sgd = lambda p, o: torch.optim.SGD(p, lr=1, **o)
    betas = lambda o: (o.get("beta1", 0.9), o.get("beta2", 0.999))
    adam = lambda p, o: torch.optim.Adam(p, 1, betas(o), o.get("epsilon", 1e-8), o.get("weight_decay", 0))
    adamw = lambda p, o: torch.optim.AdamW(p, 1, betas(o), o.get("epsilon", 1e-8), o.get("weight_decay", 0))
    rmsprop = lambda p, o: torch.optim.RMSprop(p, 1, o.get("rho", 0.99), o.get("epsilon", 1e-8),
                                               o.get("weight_decay", 0), o.get("momentum", 0))
    return [
        optimizer_case("sgd", sgd),
        optimizer_case("sgd", sgd, momentum=0.9, weight_decay=0.125),
        optimizer_case("sgd", sgd, momentum=0.75, nesterov=True, weight_decay=0.0625),
        optimizer_case("sgd", sgd, clip_norm=0.5, momentum=0.5),
        optimizer_case("adam", adam),
        optimizer_case("adam", adam, beta1=0.75, beta2=0.9375, epsilon=0.0078125, weight_decay=0.25),
        optimizer_case("adamw", adamw, weight_decay=0.25),
        optimizer_case("adamw", adamw, clip_norm=1.0, beta1=0.5, weight_decay=0.5),
        optimizer_case("rmsprop", rmsprop),
        optimizer_case("rmsprop", rmsprop, rho=0.75, epsilon=0.015625, momentum=0.5, weight_decay=0.125),
    ]


# ---- schedules ----


def schedule_case(kind, total, steps_per_epoch, make, **options):
    """The rate of every step. make(optimizer): PyTorch's schedulers one after the other, and where they change."""
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=options["peak"])
    warm = math.floor(options.get("warmup", 0) * total) if kind != "one_cycle" else 0
    parts = [torch.optim.lr_scheduler.LinearLR(optimizer, 1 / (warm + 1), 1, warm)] if warm > 0 else []
    parts.append(make(optimizer, total - warm))
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, parts, [warm]) if warm > 0 else parts[0]
    rates = []
    for _ in range(total):
        rates.append(float(f"{optimizer.param_groups[0]['lr']:.8g}"))
        optimizer.step()
        scheduler.step()
    return {"kind": kind, "options": options, "total": total, "steps_per_epoch": steps_per_epoch, "rates": rates}


def schedules():
    scheduler = torch.optim.lr_scheduler
    constant = lambda optimizer, steps: scheduler.ConstantLR(optimizer, 1)
    cosine = lambda final: lambda optimizer, steps: scheduler.CosineAnnealingLR(optimizer, steps, final)
    line = lambda factor: lambda optimizer, steps: scheduler.LinearLR(optimizer, 1, factor, steps)
    cycle = lambda peak, rise, first, last: lambda optimizer, steps: scheduler.OneCycleLR(
        optimizer, peak, steps, pct_start=rise, div_factor=first, final_div_factor=last / first, cycle_momentum=False)
    drops = lambda steps, gamma: lambda optimizer, _: scheduler.StepLR(optimizer, steps, gamma)
    return [
        schedule_case("constant", 12, 4, constant, peak=0.25),
        schedule_case("constant", 12, 4, constant, peak=0.25, warmup=0.5),
        schedule_case("step", 24, 4, drops(8, 0.5), peak=0.5, gamma=0.5, every=2),
        schedule_case("cosine", 20, 5, cosine(0), peak=0.5),
        schedule_case("cosine", 20, 5, cosine(0.125), peak=0.5, final=0.125, warmup=0.25),
        schedule_case("linear", 20, 5, line(0.25), peak=0.5, final=0.125),
        schedule_case("linear", 20, 5, line(0), peak=0.5, warmup=0.25),
        schedule_case("one_cycle", 20, 5, cycle(0.5, 0.3, 25, 1e4), peak=0.5),
        schedule_case("one_cycle", 40, 5, cycle(0.5, 0.25, 8, 64), peak=0.5, warmup=0.25, start_divisor=8, final_divisor=64),
    ]


# ---- graph convolutions ----


def gcn_case(name, edges, nodes, undirected, loops, normalization, masked):
    """Two graph convolutions over an edge list, their matrix made densely from it: log-softmax, the mean loss over the masked
    nodes, and the gradients of both weights and biases."""
    generator = torch.Generator().manual_seed(len(edges))
    inputs, hidden, classes = 5, 4, 3
    b = torch.zeros(nodes, nodes)
    for start, end in edges:
        b[start, end] = 1
        if undirected:
            b[end, start] = 1
    if loops:
        b.fill_diagonal_(1)
    degree = b.sum(1)
    inverse = torch.where(degree > 0, 1 / degree, torch.zeros(nodes))
    root = inverse.sqrt()
    matrix = {"none": b, "row": inverse[:, None] * b, "symmetric": root[:, None] * b * root[None, :]}[normalization]
    x = draw(generator, nodes, inputs)
    p = {key: (4 * draw(generator, *shape)).requires_grad_() for key, shape in (
        ("graph_conv.weight", (inputs, hidden)), ("graph_conv.bias", (hidden,)), ("graph_conv_2.weight", (hidden, classes)), ("graph_conv_2.bias", (classes,)))}
    h = F.relu(matrix @ (x @ p["graph_conv.weight"]) + p["graph_conv.bias"])
    y = matrix @ (h @ p["graph_conv_2.weight"]) + p["graph_conv_2.bias"]
    labels = torch.randint(0, classes, (nodes,), generator=generator)
    loss = F.cross_entropy(y[masked], labels[masked])
    loss.backward()
    return {"name": name, "edges": "".join(f"{start} {end}\n" for start, end in edges), "nodes": nodes, "undirected": undirected,
            "loops": loops, "normalization": normalization, "matrix": numbers(matrix), "x": numbers(x), "masked": masked,
            "labels": labels.tolist(), "parameters": {key: numbers(value) for key, value in p.items()},
            "output": numbers(F.log_softmax(y, 1)), "loss": float(f"{loss.item():.8g}"),
            "gradients": {key: numbers(value.grad) for key, value in p.items()}}


def gcns():
    # node 0 is a hub, 7 is isolated, 5 has no arc of its own; an edge twice, one both ways, a loop
    edges = [(0, n) for n in range(1, 6)] + [(1, 2), (2, 1), (3, 3), (4, 2), (4, 2), (6, 0)]
    return [
        gcn_case("undirected, symmetric", edges, 8, True, True, "symmetric", [0, 3, 7]),
        gcn_case("undirected, symmetric, no loops", edges, 8, True, False, "symmetric", [1, 2, 5]),
        gcn_case("directed, mean", edges, 8, False, True, "row", [0, 1, 6]),
        gcn_case("directed, mean, no loops", edges, 8, False, False, "row", [0, 5, 6, 7]),
        gcn_case("directed, symmetric", edges, 8, False, True, "symmetric", [2, 4]),
        gcn_case("directed, plain", edges, 8, False, False, "none", [0, 1, 2, 3, 4, 5, 6, 7]),
    ]


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "tests", "fixtures")
    for name, cases in (("layers", layers()), ("optimizers", optimizers()), ("schedules", schedules()), ("gcn", gcns())):
        path = os.path.join(folder, f"torch_{name}.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"made_by": "scripts/make-torch-fixtures.py", "torch": "%s", "cases": [\n' % torch.__version__)
            file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in cases))
            file.write("\n]}\n")
        print(f"{path}: {len(cases)} cases, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
