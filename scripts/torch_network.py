# SPDX-License-Identifier: MIT
"""Converts an SDLF network to a PyTorch module, from the description and weights in a safetensors file of `sdlf train`."""
import json
import struct
import sys


def read(np, path):
    """The network's description, and arrays by name."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
        data = file.read()
    network = json.loads(header.pop("__metadata__")["sdlf.network"])
    arrays = {}
    for name, entry in header.items():
        if entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            arrays[name] = np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"]).copy()
    return network, arrays


def pair(value):
    return tuple(value) if isinstance(value, list) else (value, value)


def known(layer, *options):
    """Ends the script at an unknown option: otherwise a different network would be timed."""
    for option in layer:
        if option not in ("type", "name", "inputs", "initializer", "initializer_scale", "frozen", *options):
            sys.exit(f"layer '{layer['name']}' ({layer['type']}): '{option}' is not known here")


def convolution(nn, layer, channels):
    known(layer, "filters", "kernel", "stride", "padding", "dilation", "groups", "no_bias")
    return nn.Conv2d(channels, layer["filters"], pair(layer["kernel"]), pair(layer.get("stride", 1)), pair(layer.get("padding", 0)),
                     pair(layer.get("dilation", 1)), layer.get("groups", 1), not layer.get("no_bias", False))


def max_pool(nn, layer):
    known(layer, "window", "stride", "padding")
    window = pair(layer["window"])
    return nn.MaxPool2d(window, pair(layer.get("stride", list(window))), pair(layer.get("padding", 0)))


def module(torch, network, arrays):
    """The network without its final softmax, in eval mode, with these weights."""
    nn = torch.nn
    plain = {"relu": nn.ReLU, "relu6": nn.ReLU6, "silu": nn.SiLU, "gelu": nn.GELU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh,
             "flatten": nn.Flatten, "hard_swish": nn.Hardswish}

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps, self.parts = [], nn.ModuleDict()
            last = network["input"]["name"]
            for layer in network["layers"]:
                inputs = layer.get("inputs", [last])
                self.steps.append((layer["name"], layer["type"], inputs))
                made = self.make(layer)
                if made is not None:
                    self.parts[layer["name"].replace(".", "_")] = made
                    for frozen in layer.get("frozen", []):
                        getattr(made, frozen).requires_grad = False
                last = layer["name"]
            if self.steps[-1][1] == "softmax":
                self.steps.pop()

        def make(self, layer):
            kind, weight = layer["type"], arrays.get(layer["name"] + ".weight")
            if kind == "conv2d":
                return convolution(nn, layer, weight.shape[1] * layer.get("groups", 1))
            if kind == "batch_norm2d":
                known(layer, "momentum", "epsilon", "no_scale")
                made = nn.BatchNorm2d(len(weight), layer.get("epsilon", 1e-5), layer.get("momentum", 0.1))
                made.weight.requires_grad = not layer.get("no_scale", False)
                return made
            if kind == "fully_connected":
                known(layer, "units", "no_bias")
                return nn.Linear(weight.shape[1], weight.shape[0], not layer.get("no_bias", False))
            if kind == "max_pool2d":
                return max_pool(nn, layer)
            if kind == "dropout":
                known(layer, "probability")
                return nn.Dropout(layer.get("probability", 0.5))
            if kind == "unary":
                known(layer, "function")
                kind = layer["function"]
            if kind in plain:
                if layer["type"] != "unary":
                    known(layer)
                return plain[kind]()
            if kind in ("add", "global_avg_pool2d", "softmax"):
                known(layer)
                return None
            sys.exit(f"layer '{layer['name']}': the type '{kind}' is not known here")

        def forward(self, x):
            values = {network["input"]["name"]: x}
            for name, kind, inputs in self.steps:
                first = values[inputs[0]]
                if kind == "add":
                    value = first + values[inputs[1]]
                elif kind == "global_avg_pool2d":
                    value = first.mean((2, 3), keepdim=True)
                else:
                    if kind == "fully_connected":
                        first = first.flatten(1)
                    value = self.parts[name.replace(".", "_")](first)
                values[name] = value
            return value

    made = Network()
    layers = {layer["name"] for layer in network["layers"]}
    state = {}
    for name, array in arrays.items():
        layer, _, which = name.rpartition(".")
        if layer in layers:
            state[f"parts.{layer.replace('.', '_')}.{which}"] = torch.from_numpy(array)
    missing, unknown = made.load_state_dict(state, strict=False)
    missing = [name for name in missing if not name.endswith("num_batches_tracked")]
    if missing or unknown:
        sys.exit(f"weights of other names than PyTorch's: {', '.join(missing + unknown)}")
    return made.eval()
