"""A service that takes payments and knows nothing of idempotency.

    python3 service.py PORT LEDGER

POST /charges works for a moment, appends a line to the ledger and answers 201.
GET /charges says how many lines there are. Port 0 takes a free one.
"""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORK_SECONDS = 0.2
ledger_lock = threading.Lock()


class Charges(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/charges":
            return self.answer(404, {"error": "not found"})
        try:
            amount = json.loads(body)["amount"]
        except (ValueError, KeyError, TypeError):
            return self.answer(400, {"error": "want an amount"})
        time.sleep(WORK_SECONDS)
        number = charge(amount)
        self.answer(201, {"number": number, "amount": amount}, Location=f"/charges/{number}")

    def do_GET(self):
        if self.path != "/charges":
            return self.answer(404, {"error": "not found"})
        with ledger_lock:
            self.answer(200, {"charges": len(lines())})

    def answer(self, status, content, **headers):
        body = json.dumps(content).encode() + b"\n"
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def charge(amount):
    with ledger_lock:
        number = len(lines()) + 1
        with open(LEDGER, "a") as ledger:
            ledger.write(f"{number} {json.dumps(amount)}\n")
        return number


def lines():
    try:
        with open(LEDGER) as ledger:
            return ledger.readlines()
    except FileNotFoundError:
        return []


if __name__ == "__main__":
    PORT, LEDGER = int(sys.argv[1]), sys.argv[2]
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Charges)
    print(f"service: http://127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
