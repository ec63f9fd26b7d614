# SPDX-License-Identifier: MIT
"""Exports networks of torchvision, timm and other_networks.py to ONNX files, for scripts that compare SDLF with other programs."""
import os
import sys

import comparing
import other_networks

SIZES = {"vgg16": 244, "inception_v3": 299}  # pixels a side, if not 224
NAMES = ["vgg16", "mobilenet_v2", "resnet18", "resnet50", "squeezenet1_1", "densenet121", "googlenet", "inception_v3",
         "shufflenet_v2_x1_0", "efficientnet_b0"]


def network_of(name):
    """The network with random weights, and the pixels a side of its images. timm's names begin with "timm."."""
    torchvision = comparing.need("torchvision")
    if name.startswith("timm."):
        network = comparing.need("timm").create_model(name[len("timm."):], pretrained=False, exportable=True)
        return network, network.default_cfg["input_size"][-1]
    if name not in torchvision.models.list_models():
        sys.exit(f"{name}: torchvision has no such network, and it is no ONNX file")
    extra = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    return torchvision.models.get_model(name, weights=None, **extra), SIZES.get(name, 224)


def export(name, path):
    """The network in eval mode, its normalisations with statistics of random images, as ONNX. Seed 1."""
    if name in other_networks.NAMES:
        other_networks.export(name, path)
        return
    torch, torchvision = comparing.need("torch"), comparing.need("torchvision")
    torch.manual_seed(1)
    network, size = network_of(name)
    network.train()
    for module in network.modules():
        if isinstance(module, (torch.nn.Dropout, torchvision.ops.StochasticDepth)):
            module.p = 0.0
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None  # the plain mean of all batches: with a momentum of a tenth, activations would fade from layer to layer
    with torch.no_grad():
        for _ in range(2):
            network(torch.randn(2, 3, size, size))
    network.eval()  # exported with gradients enabled: otherwise attention becomes one PyTorch-specific operator
    torch.onnx.export(network, torch.randn(1, 3, size, size), path, opset_version=17, dynamo=False, input_names=["image"],
                      output_names=["class"], dynamic_axes={"image": {0: "N"}})


def exported(name, folder):
    """The path of the network's file in the folder; the file is created if missing."""
    path = os.path.join(folder, name + ".onnx")
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        export(name, path)
    return path
