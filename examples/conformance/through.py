#!/usr/bin/env python3
"""through.py BRIDGE BINARY: runs MCP's official conformance suite through BRIDGE, which serves the server BINARY as an
external one, once with 2026-07-28 between them and once with sessions. What check.py expects of BINARY itself is expected
through the bridge, but for WITH_SESSIONS.
"""
import contextlib, pathlib, sqlite3, subprocess, sys, tempfile
import check

# What a client without sessions can't have of a server with them.
NAMES = "the server asks while it works, so that its questions have no names of its own"
NO_TASKS = "tasks came with 2026-07-28"
DECLARED = "the server says that it can't ask, and not by which error"
WITH_SESSIONS = {
    "input-required-result-basic-elicitation": NAMES,
    "input-required-result-ignore-extra-params": NAMES,
    "input-required-result-multiple-input-requests": "the server asks one question after the other",
    "server-stateless": DECLARED,
    "tasks-": NO_TASKS,
}


@contextlib.contextmanager
def served(binary, data):
    server, url = check.start(binary, data)
    # The server writes into a pipe that somebody must read.
    drain = subprocess.Popen(["cat"], stdin=server.stderr, stdout=subprocess.DEVNULL)
    try:
        yield url
    finally:
        server.terminate()
        server.wait(timeout=30)
        drain.wait(timeout=30)


def speak_with_sessions(data):
    """Has the bridge remember that the server speaks with sessions, which it then doesn't find out anew."""
    with contextlib.closing(sqlite3.connect(next(pathlib.Path(data).glob("*.sqlite*")))) as database, database:
        changed = database.execute("""UPDATE external_servers SET listed = replace(listed, '"is_modern":true', '"is_modern":false')""")
        assert changed.rowcount == 1


def run(bridge, binary, folder, sessions):
    data = f"{folder}/bridge"
    with served(binary, f"{folder}/server") as server:
        subprocess.run([bridge, "--data", data, "servers", "add", "fixture", "--url", server], check=True)
        if sessions:
            speak_with_sessions(data)
        with served(bridge, data) as url:
            def excused(_, name):
                return sessions and any(name.startswith(it) for it in WITH_SESSIONS)
            return check.run(url.replace("/mcp", "/mcp/ext/fixture"), folder, excused)


def main():
    failed = False
    for sessions in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            outcome = run(sys.argv[1], sys.argv[2], folder, sessions)
        try:
            check.report(f"conformance through a bridge, {'with' if sessions else 'without'} sessions behind it", *outcome)
        except SystemExit as ended:
            failed |= bool(ended.code)
    sys.exit(failed)


main()
