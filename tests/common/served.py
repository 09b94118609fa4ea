"""A server of `ledgerops.common` on a free port, with pages of a test."""

import http.client
import socket
import threading
from collections import Counter
from contextlib import closing

from ledgerops.common.http_access import Access, Rules, tls_contexts
from ledgerops.common.http_handler import Answer
from ledgerops.common.http_server import Server

LOOPBACK = Rules(host="127.0.0.1")


class Served:
    """Answers `ok` to every path but those of `pages`: path -> what makes the body from the request."""

    def __init__(self, rules=LOOPBACK, looks_every=0.5, **options):
        self.refused, self.pages, self.clients = Counter(), {}, []
        self.server = Server(
            (rules.host, 0),
            self.answer,
            Access(rules, "anyone can ask"),
            lambda reason: self.refused.update([reason]),
            tls_contexts(rules),
            **options,
        )
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(looks_every,), daemon=True)
        self.thread.start()

    def answer(self, request):
        page = self.pages.get(request.target)
        return Answer(page(request) if page else b"ok", "text/plain")

    def get(self, path="/", method="GET", context=None, body=None, **headers):
        """Status, headers and body."""
        if context is None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        else:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=context)
        with closing(connection):
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    def opened(self, count=1, source="127.0.0.1"):
        """So many connections on which nothing was sent yet: they last as long as the server."""
        made = [socket.create_connection(("127.0.0.1", self.port), 60, (source, 0)) for _ in range(count)]
        self.clients += made
        return made

    def ask(self, path="/", source="127.0.0.1"):
        """A connection that has asked and whose answer has begun: the connection and its first line."""
        [client] = self.opened(source=source)
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return client, client.recv(15).decode()

    def close(self):
        for client in self.clients:
            client.close()
        self.server.shutdown()
        self.server.server_close()
