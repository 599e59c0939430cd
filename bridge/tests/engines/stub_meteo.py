#!/usr/bin/env python3
"""Stand in for Open-Meteo on a port of the loopback: 21.5 degrees, everywhere.   stub_meteo.py PORT"""

import http.server
import json
import sys

ANSWER = {"current_units": {"temperature_2m": "°C"}, "current": {"time": "2026-11-30T12:00", "temperature_2m": 21.5}}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
