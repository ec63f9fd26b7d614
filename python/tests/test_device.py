# SPDX-License-Identifier: MIT
"""Arrays on a GPU, in and out by DLPack. What needs a GPU is skipped where there is none; a tensor that only says that it lies on one is
refused everywhere."""

import ctypes
import gc

import numpy as np
import pytest

import sdlf
from sdlf import optim


@pytest.fixture
def gpu():
    """Of sdlf.info(), why there is none."""
    for name, usable, text in sdlf.info():
        if name.partition(":")[0] == "cuda":
            return pytest.skip(f"no GPU to test with: {text}") if usable == "no" else name
    return pytest.skip("no GPU to test with")


class _Tensor(ctypes.Structure):
    """DLTensor and DLManagedTensor of DLPack's header."""

    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Pretended:
    """An array of the host's memory that says that it lies elsewhere."""

    def __init__(self, array, device=2, device_id=0):
        self.array, self.where = array, (device, device_id)
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.tensor = _Tensor(array.ctypes.data, device, device_id, array.ndim, 2, 32, 1, ctypes.addressof(self.shape), None, 0, None, None)

    def __dlpack_device__(self):
        return self.where

    def __dlpack__(self, **_):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


def test_an_array_elsewhere_is_refused_where_the_host_computes(small):
    x = np.zeros((2, 1, 8, 8), np.float32)
    np.testing.assert_array_equal(small(Pretended(x, device=1)), small(x))  # 1 is the host
    with pytest.raises(TypeError, match=r"input 'x' lies on cuda:3, expected memory of the host: copy it there, or choose where to compute"):
        small(Pretended(x, device_id=3))
    with pytest.raises(TypeError, match="lies on a device, expected memory of the host"):
        small(Pretended(x, device=8))
    with pytest.raises(TypeError, match=r"head.bias.* lies on cuda:0: copy it to the host"):
        small.parameters["head.bias"] = Pretended(np.zeros(3, np.float32))
    with pytest.raises(TypeError, match="lies on cuda:0: copy it to the host"):
        sdlf.Trainer(small, (Pretended(x), np.zeros(2, np.int64)))


def test_between_plans_on_a_gpu(small, gpu):
    x = np.random.default_rng(1).standard_normal((2, 1, 8, 8)).astype(np.float32)
    expected = small(x)
    plan, other = small.plan(2, calculator="cuda"), small.plan(2, calculator="cuda")
    plan.run(x)
    assert plan.output("y").__dlpack_device__() == (2, 0)
    np.testing.assert_allclose(other.run(plan.input("x")), expected, rtol=1e-4, atol=1e-5)
    small.use("cuda")
    np.testing.assert_allclose(small(plan.input("x")), expected, rtol=1e-4, atol=1e-5)


@pytest.fixture
def torch(gpu):
    found = pytest.importorskip("torch", reason="PyTorch is not installed")
    return found if found.cuda.is_available() else pytest.skip("PyTorch has no CUDA here")


def test_pytorch(small, torch):
    small.use("cuda")
    x = torch.randn(2, 1, 8, 8, device="cuda")
    expected = small(x.cpu().numpy())
    np.testing.assert_array_equal(small(x.cpu()), expected)  # a tensor of the host's, too
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):  # not the default one
        torch.cuda._sleep(200_000_000)  # cycles: y is not there yet when it is given
        y = (x * 2 + 1 - 1) / 2
        np.testing.assert_allclose(small(y), expected, rtol=1e-4, atol=1e-5)
    strided = torch.randn(2, 1, 8, 16, device="cuda")[..., ::2]
    np.testing.assert_allclose(small(strided), small(strided.cpu().numpy()), rtol=1e-4, atol=1e-5)
    with pytest.raises(TypeError, match="float32, found float64"):
        small(x.double())


def test_pytorch_in_place(small, torch):
    x = torch.randn(2, 1, 8, 8, device="cuda")
    expected = small(x.cpu().numpy())
    plan = small.plan(2, calculator="cuda")
    given = torch.from_dlpack(plan.input("x"))
    assert given.device == x.device and given.shape == x.shape and given.dtype == x.dtype
    for scale in (2, 1):  # the same memory in each run
        given.copy_(x * scale)
        torch.cuda.synchronize()
        plan.forward()
        found = torch.from_dlpack(plan.output("y"))
        assert found.device == x.device and found.data_ptr() == torch.from_dlpack(plan.output("y")).data_ptr()
        assert found.data_ptr() != given.data_ptr() == torch.from_dlpack(plan.input("x")).data_ptr()
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=1e-4, atol=1e-5)
    del plan  # what PyTorch holds keeps the memory
    gc.collect()
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_pytorch_trains(small, separable, torch):
    samples, labels = separable
    x, labels = (samples[:64] / 255).astype(np.float32), labels[:64].astype(np.int32)
    host, device = (small.plan(64, "train", optimizer=optim.SGD(momentum=0.9), calculator=name) for name in ("cpu", "cuda"))
    on_device = torch.from_numpy(x).cuda(), torch.from_numpy(labels).cuda()
    losses = []
    for _ in range(10):
        for plan, (batch, truth) in ((host, (x, labels)), (device, on_device)):
            plan.clear_metrics()
            plan.step(0.05, batch, labels=truth)
        losses.append((host.metrics()["loss"], device.metrics()["loss"]))
    np.testing.assert_allclose(*zip(*losses), rtol=1e-3)
    assert losses[-1][1] < losses[0][1]
    with pytest.raises(TypeError, match="'labels' is of int32, found int64"):
        device.step(0.05, on_device[0], labels=on_device[1].long())


def test_pytorch_keeps_its_memory(small, torch):
    small.use("cuda")
    x = torch.randn(64, 1, 8, 8, device="cuda")
    plan = small.plan(64, calculator="cuda")

    def calls(count):
        for _ in range(count):
            small(x + 1)
            plan.run(torch.from_dlpack(plan.input("x")).clone())
            torch.from_dlpack(plan.output("y")).sum().item()
        gc.collect()
        return torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]

    allocated, free = calls(20)
    again, left = calls(1000)
    assert again == allocated and free - left < 4 << 20


def test_cupy(small, gpu):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    small.use("cuda")
    x = cupy.random.standard_normal((2, 1, 8, 8), dtype=cupy.float32)
    expected = small(x.get())
    np.testing.assert_allclose(small(x), expected, rtol=1e-4, atol=1e-5)
    with cupy.cuda.Stream(non_blocking=True):
        np.testing.assert_allclose(small(x * 2 / 2), expected, rtol=1e-4, atol=1e-5)
    strided = cupy.random.standard_normal((2, 1, 8, 16), dtype=cupy.float32)[..., ::2]
    np.testing.assert_allclose(small(strided), small(strided.get()), rtol=1e-4, atol=1e-5)
    plan = small.plan(2, calculator="cuda")
    np.testing.assert_allclose(plan.run(x), expected, rtol=1e-4, atol=1e-5)
    cupy.from_dlpack(plan.input("x"))[...] = x[::-1]
    cupy.cuda.Device().synchronize()
    plan.forward()
    found = cupy.from_dlpack(plan.output("y"))
    assert isinstance(found, cupy.ndarray) and found.data.ptr == cupy.from_dlpack(plan.output("y")).data.ptr
    np.testing.assert_allclose(found.get(), expected[::-1], rtol=1e-4, atol=1e-5)
