# SPDX-License-Identifier: MIT
"""Does TensorBoard read what 'sdlf train --tensorboard' writes?  read.py SDLF"""

import json
import os
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing import event_accumulator
    from tensorboard.plugins.hparams import plugin_data_pb2
except ImportError:
    print("skipped: this Python has no tensorboard package")
    sys.exit(77)

EPOCHS, SAMPLES, BATCH, CLASSES = 2, 640, 64, 10


def check(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: expected {expected}, found {found}")


with tempfile.TemporaryDirectory() as folder:
    runs = os.path.join(folder, "runs")
    subprocess.run([sys.argv[1], "train", "--net", "lenet5", "--data", f"digits:{SAMPLES}", "--epochs", str(EPOCHS), "--batch", str(BATCH),
                    "--augment-shift", "2", "--no-save", "--quiet", "--tensorboard", runs, "--log", os.path.join(folder, "run.jsonl"), "--histograms", "--gradient-histograms", "--log-steps", "5"], check=True)
    events = event_accumulator.EventAccumulator(runs, size_guidance=dict.fromkeys(("scalars", "images", "histograms", "tensors"), 0)).Reload()
    tags = events.Tags()
    check("scalars", sorted(tags["scalars"]),
          ["accuracy/test", "accuracy/train", "learning_rate", "loss/test", "loss/train", "samples_per_second"])
    steps = SAMPLES // BATCH
    train = events.Scalars("loss/train")
    check("steps of loss/train", sorted({e.step for e in train}), [5, 10, 15, 20])
    with open(os.path.join(folder, "run.jsonl"), encoding="utf-8") as file:
        lines = [line for line in map(json.loads, file) if line["event"] == "step"]
    for tag, key in (("loss/train", "loss"), ("accuracy/train", "accuracy")):
        found = events.Scalars(tag)
        check(f"one value of {tag} a step", [e.step for e in found], [5, 10, 15, 20])
        for scalar, line, before in zip(found, lines, [None, *lines]):
            half = before is not None and before["epoch"] == line["epoch"]  # lines are of the epoch so far, scalars of the last steps
            expected = 2 * line[key] - before[key] if half else line[key]
            if abs(scalar.value - expected) > 1e-5 * max(1, abs(expected)):
                sys.exit(f"{tag} at step {scalar.step}: expected {expected}, found {scalar.value}")
    check("steps of loss/test", [e.step for e in events.Scalars("loss/test")], [steps, 2 * steps])
    if not 0 < events.Scalars("accuracy/test")[-1].value <= 1:
        sys.exit("accuracy/test is no part of one")
    check("images", sorted(tags["images"]), ["confusion", "samples/augmented", "samples/first"])
    for tag in tags["images"]:
        image = events.Images(tag)[0]
        check(f"{tag}: signature", image.encoded_image_string[:8], b"\x89PNG\r\n\x1a\n")
        check(f"{tag}: width in the header", int.from_bytes(image.encoded_image_string[16:20], "big"), image.width)
        check(f"{tag}: height in the header", int.from_bytes(image.encoded_image_string[20:24], "big"), image.height)
    check("histograms over epochs", [e.step for e in events.Histograms("conv2d.weight")], [steps, 2 * steps])
    histogram = events.Histograms("conv2d.weight")[0].histogram_value
    check("values in the histogram", sum(histogram.bucket), histogram.num)
    weights = sorted(tag for tag in tags["histograms"] if not tag.startswith("gradients/"))
    check("gradients of every parameter", sorted(tags["histograms"]), sorted(["gradients/" + tag for tag in weights] + weights))
    check("gradients over epochs", [e.step for e in events.Histograms("gradients/conv2d.weight")], [steps, 2 * steps])
    for tag in weights:
        found, of = events.Histograms("gradients/" + tag)[-1].histogram_value, events.Histograms(tag)[-1].histogram_value
        check(f"numbers in the gradient of {tag}", found.num, of.num)
        if not found.min < found.max:
            sys.exit(f"the gradient of {tag} is the same everywhere")
        if found.num == CLASSES:  # of the scores' bias: softmax minus one-hot, whose sum over the classes is 0
            if not found.min < 0 < found.max or abs(found.sum) > 1e-5 * found.num * max(found.max, -found.min):
                sys.exit(f"the gradient of {tag} adds up to {found.sum}, expected 0")
    graph = events.Graph()
    nodes = {node.name: node for node in graph.node}
    check("type of conv2d", nodes["conv2d"].op, "conv2d")
    check("inputs of conv2d", list(nodes["conv2d"].input), ["image"])
    shape = nodes["conv2d"].attr["_output_shapes"].list.shape[0]
    check("dimensions of conv2d", len(shape.dim), 4)

    metadata = events.summary_metadata
    start = plugin_data_pb2.HParamsPluginData.FromString(metadata["_hparams_/session_start_info"].plugin_data.content)
    check("batch", start.session_start_info.hparams["batch"].number_value, BATCH)
    check("optimizer", start.session_start_info.hparams["optimizer"].string_value, "sgd")
    end = plugin_data_pb2.HParamsPluginData.FromString(metadata["_hparams_/session_end_info"].plugin_data.content)
    check("status", end.session_end_info.status, 1)
    experiment = plugin_data_pb2.HParamsPluginData.FromString(metadata["_hparams_/experiment"].plugin_data.content)
    check("first metric", experiment.experiment.metric_infos[0].name.tag, "accuracy/test")
print("TensorBoard reads scalars, pictures, histograms of weights and gradients, graph and hyper-parameters.")
