# SPDX-License-Identifier: MIT
"""The common training data of the programs in scripts/compare-pytorch-training.py: images, and sdlf's order of them."""
import gzip
import os
import sys

SEED, STREAM_SHUFFLE = 1, 1  # sdlf's default, and SDLF_STREAM_SHUFFLE of <sdlf/random.h>


def idx(np, folder, name):
    """The array in an IDX file of bytes, which may be gzipped."""
    path = os.path.join(folder, name)
    if os.path.exists(path):
        with open(path, "rb") as file:
            found = file.read()
    elif os.path.exists(path + ".gz"):
        with gzip.open(path + ".gz") as file:
            found = file.read()
    else:
        sys.exit(f"{folder} has neither {name} nor {name}.gz")
    rank = found[3]
    shape = np.frombuffer(found, ">u4", rank, 4).astype(int)
    return np.frombuffer(found, np.uint8, offset=4 + 4 * rank).reshape(shape)


def write_idx(path, array):
    with open(path, "wb") as file:
        file.write(bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape) + array.tobytes())


def pictures(np, options):
    """(M,28,28) and (M) uint8: MNIST's first samples, or a noisy pattern for each of ten classes."""
    if options.data:
        names = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
        images, labels = (idx(np, options.data, name)[: options.samples] for name in names)
        if len(images) < options.samples:
            sys.exit(f"{options.data} has {len(images)} samples; --samples asks for {options.samples}")
        return images.copy(), labels.copy()  # PyTorch requires writable arrays
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 10, options.samples).astype(np.uint8)
    labels[: min(10, options.samples)] = np.arange(min(10, options.samples))
    patterns = rng.integers(0, 60, (10, 28, 28))
    return (patterns[labels] + rng.integers(0, 196, (options.samples, 28, 28))).astype(np.uint8), labels


def philox(np, seed, index, stream, step):
    """sdlf_philox4x32 of <sdlf/random.h> for an array of indices: four arrays of words."""
    low = np.uint64(0xFFFFFFFF)
    counter = [index & low, index >> np.uint64(32), np.full_like(index, stream), np.full_like(index, step)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]
        counter = [(second >> np.uint64(32)) ^ counter[1] ^ np.uint64(key[0]), second & low,
                   (first >> np.uint64(32)) ^ counter[3] ^ np.uint64(key[1]), first & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def order(np, count, epoch):
    """sdlf_shuffle_order: samples sorted by 64-bit keys."""
    words = philox(np, SEED, np.arange(count, dtype=np.uint64), STREAM_SHUFFLE, epoch)
    return np.argsort((words[1] << np.uint64(32)) | words[0], kind="stable")
