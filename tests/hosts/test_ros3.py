# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files that HDF5 reads from a server itself, by its driver ROS3, in two programs: Debian's h5py, whose HDF5 1.10 asks
by curl, and a wheel's, whose HDF5 2.1 asks by Amazon's library. The server answers from this process."""
import hashlib
import re
import sys

import h5py
import numpy as np
import pytest
from conftest import PLUGIN, ROOT, clean, run
from test_remote import made
from test_servers import answered, nothing, reset
from web import server

sys.path.insert(0, str(ROOT / "plugin/python"))
import h5z_gpu

PROGRAMS = {
    "1.10": ("/usr/bin/python3", f"{ROOT}/plugin/python"),
    "2.1": (sys.executable, f"{ROOT}/.env/older/ros3:{ROOT}/plugin/python"),
}
# Prints the log, and the sum of the values or the error; then what is to be known of the file.
READS = """
import hashlib, logging, sys, h5py, h5z_gpu
logging.basicConfig(level="INFO", format="%(message)s", stream=sys.stdout)
logging.getLogger().handlers[0].addFilter(lambda record: record.name == "h5z_gpu")
with h5py.File(sys.argv[1], "r", driver="ros3", **eval(sys.argv[3])) as f:
    plan = f.id.get_access_plist()
    print("page buffer", hasattr(plan, "get_page_buffer_size") and plan.get_page_buffer_size()[0])
    try:
        print(hashlib.md5(h5z_gpu.read(f["v"], selection=eval(sys.argv[2]))).hexdigest())
    except OSError as error:
        print("OSError:", error)
"""
# Frames of 320 kB; those of a column are further apart than what one request bridges.
A = np.random.default_rng(1).integers(0, 1 << 32, (24, 2, 80_000), np.uint32)
NOISE = made(A, chunks=(1, 1, 80_000), compression=h5z_gpu.Lossless())
COLUMN = "(slice(None), 1)"


def md5(values):
    return hashlib.md5(np.ascontiguousarray(values)).hexdigest()


def environment(s, **more):
    """Without a configuration of the user's, and without asking for keys in a network."""
    return clean(**{
        "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL": s.url("")[:-1],
        "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "H5Z_GPU_PLUGIN_PATH": str(PLUGIN.parent),
    } | more)


def said(program, s, url=None, selection=COLUMN, how="{}", code=READS, **more):
    python, path = PROGRAMS[program]
    return run(python, "-c", code, url or s.url("bucket/a.h5"), selection, how,
               env=environment(s, PYTHONPATH=path, **more))


def ours(s):
    """The requests of the package, which alone names an encoding."""
    return [(first, last) for first, last, headers in s.asked if "Accept-Encoding" in headers]


@pytest.mark.parametrize("program", PROGRAMS)
def test_many_ranges_at_a_time(program):
    with server({"bucket/a.h5": NOISE}, latency=0.05) as s:
        text = said(program, s)
        assert md5(A[:, 1]) in text and "HDF5's pipeline" not in text, text
        assert len(ours(s)) == 24 and s.most > 8, (s.most, ours(s))
        s.asked.clear()
        text = said(program, s, selection="()")
        assert md5(A) in text and "HDF5's pipeline" not in text, text
        assert len(ours(s)) == 4, ours(s)
        few = said(program, s, selection="(0, 1)")
        assert md5(A[0, 1]) in few and "1 of 48 chunks come sooner" in few, few


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_lines_of_the_page(program):
    page = (ROOT / "docs/arrays.md").read_text()
    lines = re.search(r"^(>>> with h5py.*ros3.*\n(?:[.]{3} .*\n)+)", page, re.MULTILINE)[1]
    with server({"archive/ocean.h5": NOISE}) as s:
        lines = re.sub("^(>>>|[.]{3}) ", "", lines, flags=re.MULTILINE)
        lines = lines.replace("https://data.example.org", s.url("")[:-1])
        text = said(program, s, code=f"import hashlib, h5py, h5z_gpu\n{lines}print(hashlib.md5(field).hexdigest())")
        assert md5(A) in text and len(ours(s)) == 4, text


def test_xarray_s_engine():
    code = """
import sys, hashlib, xarray, h5z_gpu.backend
with xarray.open_dataset(sys.argv[1], engine=h5z_gpu.backend.Engine, driver="ros3", phony_dims="sort") as d:
    print(hashlib.md5(d.v.values).hexdigest())
"""
    with server({"bucket/a.h5": NOISE}) as s:
        text = said("2.1", s, code=code)
        assert md5(A) in text and len(ours(s)) == 4, text


def test_names_of_a_store():
    with server({"bucket/sub%20dir/a.h5": NOISE, "bucket/a.h5": NOISE}) as s:
        text = said("2.1", s, url="s3://bucket/sub%20dir/a.h5")
        assert md5(A[:, 1]) in text and "HDF5's pipeline" not in text and ours(s), text
        s.asked.clear()
        text = said("1.10", s, AWS_ENDPOINT_URL="http://elsewhere")
        assert md5(A[:, 1]) in text and "pipeline: AWS_ENDPOINT_URL is http://elsewhere" in text, text
        proxy = "import os; os.environ['http_proxy'] = 'http://127.0.0.1:9'; plan = "  # HDF5 has found its server
        text = said("2.1", s, code=READS.replace("plan = ", proxy))
        assert md5(A[:, 1]) in text and "pipeline: there is a proxy for http" in text, text
        assert not ours(s)


@pytest.mark.parametrize("program", PROGRAMS)
def test_keys_are_for_hdf5(program):
    with server({"bucket/a.h5": NOISE}) as s:
        text = said(program, s, how="dict(aws_region=b'us-east-1', secret_id=b'who', secret_key=b'secret')")
        assert md5(A[:, 1]) in text and "by which HDF5 signs its requests" in text and not ours(s), text
        assert any("Credential=who" in headers.get("Authorization", "") for *_, headers in s.asked)


@pytest.mark.parametrize("program", PROGRAMS)
def test_where_addresses_begin(program, tmp_path):
    """Behind a user block, where versions of HDF5 count otherwise; and in pages, of which HDF5 keeps a buffer."""
    for kind in ({"userblock_size": 512}, {"fs_strategy": "page", "fs_page_size": 1 << 16}):
        with h5py.File(tmp_path / "a.h5", "w", **kind) as f:
            f.create_dataset("v", data=A, chunks=(1, 1, 80_000), **h5z_gpu.Lossless())
        with server({"bucket/a.h5": (tmp_path / "a.h5").read_bytes()}) as s:
            text = said(program, s)
            assert md5(A[:, 1]) in text and "HDF5's pipeline" not in text and ours(s), text
            assert "userblock_size" in kind or program == "1.10" or "page buffer 67108864" in text, text


def only_ours(fault):
    return lambda handler, *asked: "Accept-Encoding" in handler.headers and (fault(handler, *asked), True)[1]


FAULTS = {
    "the server answers 403": answered(403, nothing), "the server answers 503": answered(503, nothing),
    "the server answers 302": answered(302, nothing, Location="/bucket/b.h5"),
    "the server answers 200": answered(200, lambda data, first, end: data),
    "the server gives bytes 0-9/10": answered(range="bytes 0-9/10"),
    "the server gives bytes": answered(told=lambda data, first, end: data[first : end - 1]),
    "IncompleteRead": answered(told=lambda data, first, end: data[first : end - 1],
                               says=lambda first, end: end - first),
    "Remote end closed connection": reset,
}


@pytest.mark.parametrize("why", FAULTS)
def test_hdf5_reads_where_the_server_does_not_answer_us(why):
    with server({"bucket/a.h5": NOISE}) as s:
        s.fault = only_ours(FAULTS[why])
        text = said(list(PROGRAMS)[list(FAULTS).index(why) % 2], s)
        assert md5(A[:, 1]) in text and f"HDF5's pipeline: {s.url('bucket/a.h5')}: {why}" in text, text


def test_a_connection_that_the_server_closes_after_each_answer():
    """And does not say so: the next request on it fails, and is made again on another."""
    def closing(handler, *asked):
        answered()(handler, *asked)
        handler.close_connection = True

    with server({"bucket/a.h5": NOISE}, latency=0.02) as s:
        s.fault = only_ours(closing)
        text = said("1.10", s, code="import h5z_gpu.remote\nh5z_gpu.remote._AT_ONCE = 2\n" + READS)
        assert md5(A[:, 1]) in text and "HDF5's pipeline" not in text and len(ours(s)) == 24, text


def test_a_file_that_changes_meanwhile():
    def changing(handler, first, end, data):
        handler.server.version += first > len(data) // 2

    with server({"bucket/a.h5": NOISE}) as s:
        s.fault = changing
        text = said("1.10", s)
        assert "OSError: h5z-gpu: " in text and "has changed on the server while it was read" in text, text
