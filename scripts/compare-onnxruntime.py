#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare SDLF with onnxruntime on ImageNet networks, created here with fixed seeds, or on your own ONNX files.

    scripts/compare-onnxruntime.py [--sdlf build/sdlf] [--folder FOLDER] [--dtype float32] [--calculator cpu]
                                   [--math fp32,tf32,fp16,bf16] [--time | --memory] [--threads 2] [--rounds 3] [NAME or FILE.onnx ...]

Names are torchvision's (vgg16, mobilenet_v2, resnet18, resnet50, squeezenet1_1, densenet121, googlenet, inception_v3,
shufflenet_v2_x1_0, efficientnet_b0, and any other classifier), timm's (timm.repvgg_a0, ...), or those of scripts/other_networks.py
(attention, bert, gpt, mixer, lstm, pointnet, wavenet, dcgan, unet, style, yolo); each is exported once into FOLDER with weights drawn from seed 1 and normalisation
statistics of random noise. Both programs get the same random input; the output is the largest difference relative to the output's range, in a
column for each math mode. The exit status is 1 if one in fp32 is above 1e-4.

With --time both are timed instead, one image at a time, with the same number of threads: rounds of both in turn, in each
round the median of the runs of some seconds, then the minimum over rounds. Nothing else should run meanwhile. With --memory
it is the peak memory of a run of one image, in MB: of `sdlf run`, including its libraries, and of onnxruntime, less what
Python takes after importing it; the maximum over rounds. Needs numpy, onnxruntime, and for names torch, torchvision, onnx and timm.
"""
import json
import os
import shutil
import sys
import tempfile
import time

import comparing
import imagenet

np = comparing.need("numpy")
onnxruntime = comparing.need("onnxruntime")

def drawn(random, value, shape):
    """A random input; small token numbers if it takes integers."""
    if value.type == "tensor(int64)":
        return random.integers(0, 10, shape)
    return random.standard_normal(shape).astype(np.float32)


def compare(path, arguments, folder):
    """(largest difference / range for each math mode, largest range) over all outputs."""
    random = np.random.default_rng(7)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed, words = {}, []
    for i, value in enumerate(session.get_inputs()):
        shape = [d if isinstance(d, int) and d > 0 else 1 for d in value.shape]
        feed[value.name] = drawn(random, value, shape)
        file = os.path.join(folder, f"in{i}.npy")
        np.save(file, feed[value.name])
        words += ["--input", f"{value.name}={file}"]
    outputs = [v.name for v in session.get_outputs()]
    for i, name in enumerate(outputs):
        words += ["--output", f"{name}={os.path.join(folder, f'out{i}.npy')}"]
    results, worst, scale = session.run(None, feed), [], 0.0
    for math in arguments.math:
        comparing.run([arguments.sdlf, "run", path, "--dtype", arguments.dtype, "--calculator", arguments.calculator, "--math", math,
                       *words], env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        worst.append(0.0)
        for i, expected in enumerate(results):
            found = np.load(os.path.join(folder, f"out{i}.npy"))
            spread = float(expected.max() - expected.min())
            spread = spread if spread > 0 else max(float(np.abs(expected).max()), 1e-30)
            difference = float(np.abs(found - expected).max())
            worst[-1] = max(worst[-1], difference / spread if np.isfinite(difference) else float("inf"))
            scale = max(scale, spread)
    return worst, scale


def time_onnxruntime(path, threads, seconds=2.0):
    """Median seconds of a run."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {}
    for value in session.get_inputs():
        shape = [d if isinstance(d, int) and d > 0 else 1 for d in value.shape]
        feed[value.name] = drawn(np.random.default_rng(7), value, shape)
    for _ in range(3):
        session.run(None, feed)
    samples, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(samples) < 5:
        start = time.perf_counter()
        session.run(None, feed)
        samples.append(time.perf_counter() - start)
    return float(np.median(samples))


def time_sdlf(path, arguments, repeats):
    words = [arguments.sdlf, "bench", "model", path, "--json", "--dtype", arguments.dtype, "--calculator", arguments.calculator,
             "--threads", str(arguments.threads), "--repeats", str(repeats)]
    return json.loads(comparing.run(words))["seconds"]


def compare_times(path, arguments):
    theirs, ours = [], []
    for _ in range(arguments.rounds):
        theirs.append(time_onnxruntime(path, arguments.threads))
        ours.append(time_sdlf(path, arguments, max(5, int(2.0 / theirs[-1]))))
    return min(ours), min(theirs)


def most_memory(words):
    """Peak MB of a program, by GNU time: a child of this process would start with this one's memory."""
    program = shutil.which("time")
    if program is None:
        raise comparing.Failed("--memory needs GNU time, the program /usr/bin/time")
    with tempfile.NamedTemporaryFile("r") as told:
        comparing.run([program, "--format", "%M", "--output", told.name, *words])
        return int(told.read().split()[-1]) * 1024 / 1e6


IMPORTED = "import sys, numpy, onnxruntime"
ONE_RUN = IMPORTED + """
options = onnxruntime.SessionOptions()
options.log_severity_level = 3
options.intra_op_num_threads = int(sys.argv[2])
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
session.run(None, {session.get_inputs()[0].name: numpy.load(sys.argv[3])})
"""


def compare_memory(path, arguments, folder):
    """MB of both programs, for networks with one input."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    shape = [d if isinstance(d, int) and d > 0 else 1 for d in session.get_inputs()[0].shape]
    del session
    file = os.path.join(folder, "x.npy")
    np.save(file, np.random.default_rng(7).standard_normal(shape).astype(np.float32))
    words, threads = [arguments.sdlf, "run", path, "--input", file, "--dtype", arguments.dtype], str(arguments.threads)
    ours = max(most_memory([*words, "--threads", threads]) for _ in range(arguments.rounds))
    python = most_memory([sys.executable, "-c", IMPORTED])
    theirs = max(most_memory([sys.executable, "-c", ONE_RUN, path, threads, file]) for _ in range(arguments.rounds))
    return ours, theirs - python


def main():
    parser = comparing.parser(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", default=imagenet.NAMES, help="torchvision's, or ONNX files")
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "sdlf-onnx"), help="where the ONNX files are")
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"), help="SDLF's; onnxruntime's is float32")
    parser.add_argument("--calculator", default="cpu", help="SDLF's")
    parser.add_argument("--math", type=comparing.one_of("fp32", "tf32", "fp16", "bf16"), metavar="MODE,...", default="fp32",
                        help="math modes, a column each")
    parser.add_argument("--time", action="store_true", help="time both programs instead")
    parser.add_argument("--threads", type=comparing.count, metavar="N", default=2, help="of both programs, with --time or --memory")
    parser.add_argument("--rounds", type=comparing.count, metavar="N", default=3, help="of both, with --time or --memory")
    parser.add_argument("--memory", action="store_true", help="measure the most memory of both programs instead")
    comparing.Record.arguments(parser)
    arguments = parser.parse_args()
    if arguments.time and arguments.memory:
        parser.error("--time and --memory are one or the other")
    for name in arguments.names:
        if name.endswith(".onnx") and not os.path.exists(name):
            parser.error(f"{name}: there is no such file")
    if arguments.record and not (arguments.time or arguments.memory):
        parser.error("--record is for --time or --memory")
    bad = 0
    record = comparing.Record(arguments, "ms" if arguments.time else "MB")
    if arguments.time or arguments.memory:
        print(f"{'network, ms' if arguments.time else 'network, MB':<28} {'SDLF':>9} {'onnxruntime':>12} {'ratio':>7}")
    else:
        print(f"{'difference / range':<28} " + " ".join(f"{math:>10}" for math in arguments.math) + f" {'range':>12}")
    for name in arguments.names:
        path = name if name.endswith(".onnx") else imagenet.exported(name, arguments.folder)
        try:
            if arguments.time:
                ours, theirs = compare_times(path, arguments)
                record.add(os.path.basename(path)[:-5], 1e3 * ours, 1e3 * theirs, comparing.named("onnxruntime", onnxruntime))
                print(f"{os.path.basename(path)[:-5]:<28} {1e3 * ours:>9.2f} {1e3 * theirs:>12.2f} {theirs / ours:>7.2f}", flush=True)
                continue
            with tempfile.TemporaryDirectory() as folder:
                if arguments.memory:
                    ours, theirs = compare_memory(path, arguments, folder)
                    record.add(os.path.basename(path)[:-5], ours, theirs, comparing.named("onnxruntime", onnxruntime))
                    print(f"{os.path.basename(path)[:-5]:<28} {ours:>9.1f} {theirs:>12.1f} {theirs / ours:>7.2f}", flush=True)
                    continue
                worst, scale = compare(path, arguments, folder)
            bad += any(w > 1e-4 for w, math in zip(worst, arguments.math) if math == "fp32")
            print(f"{os.path.basename(path)[:-5]:<28} " + " ".join(f"{w:>10.1e}" for w in worst) + f" {scale:>12.4g}", flush=True)
        except comparing.Failed as failed:
            bad += 1
            print(failed, file=sys.stderr)
            print(f"{os.path.basename(path)[:-5]:<28} {'not run':>18}", flush=True)
    record.write()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
