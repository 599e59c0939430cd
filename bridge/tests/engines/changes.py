#!/usr/bin/env python3
"""What is switched on while an engine runs reaches its model in the next turn.

    changes.py BINARY [ENGINE…]

For each engine, in a throw-away HOME, with a bridge of its own in which the server `file-utils` is off:

 1. connect the engine with BINARY, and start it once, in the form that takes several turns (see ENGINES);
 2. take a turn: the model is offered tools of the bridge, and not `count_lines`;
 3. switch `file-utils` on from a second process, and wait until the engine has been told, and a little for it to list
    the tools again, which some do only as the next turn begins;
 4. take a turn in the same session: the model is offered `count_lines`. An engine that was answered a millisecond ago
    may not have taken it up yet, so there are up to three more turns, half a second apart.

Between the engine and the bridge, a relay reads along. One JSON verdict a line:

    {"engine", "ok", "before": [tools of the bridge in turn 1], "after": [… in the last turn], "turns": how many there
     were, "told": [over what the engine heard that its list is out of date: "GET" or "subscriptions/listen"], "secs"}

A verdict that is not ok also holds "error", if there was one, and the end of what the engine printed ("stderr").

Exit codes: 0 all ok; 1 not. The engines are those of setup.sh, in ENGINES_DIR. Needs Linux and the right to make a
network namespace, in which nothing but loopback is. The standard library only.
"""

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import drive

SERVER, TOOL = "file-utils", "count_lines"
# Seconds that an engine may take for all of it, until it is told of a change (the bridge looks once a second for what
# was switched), and to list again before the next turn.
RUN, TOLD, LISTED = 180, 15, 2


# ---------------------------------------------------------------- the wire


class Relay:
    """Passes bytes between an engine and the bridge unchanged, and keeps them."""

    def __init__(self, port):
        self.port = port
        self.news = threading.Condition()
        self.connections = []  # of each: what the engine sent, what it got
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                engine, _ = self.server.accept()
            except OSError:
                return  # closed
            try:
                bridge = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                engine.close()
                continue  # the bridge has ended
            sent, got = bytearray(), bytearray()
            self.connections.append((sent, got))
            for ends in ((engine, bridge, sent), (bridge, engine, got)):
                threading.Thread(target=self.pass_on, args=ends, daemon=True).start()

    def pass_on(self, source, sink, kept):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
                with self.news:
                    kept += data
                    self.news.notify_all()
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # one of them hung up

    def listed(self):
        """Whether the engine has been answered with a list that has the tool."""
        return any(b'"name":"%s"' % TOOL.encode() in got for _, got in self.connections)

    def told(self):
        """Over which requests the engine heard that the list has changed."""
        heard = [sent for sent, got in self.connections if b'"notifications/tools/list_changed"' in got]
        last = [re.findall(rb"(GET|POST) /mcp|(subscriptions/listen)", sent)[-1] for sent in heard]
        return [b"".join(request).decode() for request in last]

    def wait_until(self, condition, seconds):
        with self.news:
            return self.news.wait_for(condition, seconds)


# ---------------------------------------------------------------- the engines
# Each begins a session in a running engine, and returns what takes a turn of it.


class Pipe:
    """JSON, a message a line, over the standard streams of an engine."""

    def __init__(self, process, work):
        self.process, self.work, self.calls = process, work, 0

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def until(self, wanted):
        """The first message that is wanted."""
        for line in self.process.stdout:
            if line.startswith("{") and wanted(message := json.loads(line)):
                return message
        raise EOFError("the engine ended, or took too long")

    def call(self, method, **params):
        """The result of a call in JSON-RPC."""
        self.calls += 1
        call = self.calls
        self.send(dict(jsonrpc="2.0", id=call, method=method, params=params))
        answer = self.until(lambda m: m.get("id") == call and "method" not in m)
        if "error" in answer:
            raise RuntimeError("%s: %s" % (method, answer["error"]))
        return answer["result"]


def text(words):
    return [dict(type="text", text=words)]


def stream_json(pipe):
    def turn(words):
        pipe.send(dict(type="user", message=dict(role="user", content=text(words))))
        pipe.until(lambda m: m.get("type") == "result")

    return turn


def acp(pipe):
    pipe.call("initialize", protocolVersion=1, clientCapabilities={}, clientInfo=dict(name="changes", version="1"))
    session = pipe.call("session/new", cwd=pipe.work, mcpServers=[])["sessionId"]
    return lambda words: pipe.call("session/prompt", sessionId=session, prompt=text(words))


def opencode_server(pipe):
    url = next(m[0] for m in map(re.compile(r"http://[\d.:]+").search, pipe.process.stdout) if m)

    def post(path, **body):
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(url + path, json.dumps(body).encode(), headers, method="POST")
        return json.load(urllib.request.urlopen(request, timeout=RUN))

    session = post("/session")["id"]
    return lambda words: post(f"/session/{session}/message", parts=text(words))


def codex_app_server(pipe):
    pipe.call("initialize", clientInfo=dict(name="changes", title="changes", version="1"))
    pipe.send(dict(method="initialized"))
    thread = pipe.call("thread/start", cwd=pipe.work)["thread"]["id"]

    def turn(words):
        pipe.call("turn/start", threadId=thread, input=text(words))
        pipe.until(lambda m: m.get("method") == "turn/completed")

    return turn


def pi_rpc(pipe):
    def turn(words):
        pipe.send(dict(type="prompt", message=words))
        pipe.until(lambda m: m.get("type") == "agent_end")

    return turn


STREAM_JSON = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
ENGINES = {
    "claude": (STREAM_JSON, stream_json),
    "copilot": (["--acp"], acp),
    "opencode": (["serve"], opencode_server),
    "gemini": (["--skip-trust", "--acp"], acp),
    "pi": (["--mode", "rpc", "--provider", "stub", "--model", "stub-model"], pi_rpc),
    # Codex heeds what it is told only with --enable mcp_tool_list_changed, which is under development.
    "codex": (["app-server"], codex_app_server),
}
USUAL = [engine for engine in ENGINES if engine != "codex"]


# ---------------------------------------------------------------- running


def start_bridge(binary, data, log):
    """A bridge on a free port of the loopback: (process, port)."""
    port = drive.free_port()
    with open(log, "w") as f:
        bridge = subprocess.Popen(
            [binary, "serve", "--data", data, "--listen", f"127.0.0.1:{port}"],
            stdin=subprocess.DEVNULL,
            stdout=f,
            stderr=subprocess.STDOUT,
        )
    for _ in range(100):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2)
            return bridge, port
        except OSError:
            time.sleep(0.1)
    end(bridge)
    with open(log) as f:
        sys.exit("the bridge did not start: " + f.read())


def end(process):
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def take_turns(engine, command, env, work, log, errors, between):
    """What one process of the engine offered its model of the bridge, in each turn; `between` comes after the first."""
    arguments, begin = ENGINES[engine]
    process = subprocess.Popen(
        command + arguments, cwd=work, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
    )
    limit = threading.Timer(RUN, process.kill)
    limit.start()
    offered = []
    try:
        turn = begin(Pipe(process, work))
        seen = 0
        for words in ("one", "two", "three", "four", "five"):
            turn(words)
            requests = drive.requests_of(log)
            offered.append(sorted({name for r in requests[seen:] for name in r["tools"] if "clopen" in name}))
            seen = len(requests)
            if len(offered) == 1:
                between()
            elif has_tool(offered[-1]):
                break
            else:
                time.sleep(0.5)
    finally:
        limit.cancel()
        end(process)
    return offered


def has_tool(names):
    return any(TOOL in name for name in names)


def check(engine, binary):
    top = tempfile.mkdtemp(prefix="changes-")
    home, work, data = (os.path.join(top, name) for name in ("home", "work", "data"))
    os.makedirs(home)
    os.makedirs(work)
    log, errors = (os.path.join(top, name) for name in ("model.jsonl", "engine.log"))

    def run(*arguments, **options):
        command = [binary, *arguments, "--data", data]
        p = subprocess.run(command, capture_output=True, text=True, **options)
        if p.returncode:
            raise RuntimeError("%s: %s" % (" ".join(command), p.stderr))
        return p.stdout

    started = time.time()
    verdict = dict(engine=engine, ok=False, before=[], after=[])
    run("servers", "disable", SERVER)
    bridge, port = start_bridge(binary, data, os.path.join(top, "bridge.log"))
    model, model_url = drive.start_model(log)
    relay = Relay(port)

    def switch():
        if relay.listed():
            raise RuntimeError(f"`{TOOL}` is listed while `{SERVER}` is off")
        run("servers", "enable", SERVER)
        if relay.wait_until(relay.told, TOLD):
            relay.wait_until(relay.listed, LISTED)

    try:
        token = run("tokens", "create", "engines").strip()
        env = drive.environment(home, token)
        _, engine_env, _ = drive.ENGINES[engine](drive.Run(home, model_url, TOOL, {}))
        run("connect", engine, "--listen", relay.address, cwd=work, env=env)
        drive.set_plan(model_url, [])
        with open(errors, "w") as f:
            offered = take_turns(engine, drive.BINS[engine], {**env, **engine_env}, work, log, f, switch)
        before, after = offered[0], offered[-1]
        ok = bool(before) and not has_tool(before) and has_tool(after)
        verdict.update(ok=ok, before=before, after=after, turns=len(offered))
    except (OSError, EOFError, RuntimeError, StopIteration, ValueError) as e:
        verdict.update(error=repr(e))
    finally:
        end(model)
        end(bridge)
        relay.server.close()
        drive.end_leftovers(home)
    verdict.update(told=relay.told(), secs=round(time.time() - started, 1))
    if not verdict["ok"] and os.path.exists(errors):
        with open(errors) as f:
            verdict.update(stderr=f.read()[-600:])
    shutil.rmtree(top, ignore_errors=True)
    return verdict


def main():
    if "FENCED" not in os.environ:
        os.execvpe("unshare", ["unshare", "-n", sys.executable, *sys.argv], {**os.environ, "FENCED": "1"})
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("binary", help="the bridge")
    known = "one of %s; all but Codex unless given" % ", ".join(ENGINES)
    ap.add_argument("engines", nargs="*", metavar="ENGINE", help=known)
    a = ap.parse_args()
    for engine in a.engines:
        if engine not in ENGINES:
            ap.error(f"no such engine: {engine}")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

    ok = True
    for engine in a.engines or USUAL:
        verdict = check(engine, os.path.realpath(a.binary))
        print(json.dumps(verdict), flush=True)
        ok = ok and verdict["ok"]
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
