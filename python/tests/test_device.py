# SPDX-License-Identifier: MIT
"""Arrays on a GPU, in and out by DLPack. What needs a GPU is skipped where there is none; a tensor that only says that it lies on one is
refused everywhere."""

import ctypes

import numpy as np
import pytest

import sdlf


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


def test_pytorch(small, gpu):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no CUDA here")
    small.use("cuda")
    x = torch.randn(2, 1, 8, 8, device="cuda")
    expected = small(x.cpu().numpy())
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):  # not the default one
        torch.cuda._sleep(200_000_000)  # cycles: y is not there yet when it is given
        y = (x * 2 + 1 - 1) / 2
        np.testing.assert_allclose(small(y), expected, rtol=1e-4, atol=1e-5)
    strided = torch.randn(2, 1, 8, 16, device="cuda")[..., ::2]
    np.testing.assert_allclose(small(strided), small(strided.cpu().numpy()), rtol=1e-4, atol=1e-5)
    plan = small.plan(2, calculator="cuda")
    torch.from_dlpack(plan.input("x")).copy_(x)
    torch.cuda.synchronize()
    plan.forward()
    found = torch.from_dlpack(plan.output("y"))
    assert found.device == x.device
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(TypeError, match="float32, found float64"):
        small(x.double())


def test_cupy(small, gpu):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    small.use("cuda")
    x = cupy.random.standard_normal((2, 1, 8, 8), dtype=cupy.float32)
    np.testing.assert_allclose(small(x), small(x.get()), rtol=1e-4, atol=1e-5)
    plan = small.plan(2, calculator="cuda")
    expected = plan.run(x)
    np.testing.assert_allclose(cupy.from_dlpack(plan.output("y")).get(), expected)
