#!/usr/bin/env python3
"""external.py BINARY [ENGINE…]: every engine calls a tool of a real external server, which comes among the tools of the
bridge, and from an entry of its own; and an entry of a server that is gone keeps no engine from the others.

Needs what setup.sh here and in bridge/tests/real fetch. One JSON verdict a line (see drive.py), with the way in which the
server came; the exit code is 1 if any is not ok.
"""
import json, pathlib, subprocess, sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "real")]
import drive
import real

SERVER = "everything"
THEIRS = ("--tool", "echo", "--args", '{"message": "hello"}', "--expect", "Echo: hello", "--approve")
# Without a person, Continue stops at the first server that doesn't answer.
STOPS = {"continue"}
OURS = ("--tool", "list_services", "--args", "{}", "--expect", ".", "--approve")


def run(engine, way, bridge, server, *options, data="data"):
    """The verdict on one engine that calls a tool of a server."""
    connect = f"{bridge.binary} connect {{engine}} --external {way} --url {bridge.url} --data {bridge.folder}/{data}"
    said = subprocess.run(
        [sys.executable, HERE / "drive.py", "--engine", engine, "--connect", connect, "--token", bridge.token,
         "--server", server, *options],
        capture_output=True, text=True,
    )
    verdict = {"way": way, **json.loads(said.stdout)}
    print(json.dumps(verdict), flush=True)
    return verdict


def main():
    engines = sys.argv[2:] or list(drive.ENGINES)
    wrong = 0
    with real.bridge(sys.argv[1]) as bridge:
        with real.registry(bridge):
            real.add(bridge, SERVER, {})
        bridge.start()
        # The bridge doesn't have this one, as if it had been removed after the engine was connected.
        bridge.run("servers", "add", "gone", "--url", "http://127.0.0.1:1/mcp", "--data", str(bridge.folder / "other"))
        for engine in engines:
            merged = run(engine, "merged", bridge, "clopen-mcp", *THEIRS)
            each = run(engine, "each", bridge, SERVER, *THEIRS)
            gone = run(engine, "each", bridge, "clopen-mcp", *OURS, data="other")
            # No tool is there twice, and none is missing.
            as_many = len(merged["offered"]) == len(each["offered"])
            if not as_many:
                print(f"external.py: {engine} has another number of tools", file=sys.stderr)
            goes_on = gone["ok"] or engine in STOPS
            wrong += not (merged["ok"] and each["ok"] and goes_on and as_many)
    print(f"external.py: {len(engines) - wrong} engines reach an external server both ways, {wrong} don't")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
