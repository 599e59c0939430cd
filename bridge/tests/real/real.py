"""What run.py and lists.py share: a bridge in an empty home folder, the real servers, and clients that look at servers."""
import contextlib, importlib.util, json, os, pathlib, re, secrets, signal, subprocess, sys, tempfile, threading, time

HERE = pathlib.Path(__file__).resolve().parent
CLIENTS = HERE.parents[2] / "examples/conformance/clients"
FETCHED = pathlib.Path(os.environ.get("REAL_DIR", pathlib.Path.home() / ".cache/clopen-mcp/real"))
SESSIONS, STATELESS = "2025-11-25", "2026-07-28"


def packages():
    """The packages that records.json knows under a name of its own, by name: (npm or pypi, identifier, version)."""
    servers = [it.get("server", it) for it in json.loads((HERE / "records.json").read_text())]
    official = [it for it in servers if it["name"].startswith("io.modelcontextprotocol/")]
    return {
        it["name"].split("/")[1]: tuple(it["packages"][0][key] for key in ("registryType", "identifier", "version"))
        for it in official
    }


NEEDED = ["everything", "filesystem", "memory", "time", "git"]


def commands_that_fetch():
    """What fills the caches of npx and uvx, without starting a server."""
    for name in NEEDED:
        kind, identifier, version = packages()[name]
        if kind == "npm":
            yield ["npx", "-y", f"--package={identifier}@{version}", "-c", "true"]
        else:
            yield ["uvx", "--from", f"{identifier}=={version}", "python", "-V"]


def add(bridge, name, inputs):
    """Installs a server of the registry, with what it wants to know; returns what that prints."""
    given = [f"--set={key}={value}" for key, value in inputs.items()]
    return bridge.run("servers", "add", f"io.modelcontextprotocol/{name}", *given, "--yes")


@contextlib.contextmanager
def registry(bridge):
    """Serves records.json as the only registry that a bridge knows."""
    command = [sys.executable, HERE / "serve.py", HERE / "records.json", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        port = server.stdout.readline().strip()
        (bridge.folder / "clopen-mcp.toml").write_text(f'[registries.official]\nurl = "http://127.0.0.1:{port}"\n')
        yield bridge.run("servers", "sync")
    finally:
        server.terminate()
        server.wait(timeout=10)
        server.stdout.close()


def command(name, arguments=()):
    """What starts a server of records.json."""
    kind, identifier, version = packages()[name]
    return [*(["npx", "-y"] if kind == "npm" else ["uvx"]), f"{identifier}@{version}", *map(str, arguments)]


class Bridge:
    """A bridge with a home folder that holds nothing but the caches of npx and uvx, and no way to a network."""

    def __init__(self, binary, folder):
        self.binary, self.folder, self.token = pathlib.Path(binary).resolve(), folder, secrets.token_hex(32)
        self.home, self.process = folder / "home", None
        (self.home / ".config/uv").mkdir(parents=True)
        (self.home / ".npmrc").write_text("offline = true\nupdate-notifier = false\n")
        (self.home / ".config/uv/uv.toml").write_text("offline = true\n")
        for cache in (".npm", ".cache", ".local"):
            if (FETCHED / "home" / cache).exists():
                (self.home / cache).symlink_to(FETCHED / "home" / cache)
        self.environment = {
            "HOME": str(self.home), "PATH": f"{FETCHED / 'uv/bin'}:{os.environ['PATH']}", "LANG": "C.UTF-8",
            "CLOPEN_MCP_DATA": str(folder / "data"), "CLOPEN_MCP_TOKEN": self.token, "CLOPEN_MCP_LISTEN": "127.0.0.1:0",
        }

    def run(self, *arguments):
        """What a command of the bridge prints, if it works."""
        said = subprocess.run(
            [self.binary, *arguments], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=150,
        )
        if said.returncode:
            raise RuntimeError(f"{' '.join(map(str, arguments))}: {said.stdout}{said.stderr}")
        return said.stdout + said.stderr

    def start(self):
        log = self.folder / "log"
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [self.binary, "serve"], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stderr=file,
            )
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.process.poll() is None:
            if found := re.search(r"listens on (http://\S+)", log.read_text()):
                self.url = found[1]
                return
            time.sleep(0.02)
        raise RuntimeError(f"the bridge doesn't listen: {log.read_text()[-500:]}")

    def log(self):
        return (self.folder / "log").read_text() if self.process else ""

    def servers(self):
        """The processes of its servers, by number: those with its home folder, but for itself."""
        mark, found = f"HOME={self.home}".encode(), {}
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        return {number: command for number, command in found.items() if command and number != self.process.pid}

    def stop(self, how=signal.SIGTERM):
        """Ends the bridge, and says which servers outlive it by more than five seconds."""
        if not self.process:
            return {}
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(timeout=30)
        deadline = time.monotonic() + 5
        while (left := self.servers()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return left


@contextlib.contextmanager
def bridge(binary):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        made = Bridge(binary, pathlib.Path(folder))
        try:
            yield made
        finally:
            made.stop()


def clients(*names):
    """The clients of examples/conformance/clients, installed."""
    spec = importlib.util.spec_from_file_location("clients", CLIENTS / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    chosen = [it for it in module.CLIENTS if it.name in names]
    for client in chosen:
        client.install()
    return chosen


def look(client, version, servers, token="", patience=120):
    """What a client sees of servers, by name: their tools and the texts of calls, or what failed."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        environment = {
            "HOME": home, "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "NO_PROXY": "127.0.0.1", "NO_COLOR": "1",
            "PYTHONDONTWRITEBYTECODE": "1", "FASTMCP_CHECK_FOR_UPDATES": "off",
            "MCP_TOKEN": token, "MCP_LOOK": json.dumps(servers),
        }
        process = subprocess.Popen(
            [*client.command("look"), version], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=environment,
        )
        late = threading.Timer(patience, process.kill)
        late.start()
        said, errors = process.communicate()
        late.cancel()
    seen = dict(json.loads(line) for line in said.splitlines() if line.startswith("["))
    for server in servers:
        seen.setdefault(server["name"], f"failed: nothing was told of it: {errors[-600:]}")
    return seen
