#!/usr/bin/env python3
"""round_robin.py BINARY POSTGRES_URL: runs MCP's official conformance suite against two processes of the server BINARY
that share one PostgreSQL database, behind a proxy that sends each request to the next process.

The database may be used for nothing else. What check.py expects of one process is expected of both together, but for PINNED.
"""
import collections, http.client, http.server, itertools, os, subprocess, sys, tempfile, threading
import check

# What a client sends and hears outside of its request is at the process that the request came to: a question of the server's
# is answered to the process that asks, so that whoever balances the load must pin sessions. 2026-07-28 has no such thing.
QUESTION = "the server asks on the stream of one process, and the answer must come to the same one"
PINNED = {
    "tools-call-sampling": QUESTION,
    "tools-call-elicitation": QUESTION,
    "elicitation-sep1034-defaults": QUESTION,
    "elicitation-sep1330-enums": QUESTION,
}
# The versions with sessions.
SESSIONS = {"2025-06-18", "2025-11-25"}
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "proxy-authorization", "proxy-authenticate"}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # Clients hang up as they like.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Proxy(http.server.BaseHTTPRequestHandler):
    """Sends each request to the next server, and every piece of the answer on as it comes."""

    protocol_version = "HTTP/1.1"
    servers = None
    seen = collections.Counter()

    def forward(self):
        host = next(self.servers)
        self.seen[host] += 1
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        server = http.client.HTTPConnection(host)
        try:
            server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in HOP_BY_HOP:
                    server.putheader(name, value)
            server.endheaders(body or None)
            answer = server.getresponse()
            self.send_response_only(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            has_body = answer.status not in (204, 304)
            chunked = has_body and answer.getheader("Content-Length") is None
            if chunked:
                self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while has_body and (piece := answer.read1(65536)):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
                self.wfile.flush()
            if chunked:
                self.wfile.write(b"0\r\n\r\n")
        except (ConnectionError, http.client.HTTPException):
            # One of both ends has hung up.
            self.close_connection = True
        finally:
            server.close()

    do_GET = do_POST = do_DELETE = do_OPTIONS = do_PUT = do_PATCH = do_HEAD = forward

    def log_message(self, *_):
        pass


def is_pinned(run, name):
    return name in PINNED and run.removeprefix("requirements-") in SESSIONS


def main():
    binary, postgres = sys.argv[1:]
    os.environ["CLOPEN_MCP_DATABASE_URL"] = postgres
    with tempfile.TemporaryDirectory() as folder:
        started = [check.start(binary, f"{folder}/data-{name}") for name in ("one", "other")]
        drains = [subprocess.Popen(["cat"], stdin=server.stderr, stdout=subprocess.DEVNULL) for server, _ in started]
        Proxy.servers = itertools.cycle([url.split("/")[2] for _, url in started])
        proxy = Server(("127.0.0.1", 0), Proxy)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            outcome = check.run(f"http://127.0.0.1:{proxy.server_port}/mcp", folder, is_pinned)
        finally:
            for server, _ in started:
                server.terminate()
            for process in [server for server, _ in started] + drains:
                process.wait(timeout=30)
    print("requests by process:", *Proxy.seen.values())
    print("taken as passed, since their sessions must be pinned to a process:", *sorted(PINNED))
    check.report("conformance of two processes", *outcome)


if __name__ == "__main__":
    main()
