# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which device does the work: an array's own, whichever is current; the process's own; all of them; none.

On a machine without a GPU, as in test_device_arrays.py.
"""
import pytest
from test_device_arrays import run


def test_an_arrays_own_device_is_current_while_its_library_is_asked(tmp_path):
    """Else the library refuses, or orders another device's work, and what is written are the values before it."""
    run(tmp_path, """
with h5py.File(path, "w") as f:
    for n, (kind, number, context) in enumerate((kind, number, context)
            for kind in (device.Pending, device.Exported, device.Refusing)
            for number in (0, 1) for context in (77, 1000, 1001, 0)):
        d = f.create_dataset(str(n), a.shape, "f4", chunks=(16, 20, 24), **h5z_gpu.Lossless())
        device.make_current(context)
        there = kind(np.zeros_like(a), a, number)
        device.make_current(context)
        h5z_gpu.write(d, there)
        assert d[...].tobytes() == a.tobytes(), (kind, number, context)
        out = kind(np.ones_like(a), np.zeros_like(a), number)
        device.make_current(context)
        assert h5z_gpu.read(d, out) is out and device.current() == context
        assert out.values.tobytes() == a.tobytes() and out.asked[-1] == number, (kind, number, context)
        assert h5z_gpu.views.value_range(kind(np.zeros_like(a), a, number)) == (\
            a[np.isfinite(a)].min(), a[np.isfinite(a)].max())
        late = kind(np.zeros_like(a), a, number)
        assert h5z_gpu.views.on_host(late).tobytes() == a.tobytes()
    device.make_current(77)
assert coded()[0] > 0
""", FAKE_CUDA_DEVICES="2")


def test_a_library_that_fails_leaves_the_current_device_alone(tmp_path):
    run(tmp_path, """
class Failing(device.Exported):
    __cuda_array_interface__ = property(lambda self: None)
    def __dlpack__(self, stream=None):
        assert device.current() == 1001
        raise self.error
with h5py.File(path, "w") as f:
    d = f.create_dataset("d", a.shape, "f4", chunks=(16, 20, 24), **h5z_gpu.Lossless())
    there = Failing(a, a, 1)
    for there.error, raised in ((RuntimeError("no more"), TypeError), (KeyboardInterrupt(), KeyboardInterrupt)):
        try: h5z_gpu.write(d, there)
        except raised as e: assert raised is not TypeError or "cannot be read: no more" in str(e), e
        else: raise SystemExit("taken")
        assert device.current() == 77
""")


def test_what_neither_interface_hands_out_is_told_in_the_librarys_words(tmp_path):
    """PyTorch's tensors that need gradients: both interfaces raise."""
    run(tmp_path, """
class Grad(device.Exported):
    def __dlpack__(self, stream=None): raise BufferError("on a device")
    @property
    def __cuda_array_interface__(self): raise RuntimeError("use var.detach()")
from h5z_gpu.views import as_array
try: as_array(Grad(a, a, 1))
except TypeError as e: assert "cannot be read: use var.detach" in str(e), e
else: raise SystemExit("taken")
""")


def test_the_driver_says_on_which_device_an_array_is(tmp_path):
    """Arrays of the older interface do not say it: memory of device 1 was taken for device 0's."""
    run(tmp_path, """
import threading
with h5py.File(path, "w") as f:
    for number in (0, 1, 2):
        d = f.create_dataset(str(number), a.shape, "f4", chunks=(16, 20, 24), **h5z_gpu.Lossless())
        there = device.Array(a[::2], number)[::-1]
        h5z_gpu.write(d, there, np.s_[:20])
        assert d[:20].tobytes() == a[::2][::-1].tobytes()
        assert (device.launches(number) > 0)
        seen = []
        # A thread in which no context is current.
        t = threading.Thread(target=lambda: seen.append(h5z_gpu.views.as_array(there).device))
        t.start(); t.join()
        assert seen == [number], seen
        # No element, no memory, no device.
        none = device.Array(np.zeros((0, 50, 60), "f4"), number)
        h5z_gpu.write(d, none, np.s_[3:3])
        assert h5z_gpu.read(d, none, np.s_[3:3]) is none
    class Elsewhere(device.Array):
        @property
        def __cuda_array_interface__(self):
            return super().__cuda_array_interface__ | {"data": (4096, False)}
    try: h5z_gpu.write(d, Elsewhere(a))
    except ValueError as e: assert "no device whose memory is at 0x1000" in str(e), e
    else: raise SystemExit("taken")
""", FAKE_CUDA_DEVICES="3")


def test_an_array_over_several_devices_is_refused_in_words(tmp_path):
    """JAX's sharded and replicated arrays raise where they are asked for their device."""
    run(tmp_path, """
class Sharded:
    shape, dtype = a.shape, a.dtype
    def __init__(self, count): self.count = count
    def devices(self): return set(range(self.count))
    def __dlpack_device__(self): raise BufferError("__dlpack__ only supported for unsharded arrays.")
    def __array__(self, *args, **more): raise SystemExit("copied in silence")
with h5py.File(path, "w") as f:
    d = f.create_dataset("d", a.shape, "f4", chunks=(16, 20, 24), **h5z_gpu.Lossless())
    for count, text in ((2, "spread over 2 devices: give np.asarray(x)"), (1, "unsharded arrays.): give a NumPy")):
        for call in (lambda x: h5z_gpu.write(d, x), lambda x: h5z_gpu.read(d, x),
                     lambda x: h5z_gpu.save(path + "2", {"v": x})):
            try: call(Sharded(count))
            except TypeError as e: assert text in str(e), e
            else: raise SystemExit("taken")
    assert d.id.get_num_chunks() == 0
assert device.calls() == 0
""")


@pytest.mark.parametrize(("context", "want", "variables"), [
    (77, 0, {}),
    (77, 1, {"LOCAL_RANK": "1"}),
    (77, 1, {"LOCAL_RANK": "3"}),
    # One task of Slurm's a node, in which torchrun starts the others.
    (77, 1, {"LOCAL_RANK": "1", "SLURM_LOCALID": "0", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}),
    (77, 1, {"SLURM_LOCALID": "1"}),
    (0, 1, {"LOCAL_RANK": "1"}),
    # torch.cuda.set_device(1)
    (1001, 1, {}),
    (1001, 1, {"LOCAL_RANK": "0"}),
    (1000, 0, {"LOCAL_RANK": "1"}),
    (1001, 0, {"H5Z_GPU_DEVICE": "0"}),
])
def test_the_processs_own_device_is_the_current_one_or_the_local_ranks(tmp_path, context, want, variables):
    run(tmp_path, f"""
import ctypes
device.make_current({context})
text = ctypes.create_string_buffer(1 << 16)
lib.h5z_gpu_status(text, len(text))
assert b"Fake {want}" in text.value and device.opened() == {{{want}}}, (device.opened(), text.value)
assert device.current() == {context}
""", **variables)


def test_no_device_is_opened_that_a_call_does_not_need(tmp_path):
    """devices="all" is no reason to start GPUs for what is soon done without, or more of them than there are batches;
    nor to leave the way that is faster."""
    run(tmp_path, """
x = np.linspace(0, 60, 18 << 20, dtype="f4").reshape(9, 2 << 20)
with h5py.File(path, "w") as f:
    small = f.create_dataset("small", a.shape, "f4", chunks=(16, 20, 24), **h5z_gpu.Lossless())
    h5z_gpu.write(small, a, devices="all")
    h5z_gpu.read(small, devices="all")
    d = f.create_dataset("d", x.shape, "f4", chunks=(1, 1 << 20), **h5z_gpu.Lossy(absolute=1e-3, codec="planes"))
    h5z_gpu.write(d, x, devices="all", threads=16)
    h5z_gpu.read(d, devices="all", threads=8)
    assert device.opened() == set() and device.calls() == 0
    h5z_gpu.write(d, x, devices="all", threads=2)
    assert device.opened() == {0}, "writing is limited by the host's memory, which GPUs share"
    h5z_gpu.read(d, devices="all", threads=2)
    assert device.opened() == {0, 1, 2}, "three batches"
    before = [device.launches(k) for k in range(5)]
    assert sum(map(bool, before)) == 3
    h5z_gpu.write(d, x, devices="all", threads=16)
    h5z_gpu.read(d, devices="all", threads=8)
    assert [device.launches(k) for k in range(5)] == before, "the CPU is faster"
""", FAKE_CUDA_DEVICES="5")
    run(tmp_path, """
x = np.linspace(0, 60, 18 << 20, dtype="f4").reshape(9, 2 << 20)
with h5py.File(path, "w") as f:
    d = f.create_dataset("d", x.shape, "f4", chunks=(1, 1 << 20), **h5z_gpu.Lossy(absolute=1e-3, codec="szx"))
    h5z_gpu.write(d, x, devices="all", threads=2)
assert device.opened() == set()
""", FAKE_CUDA_DEVICES="3", H5Z_GPU_DEVICE="7")


def test_an_array_on_a_full_device_crosses_the_bus_chunk_by_chunk(tmp_path):
    """Not run by run: a box of this array has 2048 rows."""
    run(tmp_path, """
import os
a = np.random.default_rng(5).normal(0, 1, (64, 128, 128)).astype("f4")
turned = np.ascontiguousarray(a.transpose(1, 2, 0))
kinds = {"dense": (device.Array(a), a), "turned": (device.Array(turned), turned),
         "a view of it": (device.Array(a), a), "backwards": (device.Array(a)[::-1, :, ::-1], a[::-1, :, ::-1])}
there = kinds["a view of it"][0]
there.values = there.values.transpose(2, 0, 1)
kinds["a view of it"] = there, a.transpose(2, 0, 1)
out = {k: device.Array(np.zeros_like(want)) for k, (_, want) in kinds.items()}
os.environ["FAKE_CUDA_MEMORY"] = str(device.used())
with h5py.File(path, "w") as f:
    for k, (there, want) in kinds.items():
        d = f.create_dataset(k, want.shape, "f4", chunks=(32, 64, 64), **h5z_gpu.Lossless())
        chunks = -(-want.shape[0] // 32) * -(-want.shape[1] // 64) * -(-want.shape[2] // 64)
        for what, call in (("write", lambda: h5z_gpu.write(d, there)), ("read", lambda: h5z_gpu.read(d, out[k]))):
            before = device.calls()
            call()
            each = (device.calls() - before) / chunks
            assert each < 60, (k, what, each)
        assert d[...].tobytes() == want.tobytes() == out[k].values.tobytes(), k
assert coded() == (0, 0)
""")
