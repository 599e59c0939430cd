#!/usr/bin/env python3
"""check.py BINARY: runs MCP's official conformance suite against the server BINARY, in every version of the protocol.

The suite and the Node.js that it needs come from the npm registry, pinned, into ~/.cache/clopen-mcp/conformance (or
CONFORMANCE_DIR). The check fails when a scenario fails or warns, when one is skipped that the suite itself does not always
skip, and when there are fewer or more scenarios than there were.
"""
import collections, json, os, pathlib, re, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("CONFORMANCE_DIR", pathlib.Path.home() / ".cache/clopen-mcp/conformance"))
PACKAGES = ["node@22.23.3", "@modelcontextprotocol/conformance@0.2.0-alpha.12"]
# How many scenarios each run has.
VERSIONS = {"2025-06-18": 27, "2025-11-25": 33, "2026-07-28": 40}
REQUIREMENTS = {"2025-11-25": 33, "2026-07-28": 50}
EXTENSIONS = 13
# What the suite skips whatever a server does.
SKIPPED = {"tasks-status-notifications"}


def install():
    suite = CACHE / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    if not suite.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE / "package.json").write_text('{"private": true}')
        command = ["npm", "install", "--no-fund", "--no-audit", "--silent", *PACKAGES]
        subprocess.run(command, cwd=CACHE, check=True)
    return [str(CACHE / "node_modules/.bin/node"), str(suite)]


def start(binary, data):
    skills = str(HERE / "skills")
    command = [binary, "--no-auth", "--listen", "127.0.0.1:0", "--data", data, "--skills", skills]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        found = re.search(r"listens on (http://\S+)", line)
        if found:
            return server, found[1]
    sys.exit(f"{binary} ended before it listened")


def scenarios(folder):
    """Each scenario's name with what went wrong in it."""
    for file in sorted(pathlib.Path(folder).rglob("checks.json")):
        name = re.sub(r"^server-(.*?)-\d{4}-\d\d-\d\dT.*$", r"\1", file.parent.name)
        checks = json.loads(file.read_text())
        yield name, [c for c in checks if c["status"] in ("FAILURE", "WARNING")], collections.Counter(c["status"] for c in checks)


def run(url, folder, is_excused=lambda run, name: False):
    """Runs everything against a server; returns how many scenarios passed in each run, and what nobody expects."""
    suite = install()
    listed = subprocess.run([*suite, "list", "--server"], capture_output=True, text=True, check=True).stdout
    runs = [(v, ["--suite", "all", "--spec-version", v]) for v in VERSIONS]
    runs += [(f"requirements-{v}", ["--requirements", v]) for v in REQUIREMENTS]
    runs += [("extension", ["--scenario", name]) for name in re.findall(r"- (\S+) \[extension\]", listed)]
    unexpected = []
    passed = collections.Counter()
    for run, arguments in runs:
        out = tempfile.mkdtemp(dir=folder)
        subprocess.run([*suite, "server", "--url", url, *arguments, "-o", out], capture_output=True, timeout=600)
        seen = list(scenarios(out))
        if not seen:
            unexpected.append(f"{run} {arguments}: the suite ran nothing")
        for name, wrong, counts in seen:
            if is_excused(run, name):
                passed[run] += 1
                continue
            if counts["SKIPPED"] and not counts["SUCCESS"] and name not in SKIPPED:
                unexpected.append(f"{run} {name}: skipped")
            elif not wrong:
                passed[run] += 1
            unexpected += [f"{run} {name}: {c['status']} {c['id']}: {(c.get('errorMessage') or '')[:300]}" for c in wrong]
    return passed, unexpected


def report(title, passed, unexpected):
    """Says what came out, and ends."""
    wanted = VERSIONS | {f"requirements-{v}": n for v, n in REQUIREMENTS.items()} | {"extension": EXTENSIONS}
    for run, count in wanted.items():
        print(f"{run}: {passed[run]} of {count} scenarios passed")
        if passed[run] != count:
            unexpected.append(f"{run}: {passed[run]} scenarios passed, and there were {count}")
    print(f"{title}: {sum(passed.values())} passed, {len(unexpected)} failed")
    for line in unexpected:
        print(line, file=sys.stderr)
    sys.exit(1 if unexpected else 0)


def main():
    with tempfile.TemporaryDirectory() as folder:
        server, url = start(sys.argv[1], folder + "/data")
        # The server writes into a pipe that somebody must read.
        drain = subprocess.Popen(["cat"], stdin=server.stderr, stdout=subprocess.DEVNULL)
        try:
            outcome = run(url, folder)
        finally:
            server.terminate()
            server.wait(timeout=30)
            drain.wait(timeout=30)
    report("conformance", *outcome)


if __name__ == "__main__":
    main()
