# SPDX-License-Identifier: MIT OR Apache-2.0
"""A web server of this machine for files: ranges of bytes, a latency for each request, and a list of what was asked."""
import contextlib
import http.server
import re
import threading
import time


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, files, latency=0.0):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.latency, self.version = files, latency, 1
        self.asked, self.now, self.most = [], 0, 0
        self.lock = threading.Lock()
        self.refuse = self.cut = None  # whether a range is answered by an error, or ends early
        self.fault = None  # answers a range instead: a function of the handler, the range, and all bytes of the file

    def url(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"

    @contextlib.contextmanager
    def counted(self):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            yield
        finally:
            with self.lock:
                self.now -= 1


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or an answer's bytes wait 40 ms for what acknowledges its header

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        with self.server.counted():
            self.answer(True)

    def answer(self, body):
        data = self.server.files.get(self.path[1:])
        if data is None:
            self.send_error(404)
            return
        time.sleep(self.server.latency)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        end = len(data) - 1
        first, last = (int(asked[1]), min(int(asked[2] or end), end)) if asked else (0, end)
        if body:
            self.server.asked.append((first, last + 1, dict(self.headers)))
        if first >= len(data):
            self.send_error(416)
            return
        if body and self.server.refuse and self.server.refuse(first, last + 1):
            self.send_error(503)
            return
        if body and self.server.cut and self.server.cut(first, last + 1):
            last = (first + last) // 2
        if body and self.server.fault and self.server.fault(self, first, last + 1, data):
            return
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{self.server.version}"')
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        if body:
            self.wfile.write(memoryview(data)[first : last + 1])

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def server(files, latency=0.0):
    """Serves files: a mapping from names to bytes."""
    with Server(files, latency) as s:
        thread = threading.Thread(target=s.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield s
        finally:
            s.shutdown()
            thread.join()
