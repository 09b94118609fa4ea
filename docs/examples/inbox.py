"""Prints each message that it receives: use it instead of a chat while you try alerts on one machine."""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Inbox(BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        print(message["title"], message["body"], "", sep="\n", flush=True)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


HTTPServer((sys.argv[1] if sys.argv[1:] else "127.0.0.1", 8085), Inbox).serve_forever()
