#!/usr/bin/env python3
"""Python's own web server, with TLS and ranges: what stores of https:// are tested against.

    web_server.py FOLDER CERTIFICATE KEY PORT_FILE

Serves FOLDER at a free port of 127.0.0.1, whose number it writes to PORT_FILE.
"""

import http.server
import os
import re
import ssl
import sys


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):  # noqa: N802, its name is the protocol's
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        path = self.translate_path(self.path)
        if wanted is None or not os.path.isfile(path):
            return super().do_GET()
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            first, last = int(wanted[1]), min(int(wanted[2]), status.st_size - 1)
            if first > last:
                return self.send_error(416)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{status.st_size}")
            self.send_header("Content-Length", str(last - first + 1))
            self.send_header("Last-Modified", self.date_time_string(status.st_mtime))
            self.end_headers()
            file.seek(first)
            self.wfile.write(file.read(last - first + 1))
        return None


def main():
    folder, certificate, key, port_file = sys.argv[1:]
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *arguments: Handler(*arguments, directory=folder))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    # Each connection's own thread shakes hands.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with open(port_file + ".new", "w") as file:
        file.write(str(server.server_port))
    os.rename(port_file + ".new", port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
