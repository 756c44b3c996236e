"""A part of a demo for tests: answers /healthz on the port it is given.

``--deaf`` ignores requests to end; ``--fail`` ends at once.
"""

from __future__ import annotations

import http.server
import os
import signal
import sys
from dataclasses import replace


def parts_of(port_base, *options):
    """Return the demo's parts at their own addresses, stand-ins every one."""
    from web.demo.layout import Layout

    return [
        replace(part, command=(__file__, part.place.rpartition(":")[2], *options))
        for part in Layout(port_base).parts()
    ]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = os.environ["DATABASE_URL"].encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def main():
    if "--fail" in sys.argv:
        sys.exit("this part cannot start")
    if "--deaf" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    address = ("127.0.0.1", int(sys.argv[1]))
    http.server.ThreadingHTTPServer(address, Handler).serve_forever()


if __name__ == "__main__":
    main()
