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


def modules(torch):
    """Layers that torch.nn lacks, or has in another form."""
    nn, functional = torch.nn, torch.nn.functional

    class Function(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.forward = function

    class PositionEmbedding(nn.Module):
        def __init__(self, shape):
            super().__init__()
            self.weight = nn.Parameter(torch.empty(shape))

        def forward(self, x):
            return x + self.weight

    class Attention(nn.Module):
        """torch.nn.MultiheadAttention's parameters, around scaled_dot_product_attention alone."""

        def __init__(self, channels, heads, causal, bias):
            super().__init__()
            self.heads, self.causal = heads, causal
            self.in_proj_weight = nn.Parameter(torch.empty(3 * channels, channels))
            self.in_proj_bias = nn.Parameter(torch.empty(3 * channels)) if bias else None
            self.out_proj_weight = nn.Parameter(torch.empty(channels, channels))
            self.out_proj_bias = nn.Parameter(torch.empty(channels)) if bias else None

        def forward(self, x):
            n, length, channels = x.shape
            projected = functional.linear(x, self.in_proj_weight, self.in_proj_bias)
            split = projected.view(n, length, 3, self.heads, channels // self.heads).permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(*split, is_causal=self.causal)
            return functional.linear(y.transpose(1, 2).reshape(n, length, channels), self.out_proj_weight, self.out_proj_bias)

    class Dense(nn.Linear):
        flat = False

        def forward(self, x):
            return super().forward(x.flatten(1) if self.flat else x)

    def recurrent(kind):
        class Recurrent(kind):
            last = False

            def forward(self, x):
                y = super().forward(x)[0]
                return y[:, -1] if self.last else y

        return Recurrent

    return Function, PositionEmbedding, Attention, Dense, {"lstm": recurrent(nn.LSTM), "gru": recurrent(nn.GRU)}


def makers(torch, arrays):
    """By type, a function that makes a layer's module from its description."""
    nn, functional = torch.nn, torch.nn.functional
    Function, PositionEmbedding, Attention, Dense, cells = modules(torch)
    activations = {"relu": nn.ReLU, "relu6": nn.ReLU6, "silu": nn.SiLU, "gelu": nn.GELU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh,
                   "hard_swish": nn.Hardswish}

    def parameter(layer, name="weight"):
        return arrays[f"{layer['name']}.{name}"]

    def biased(layer):
        return not layer.get("no_bias", False)

    def conv2d(layer):
        known(layer, "filters", "kernel", "stride", "padding", "dilation", "groups", "no_bias")
        groups = layer.get("groups", 1)
        return nn.Conv2d(parameter(layer).shape[1] * groups, layer["filters"], pair(layer["kernel"]), pair(layer.get("stride", 1)),
                         pair(layer.get("padding", 0)), pair(layer.get("dilation", 1)), groups, biased(layer))

    def max_pool2d(layer):
        known(layer, "window", "stride", "padding")
        window = pair(layer["window"])
        return nn.MaxPool2d(window, pair(layer.get("stride", list(window))), pair(layer.get("padding", 0)))

    def batch_norm2d(layer):
        known(layer, "momentum", "epsilon", "no_scale")
        made = nn.BatchNorm2d(len(parameter(layer)), layer.get("epsilon", 1e-5), layer.get("momentum", 0.1))
        made.weight.requires_grad = not layer.get("no_scale", False)
        return made

    def fully_connected(layer):
        known(layer, "units", "no_bias", "axis")
        if layer.get("axis", 1) not in (1, -1):
            sys.exit(f"layer '{layer['name']}' (fully_connected): an axis of {layer['axis']} is not known here")
        made = Dense(*reversed(parameter(layer).shape), biased(layer))
        made.flat = layer.get("axis", 1) == 1
        return made

    def layer_norm(layer):
        known(layer, "epsilon")
        return nn.LayerNorm(parameter(layer).shape, layer.get("epsilon", 1e-5))

    def rms_norm(layer):
        known(layer, "epsilon")
        return nn.RMSNorm(parameter(layer).shape, layer.get("epsilon", 1e-5))

    def embedding(layer):
        known(layer, "vocabulary", "units", "deviation")
        return nn.Embedding(layer["vocabulary"], layer["units"])

    def position_embedding(layer):
        known(layer, "deviation")
        return PositionEmbedding(parameter(layer).shape)

    def multi_head_attention(layer):
        known(layer, "heads", "causal", "no_bias")
        channels = len(parameter(layer, "out_proj_weight"))
        return Attention(channels, layer["heads"], layer.get("causal", False), biased(layer))

    def recurrent(layer):
        known(layer, "units", "last", "no_bias")
        made = cells[layer["type"]](parameter(layer, "weight_ih").shape[1], layer["units"], batch_first=True, bias=biased(layer))
        made.last = layer.get("last", False)
        return made

    def dropout(layer):
        known(layer, "probability")
        return nn.Dropout(layer.get("probability", 0.5))

    def unary(layer):
        known(layer, "function")
        if layer["function"] not in activations:
            sys.exit(f"layer '{layer['name']}' (unary): '{layer['function']}' is not known here")
        return activations[layer["function"]]()

    def plain(made):
        def maker(layer):
            known(layer)
            return made()
        return maker

    def reshape(layer):
        known(layer, "shape")
        return Function(lambda x: x.reshape(len(x), *layer["shape"]))

    def transpose(layer):
        known(layer, "order")
        return Function(lambda x: x.permute(layer["order"]))

    def reduce(layer):
        known(layer, "function", "axes", "keep")
        if layer.get("function") != "mean" or not layer.get("axes"):
            sys.exit(f"layer '{layer['name']}' (reduce): only means over named axes are known here")
        return Function(lambda x: x.mean(layer["axes"], keepdim=layer.get("keep", False)))

    def concat(layer):
        known(layer, "axis")
        return Function(lambda *x: torch.cat(x, layer.get("axis", 1)))

    def softmax(layer):
        known(layer, "axis")
        return Function(lambda x: functional.softmax(x, layer.get("axis", 1)))

    return {"conv2d": conv2d, "max_pool2d": max_pool2d, "batch_norm2d": batch_norm2d, "fully_connected": fully_connected,
            "layer_norm": layer_norm, "rms_norm": rms_norm, "embedding": embedding, "position_embedding": position_embedding,
            "multi_head_attention": multi_head_attention, "lstm": recurrent, "gru": recurrent, "dropout": dropout, "unary": unary,
            "flatten": plain(nn.Flatten), "add": plain(lambda: Function(lambda x, y: x + y)),
            "global_avg_pool2d": plain(lambda: Function(lambda x: x.mean((2, 3), keepdim=True))), "reshape": reshape,
            "transpose": transpose, "reduce": reduce, "concat": concat, "softmax": softmax,
            **{name: plain(made) for name, made in activations.items()}}


def module(torch, network, arrays):
    """The network without its final softmax, in eval mode, with these weights."""
    nn = torch.nn
    known_layers = makers(torch, arrays)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps, self.parts = [], nn.ModuleDict()
            last = network["input"]["name"]
            layers = network["layers"]
            if layers[-1]["type"] == "softmax":
                known_layers["softmax"](layers[-1])
                layers = layers[:-1]
            for layer in layers:
                if layer["type"] not in known_layers:
                    sys.exit(f"layer '{layer['name']}': the type '{layer['type']}' is not known here")
                key = layer["name"].replace(".", "_")
                self.steps.append((layer["name"], key, layer.get("inputs", [last])))
                self.parts[key] = known_layers[layer["type"]](layer)
                for frozen in layer.get("frozen", []):
                    getattr(self.parts[key], frozen).requires_grad = False
                last = layer["name"]

        def forward(self, x):
            values = {network["input"]["name"]: x}
            for name, key, inputs in self.steps:
                values[name] = self.parts[key](*(values[i] for i in inputs))
            return values[name]

    made = Network()
    load(torch, made, network, arrays)
    return made.eval()


def load(torch, made, network, arrays):
    """Gives each parameter and statistic the array of its layer and name; both must have the same ones."""
    kinds = {layer["name"]: layer["type"] for layer in network["layers"]}
    state = {}
    for name, array in arrays.items():
        layer, _, which = name.rpartition(".")
        if layer in kinds:
            suffix = "_l0" if kinds[layer] in ("lstm", "gru") else ""
            state[f"parts.{layer.replace('.', '_')}.{which}{suffix}"] = torch.from_numpy(array)
    missing, unknown = made.load_state_dict(state, strict=False)
    missing = [name for name in missing if not name.endswith("num_batches_tracked")]
    if missing or unknown:
        sys.exit(f"weights of other names than PyTorch's: {', '.join(missing + unknown)}")
