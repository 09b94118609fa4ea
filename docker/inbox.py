"""Prints what notify sends: the message of each POST, as JSON or text."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Inbox(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        print(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode("utf-8", "replace"), flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Only messages are printed."""


if __name__ == "__main__":
    ThreadingHTTPServer(("", 8080), Inbox).serve_forever()
