"""put_server.py PORT: a server for the tests of uploads. server.py in the current directory defines
answer(headers, path, body, number), which returns a status and a dictionary of headers. For
status 0, the server never answers. head(path) does the same for HEAD; without it, HEAD is
answered with 501."""
import http.server
import sys
import time

exec(open("server.py", encoding="utf-8").read())


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    number = 0

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Handler.number += 1
        print(self.path, flush=True)
        status, headers = answer(self.headers, self.path, body, Handler.number)  # noqa: F821
        while not status:
            time.sleep(1)
        self.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def do_HEAD(self):
        print("HEAD", self.path, flush=True)
        if "head" not in globals():
            self.send_error(501)
            return
        status, headers = head(self.path)  # noqa: F821
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *words):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
