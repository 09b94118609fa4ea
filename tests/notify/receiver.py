"""A real receiver on a free port: an HTTP endpoint that may refuse, or a driver that answers /diagnosis."""

import json

from ledgerops.servers.process import free_port
from tests.serving import Background, Quiet


class Receiver:
    """Keeps what it is sent; `refuse` answers that many posts with 503 first."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.got: list[dict] = []
        self.refuse = 0
        self.refused = 0
        self.pages: dict[str, object] = {}
        self.authorization: list[str] = []  # of each GET
        self.got_authorization: list[str] = []  # of each POST that was taken
        self.asked: list[str] = []
        receiver = self

        class Handler(Quiet):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.refused < receiver.refuse:
                    receiver.refused += 1
                    self.reply(503)
                else:
                    receiver.got.append(json.loads(body))
                    receiver.got_authorization.append(self.headers.get("Authorization", ""))
                    self.reply()

            def do_GET(self):
                receiver.asked.append(self.path)
                receiver.authorization.append(self.headers.get("Authorization", ""))
                page = receiver.pages.get(self.path.split("?")[0])
                self.reply(200 if page is not None else 404, json.dumps(page).encode())

        self._server = Background(Handler, host)
        self.url = self._server.url

    def close(self) -> None:
        self._server.close()


class Mailbox:
    """A real SMTP server that keeps the envelopes that it is given."""

    def __init__(self) -> None:
        from aiosmtpd.controller import Controller

        self.got: list = []
        port = free_port()
        self.url = f"mailto://127.0.0.1:{port}?from=ledgerops@example.com&to=oncall@example.com&mode=insecure"
        self._server = Controller(self, hostname="127.0.0.1", port=port, ready_timeout=60)
        self._server.start()

    async def handle_DATA(self, server, session, envelope):
        self.got.append(envelope)
        return "250 OK"

    def close(self) -> None:
        self._server.stop()
