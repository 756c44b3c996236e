"""A part of a demo for tests: answers /healthz on the port it is given.

``--deaf`` ignores requests to end; ``--fail`` ends at once.
"""

from __future__ import annotations

import http.server
import os
import signal
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = os.environ.get("WEB_URL", "").encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


if "--fail" in sys.argv:
    sys.exit("this part cannot start")
if "--deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
http.server.ThreadingHTTPServer.allow_reuse_address = True
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
