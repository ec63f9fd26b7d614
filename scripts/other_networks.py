# SPDX-License-Identifier: MIT
"""Small networks of kinds that torchvision lacks, in PyTorch with random weights, as ONNX files for scripts that compare programs.

attention (256 tokens of 256, 8 heads), bert (4 blocks, 64 tokens of 256), gpt (4 blocks, 128 tokens of 384, 5,000 words), mixer (6 blocks,
224x224), lstm (2 layers of 256, 100 steps), pointnet (2,048 points), wavenet (8 gated dilated layers of 64, 8,000 samples), dcgan (generator,
64x64), unet (256x256), style (transfer, 224x224), yolo (a small detector, 320x320).
"""
import comparing


def make(name):
    """(the network, an input)"""
    torch = comparing.need("torch")
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, width, heads, causal=False):
            super().__init__()
            self.heads, self.causal = heads, causal
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
            self.read, self.write = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            n, t, c = x.shape
            q, k, v = (part.view(n, t, self.heads, c // self.heads).transpose(1, 2)
                       for part in self.read(self.norms[0](x)).split(c, 2))
            scores = q @ k.transpose(2, 3) / (c // self.heads) ** 0.5
            if self.causal:
                scores = scores.masked_fill(torch.tril(torch.ones(t, t)) == 0, float("-inf"))
            x = x + self.write((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, c))
            return x + self.mlp(self.norms[1](x))

    class Gpt(nn.Module):
        def __init__(self, width=384, words=5000, tokens=128):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.randn(1, tokens, width))
            self.body = nn.Sequential(*[Block(width, 6, True) for _ in range(4)], nn.LayerNorm(width), nn.Linear(width, words))

        def forward(self, x):
            return self.body(self.words(x) + self.places)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.MultiheadAttention(256, 8, batch_first=True)

        def forward(self, x):
            return self.body(x, x, x, need_weights=False)[0]

    class Mixer(nn.Module):
        def __init__(self, width=256, tokens=196):
            super().__init__()

            def mlp(inner, outer):
                return nn.Sequential(nn.Linear(inner, outer), nn.GELU(), nn.Linear(outer, inner))

            self.patches, self.head = nn.Conv2d(3, width, 16, 16), nn.Linear(width, 1000)
            self.blocks = nn.ModuleList(nn.ModuleList([nn.LayerNorm(width), mlp(tokens, 2 * tokens), nn.LayerNorm(width),
                                                       mlp(width, 4 * width)]) for _ in range(6))

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            for first, tokens, second, channels in self.blocks:
                x = x + tokens(first(x).transpose(1, 2)).transpose(1, 2)
                x = x + channels(second(x))
            return self.head(x.mean(1))

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.LSTM(128, 256, 2, batch_first=True), nn.Linear(256, 10)

        def forward(self, x):
            return self.head(self.body(x)[0][:, -1])

    class PointNet(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [3, 64, 128, 1024]
            self.points = nn.Sequential(*[layer for a, b in zip(widths, widths[1:])
                                          for layer in (nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())][:-1])
            self.head = nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 40))

        def forward(self, x):
            return self.head(self.points(x).max(2)[0])

    class WaveNet(nn.Module):
        def __init__(self, width=64, layers=8):
            super().__init__()

            def dilated():
                return nn.ModuleList(nn.Conv1d(width, width, 3, padding=2 ** i, dilation=2 ** i) for i in range(layers))

            self.first, self.last = nn.Conv1d(1, width, 1), nn.Conv1d(width, 256, 1)
            self.filters, self.gates = dilated(), dilated()
            self.outputs = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers))

        def forward(self, x):
            x, total = self.first(x), 0
            for a, b, output in zip(self.filters, self.gates, self.outputs):
                y = output(torch.tanh(a(x)) * torch.sigmoid(b(x)))
                total, x = total + y, x + y
            return self.last(functional.relu(total))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()

            def twice(a, b):
                return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1),
                                     nn.BatchNorm2d(b), nn.ReLU())

            self.down = nn.ModuleList(twice(a, b) for a, b in ((3, 32), (32, 64), (64, 128), (128, 256)))
            self.grow = nn.ModuleList(nn.ConvTranspose2d(2 * c, c, 2, 2) for c in (128, 64, 32))
            self.up = nn.ModuleList(twice(2 * c, c) for c in (128, 64, 32))
            self.last = nn.Conv2d(32, 4, 1)

        def forward(self, x):
            kept = []
            for i, block in enumerate(self.down):
                x = block(functional.max_pool2d(x, 2) if i else x)
                kept.append(x)
            for grow, block, skip in zip(self.grow, self.up, kept[-2::-1]):
                x = block(torch.cat([grow(x), skip], 1))
            return self.last(x)

    def dcgan():
        layers, channels = [], 100
        for i, width in enumerate([512, 256, 128, 64]):
            layers += [nn.ConvTranspose2d(channels, width, 4, 2 if i else 1, 1 if i else 0, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
        return nn.Sequential(*layers, nn.ConvTranspose2d(channels, 3, 4, 2, 1), nn.Tanh())

    class Style(nn.Module):
        def __init__(self):
            super().__init__()

            def conv(a, b, size, stride=1):
                return nn.Sequential(nn.ReflectionPad2d(size // 2), nn.Conv2d(a, b, size, stride), nn.InstanceNorm2d(b, affine=True), nn.ReLU())

            self.down = nn.Sequential(conv(3, 32, 9), conv(32, 64, 3, 2), conv(64, 128, 3, 2))
            self.middle = nn.ModuleList(nn.Sequential(conv(128, 128, 3), conv(128, 128, 3)[:3]) for _ in range(5))
            self.up = nn.ModuleList([conv(128, 64, 3), conv(64, 32, 3)])
            self.last = nn.Sequential(nn.ReflectionPad2d(4), nn.Conv2d(32, 3, 9))

        def forward(self, x):
            x = self.down(x)
            for block in self.middle:
                x = x + block(x)
            for block in self.up:
                x = block(functional.interpolate(x, scale_factor=2.0))
            return self.last(x)

    def conv_silu(a, b, size=3, stride=1):
        return nn.Sequential(nn.Conv2d(a, b, size, stride, size // 2, bias=False), nn.BatchNorm2d(b), nn.SiLU())

    class Stage(nn.Module):
        def __init__(self, a, b, depth=1):
            super().__init__()
            self.left, self.right, self.last = conv_silu(a, b // 2, 1), conv_silu(a, b // 2, 1), conv_silu(b, b, 1)
            self.blocks = nn.ModuleList(nn.Sequential(conv_silu(b // 2, b // 2, 1), conv_silu(b // 2, b // 2)) for _ in range(depth))

        def forward(self, x):
            y = self.left(x)
            for block in self.blocks:
                y = y + block(y)
            return self.last(torch.cat([y, self.right(x)], 1))

    class Yolo(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(conv_silu(3, 16, 3, 2), conv_silu(16, 32, 3, 2), Stage(32, 32))
            self.down = nn.ModuleList(nn.Sequential(conv_silu(a, 2 * a, 3, 2), Stage(2 * a, 2 * a, n)) for a, n in ((32, 2), (64, 3), (128, 1)))
            self.narrow = nn.ModuleList([conv_silu(256, 128, 1), conv_silu(128, 64, 1)])
            self.up = nn.ModuleList([Stage(256, 128), Stage(128, 64)])
            self.heads = nn.ModuleList(nn.Conv2d(c, 255, 1) for c in (256, 128, 64))

        def forward(self, x):
            x, kept, found = self.stem(x), [], []
            for block in self.down:
                x = block(x)
                kept.append(x)
            found.append(x)
            for narrow, block, skip in zip(self.narrow, self.up, kept[-2::-1]):
                x = block(torch.cat([functional.interpolate(narrow(x), scale_factor=2.0), skip], 1))
                found.append(x)
            return tuple(head(y) for head, y in zip(self.heads, found))

    torch.manual_seed(1)
    makers = {
        "attention": (Attention, (1, 256, 256)),
        "bert": (lambda: nn.Sequential(*[Block(256, 4) for _ in range(4)]), (1, 64, 256)),
        "gpt": (Gpt, None),
        "mixer": (Mixer, (1, 3, 224, 224)),
        "lstm": (Lstm, (1, 100, 128)),
        "pointnet": (PointNet, (1, 3, 2048)),
        "wavenet": (WaveNet, (1, 1, 8000)),
        "dcgan": (dcgan, (1, 100, 1, 1)),
        "unet": (UNet, (1, 3, 256, 256)),
        "style": (Style, (1, 3, 224, 224)),
        "yolo": (Yolo, (1, 3, 320, 320)),
    }
    network, shape = makers[name]
    return network(), torch.randint(0, 5000, (1, 128)) if shape is None else torch.randn(*shape)


NAMES = ["attention", "bert", "gpt", "mixer", "lstm", "pointnet", "wavenet", "dcgan", "unet", "style", "yolo"]


def export(name, path):
    """The network in eval mode as ONNX, with fixed shapes. Seed 1."""
    torch = comparing.need("torch")
    network, example = make(name)
    network.eval()
    torch.onnx.export(network, example, path, opset_version=17, dynamo=False)  # with gradients: else attention is one operator of PyTorch's own
