# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files on a web server or in an object store that HDF5 reads by its driver ROS3, as `h5py.File("https://…")` does.

HDF5 asks for one chunk after the other. Here many threads ask for ranges of bytes by the file's URL, each on a
connection that the next range takes over. Only what anybody may read is read so: HDF5 signs requests, and is left to.
Wherever a server does not answer as HDF5's view of the file says, HDF5 reads too. Only a file that changes meanwhile is
an error, for its chunks would be of two versions.
"""
from __future__ import annotations

import http.client
import os
import ssl
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from .transfer import OtherWay

if TYPE_CHECKING:
    import h5py

_TIMEOUT = 60  # seconds without a byte, then HDF5 is asked


class UrlFile:
    """Such a file: `fetch` for threads, and what an object needs for a library to read it.

    Without a `__dict__` it is nothing to `remote.watched`: HDF5 does not read through it.
    """

    __slots__ = ("_context", "_idle", "_path", "_place", "_server", "_tag", "size", "url")

    def __init__(self, dataset: h5py.Dataset) -> None:
        self._place, self._idle, self._tag = 0, list[http.client.HTTPConnection](), dict[str, object]()
        self.url, self.size = dataset.file.filename, dataset.file.id.get_filesize()

    def open(self, dataset: h5py.Dataset) -> None:
        """Finds the server. Raises OtherWay for a file that is HDF5's to read."""
        driver = dataset.file.id.get_access_plist().get_fapl_ros3()
        if driver["authenticate"]:
            raise OtherWay("the file is opened with keys, by which HDF5 signs its requests")
        parts = urlsplit(_address(self.url, driver["aws_region"].decode()))
        if {parts.scheme, "all"} & urllib.request.getproxies().keys() and not urllib.request.proxy_bypass(parts.netloc):
            raise OtherWay(f"there is a proxy for {parts.scheme}")
        self._server, self._path = parts.netloc, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._context = ssl.create_default_context() if parts.scheme == "https" else None

    def __del__(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def fetch(self, at: int, end: int) -> bytes:
        """Bytes of the file, as many as there are; any thread may ask. Raises OtherWay where they do not come."""
        end = min(end, self.size)
        while end > at:
            try:
                connection, fresh = self._idle.pop(), False
            except IndexError:
                connection, fresh = self._connect(), True
            try:
                connection.request("GET", self._path, headers={"Range": f"bytes={at}-{end - 1}"})
                answer = connection.getresponse()
                self._check(answer, at, end)
                found = answer.read()
            except (OSError, ValueError, http.client.HTTPException) as error:
                connection.close()
                if fresh or isinstance(error, TimeoutError):
                    raise OtherWay(f"{self.url}: {error or type(error).__name__}") from error
                # The server closes connections that it has not been asked on for a while.
            except BaseException:
                connection.close()
                raise
            else:
                self._idle.append(connection)
                self._check_version(answer)
                return found
        return b""

    def _connect(self) -> http.client.HTTPConnection:
        try:
            if self._context:
                return http.client.HTTPSConnection(self._server, timeout=_TIMEOUT, context=self._context)
            return http.client.HTTPConnection(self._server, timeout=_TIMEOUT)
        except http.client.InvalidURL as error:
            raise OtherWay(f"{self.url}: {error}") from error

    def _check(self, answer: http.client.HTTPResponse, at: int, end: int) -> None:
        """Raises OtherWay before the body of anything else than this range is read."""
        wanted = f"bytes {at}-{end - 1}/{self.size}"
        if answer.status != 206:
            raise OtherWay(f"{self.url}: the server answers {answer.status} {answer.reason} where a range is asked for")
        if answer.headers["Content-Range"] != wanted or (answer.length or 0) != end - at:
            raise OtherWay(f"{self.url}: the server gives {answer.headers['Content-Range']} for {wanted}")

    def _check_version(self, answer: http.client.HTTPResponse) -> None:
        tag = answer.headers["ETag"] or answer.headers["Last-Modified"]
        if self._tag.setdefault("first", tag) != tag:
            raise OSError(f"h5z-gpu: {self.url} has changed on the server while it was read: open it again")

    # --- for the library, which reads some chunks to learn where addresses begin -------------------------------------

    def seek(self, place: int, whence: int = 0) -> None:
        self._place = self.size + place if whence else place

    def tell(self) -> int:
        return self._place

    def read(self, n: int) -> bytes:
        return self.fetch(self._place, self._place + n)


def _address(url: str, region: str) -> str:
    """Where HDF5 finds the file: s3:// and the environment's endpoint are words of HDF5 2.0."""
    environ, parts = os.environ, urlsplit(url)
    endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
    if parts.scheme != "s3":
        if endpoint and not url.startswith(endpoint):
            raise OtherWay(f"AWS_ENDPOINT_URL is {endpoint}")
        return url
    region = region or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or ""
    if not endpoint and not region:
        raise OtherWay("the region is in AWS's configuration file")
    return f"{endpoint or f'https://s3.{region}.amazonaws.com'}/{parts.netloc}{parts.path}"
