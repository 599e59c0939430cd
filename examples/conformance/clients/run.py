#!/usr/bin/env python3
"""run.py [CLIENT…] --binary PATH: drives the server of this example with clients that people use, in every version of
the protocol that each speaks, over HTTP with a token and over a pipe.

Each client is a script in this folder that goes through the same story, STORY. It is told the version and the transport,
and finds in its environment MCP_URL and MCP_TOKEN, or the MCP_COMMAND to start. For its structured result it goes to
`clopen-mcp` itself, which MCP_SHIPPED_URL or MCP_SHIPPED_COMMAND leads to. It writes one JSON list a line: a step and what
came of it, `passed`, `failed: …`, or why the step is left out (LEFT_OUT). The line `["restart", "please"]` asks for a
restart of the server, on the same port and data folder; a line on its standard input says that it is up again.

A client looks at servers, too, with its script that is called `look`: of each server in MCP_LOOK, a JSON list of objects
with `name`, `url` or `command`, and `calls`, it writes one JSON list: the name, and an object with the names of its `tools`
and the first `texts` of what the calls give, or `failed: …`. bridge/tests/real makes use of that.

The clients come from the registries, pinned, into ~/.cache/clopen-mcp/clients (or CLIENTS_DIR). A verdict for each client,
version and transport is printed as one line of JSON.
"""
import argparse, concurrent.futures, contextlib, json, os, pathlib, queue, re, secrets, shutil, subprocess, sys, tempfile, threading, time

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("CLIENTS_DIR", pathlib.Path.home() / ".cache/clopen-mcp/clients"))
NODE = "node@22.23.3"

STORY = [
    "list tools", "plain result", "structured result", "failed result", "arguments in headers", "progress", "elicitation",
    "sampling", "roots", "cancel", "resources", "missing resource", "subscribe", "changes", "prompts", "skills",
    "many calls", "long answer", "restart", "wrong token",
]
LEFT_OUT = {
    "not offered by this client",
    "not in this version of the protocol",
    "not over a pipe",
    "every command is a client of its own",
}
# How long a client may take for its whole story.
PATIENCE = 100


class Client:
    """What it takes to install a client and to start its script."""

    def __init__(self, name, packages, versions, transports=("http", "stdio")):
        self.name, self.packages, self.versions, self.transports = name, packages, versions, transports
        self.folder = CACHE / name

    def is_installed(self):
        """Whether the folder holds the pinned packages; another pin is another text in its file."""
        pins = self.folder / "pins"
        return pins.exists() and pins.read_text() == " ".join(self.packages)

    def install(self):
        if not self.is_installed():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            self.fetch()
            (self.folder / "pins").write_text(" ".join(self.packages))
        self.prepare()

    def prepare(self):
        """What is to do before each run, besides installing."""


class Python(Client):
    def fetch(self):
        subprocess.run([sys.executable, "-m", "venv", self.folder], check=True)
        pip = [self.folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *self.packages]
        subprocess.run(pip, check=True)

    def command(self, script="client"):
        return [self.folder / "bin/python", HERE / f"{self.name}_{script}.py"]


class Node(Client):
    def fetch(self):
        (self.folder / "package.json").write_text('{"private": true}')
        npm = ["npm", "install", "--no-fund", "--no-audit", "--silent", NODE, *self.packages]
        subprocess.run(npm, cwd=self.folder, check=True)

    def prepare(self):
        # Node.js finds packages only next to the script that wants them.
        for script in HERE.glob("*.mjs"):
            shutil.copy(script, self.folder)

    def command(self, script="client"):
        return [self.folder / "node_modules/.bin/node", self.folder / f"{self.name}_{script}.mjs"]


class Rust(Client):
    def is_installed(self):
        return True

    def prepare(self):
        """Builds it with the lock file next to it, into the folder for everything that is built."""
        build = ["cargo", "build", "--quiet", "--locked", "--manifest-path", HERE / self.name / "Cargo.toml"]
        target = os.environ.get("CARGO_TARGET_DIR", CACHE / "target")
        subprocess.run(build, check=True, env=os.environ | {"CARGO_TARGET_DIR": str(target)})
        self.programs = pathlib.Path(target) / "debug"

    def command(self, script="client"):
        return [self.programs / f"rmcp-{script}"]


SESSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
STATELESS = "2026-07-28"
CLIENTS = [
    Python("mcp", ["mcp==2.3.0"], ["2025-11-25", STATELESS]),
    Python("fastmcp", ["fastmcp==4.2.3", "mcp==2.3.0"], ["2025-11-25", STATELESS]),
    Node("typescript1", ["@modelcontextprotocol/sdk@1.32.2"], ["2025-11-25"]),
    Node("typescript2", ["@modelcontextprotocol/client@2.4.0"], [*SESSIONS, STATELESS]),
    Rust("rmcp", ["rmcp=3.11.0"], [*SESSIONS, STATELESS]),
    Node("inspector", ["@modelcontextprotocol/inspector@2.12.0"], ["2025-11-25", STATELESS]),
]


def surroundings():
    """The environment without settings of a bridge that somebody uses."""
    return {name: value for name, value in os.environ.items() if not name.startswith("CLOPEN_MCP_")}


class Server:
    """The server under test, which can be started again where it was."""

    def __init__(self, binary, folder, token):
        folder.mkdir()
        self.binary, self.log, self.token = binary, folder / "log", token
        self.options = ["--data", str(folder / "data"), "--skills", str(HERE.parent / "skills/team")]
        (folder / "three.txt").write_text("one\ntwo\nthree\n")
        # What `count_lines` may read.
        self.environment = {"FILE_UTILS_ROOT": str(folder)}
        self.address = "127.0.0.1:0"
        self.process = None

    def start(self):
        command = [self.binary, *self.options, "--listen", self.address]
        at = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            environment = surroundings() | self.environment | {"CLOPEN_MCP_TOKEN": self.token}
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log, env=environment)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.process.poll() is None:
            found = re.search(r"listens on (http://([^/\s]+)\S*)", self.log.read_bytes()[at:].decode())
            if found:
                self.url, self.address = found[1], found[2]
                return
            time.sleep(0.02)
        raise RuntimeError(f"the server doesn't listen: {self.log.read_text()[-500:]}")

    def command(self):
        """What starts it at a pipe."""
        command = {"command": str(self.binary), "args": ["stdio", *self.options], "env": self.environment}
        return json.dumps(command)

    def written(self):
        return self.log.read_text() if self.log.exists() else ""

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=30)

    def restart(self):
        self.stop()
        self.start()


def lines_of(process):
    """What a process writes, line by line, into a queue that ends with None."""
    lines = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


def told_of_cancelling(*logs):
    """Whether the server knows that the slow call was taken back: it has 5 seconds to hear of it."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        for log in logs:
            if re.search(r"slow_compute.*cancelled", log.read_text() if log.exists() else ""):
                return True
        time.sleep(0.05)
    return False


def drive(client, version, transport, binaries):
    """Lets a client go through the story; the steps with what came of them."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        errors = folder / "errors"
        # The client keeps its own files out of the home folder.
        environment = surroundings() | {"HOME": str(folder), "NO_COLOR": "1", "NO_PROXY": "127.0.0.1"}
        environment |= {"PYTHONDONTWRITEBYTECODE": "1", "FASTMCP_CHECK_FOR_UPDATES": "off"}
        token = secrets.token_hex(32)
        server, shipped = (Server(binary, folder / binary.name, token) for binary in binaries)
        stack.callback(server.stop)
        stack.callback(shipped.stop)
        if transport == "http":
            server.start()
            shipped.start()
            environment |= {"MCP_URL": server.url, "MCP_SHIPPED_URL": shipped.url, "MCP_TOKEN": token}
        else:
            environment |= {"MCP_COMMAND": server.command(), "MCP_SHIPPED_COMMAND": shipped.command()}
        steps = {}
        process = subprocess.Popen(
            [*client.command(), version, transport],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors.open("wb"), text=True, env=environment,
        )
        stack.callback(process.kill)
        lines, deadline = lines_of(process), time.monotonic() + PATIENCE
        try:
            while (line := lines.get(timeout=max(0.0, deadline - time.monotonic()))) is not None:
                step, outcome = json.loads(line)
                if outcome == "please":
                    server.restart()
                    process.stdin.write("restarted\n")
                    process.stdin.flush()
                    continue
                if step == "cancel" and outcome == "passed" and not told_of_cancelling(server.log, errors):
                    outcome = "failed: the server doesn't know of it"
                steps[step] = outcome
            code = process.wait(timeout=20)
            if code:
                steps["ending"] = f"failed: the client ended with {code}: {errors.read_text()[-1500:]}"
        except (queue.Empty, subprocess.TimeoutExpired):
            steps["ending"] = f"failed: the client wasn't done after {PATIENCE} s: {errors.read_text()[-1500:]}"
        except json.JSONDecodeError:
            steps["ending"] = f"failed: the client wrote {line!r}"
        for step in STORY:
            steps.setdefault(step, "failed: nothing was told of it")
        log = server.written() + shipped.written() + errors.read_text()
        if "panicked" in log:
            steps["ending"] = f"failed: something panicked: {log[-1500:]}"
        return steps


def verdict(client, version, transport, binaries):
    began = time.monotonic()
    try:
        steps = drive(client, version, transport, binaries)
    except Exception as error:  # A run that can't be made is a failed one, and the others go on.
        steps = {"ending": f"failed: {type(error).__name__}: {error}"}
    passed = [step for step, outcome in steps.items() if outcome == "passed"]
    left_out = {step: outcome for step, outcome in steps.items() if outcome in LEFT_OUT}
    failed = {step: outcome for step, outcome in steps.items() if step not in passed and step not in left_out}
    return {
        "client": client.name, "pinned": client.packages[0], "version": version, "transport": transport,
        "verdict": "failed" if failed else "passed", "passed": len(passed), "left_out": left_out, "failed": failed,
        "seconds": round(time.monotonic() - began, 1),
    }


def main():
    names = [it.name for it in CLIENTS]
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("clients", nargs="*", metavar="CLIENT", help=", ".join(names))
    arguments.add_argument("--binary", required=True, type=pathlib.Path, help="the program `conformance`")
    arguments.add_argument("--shipped", type=pathlib.Path, help="the program `clopen-mcp` [default: the one next to it]")
    arguments.add_argument("--version", help="only this version of the protocol")
    arguments.add_argument("--transport", choices=["http", "stdio"], help="only this transport")
    given = arguments.parse_args()
    unknown = set(given.clients) - set(names)
    if unknown:
        arguments.error(f"no such client: {', '.join(sorted(unknown))}")
    chosen = [it for it in CLIENTS if it.name in (given.clients or names)]
    for client in chosen:
        client.install()
    runs = [
        (client, version, transport)
        for client in chosen
        for version in client.versions if given.version in (None, version)
        for transport in client.transports if given.transport in (None, transport)
    ]
    binary = given.binary.resolve()
    binaries = [binary, (given.shipped or binary.with_name("clopen-mcp")).resolve()]
    verdicts = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=2 * (os.cpu_count() or 1)) as pool:
        for ended in concurrent.futures.as_completed([pool.submit(verdict, *run, binaries) for run in runs]):
            verdicts.append(ended.result())
            print(json.dumps(ended.result()), flush=True)
    failed = sum(it["verdict"] != "passed" for it in verdicts)
    print(f"clients: {len(verdicts) - failed} passed, {failed} failed")
    sys.exit(1 if failed or not verdicts else 0)


if __name__ == "__main__":
    main()
