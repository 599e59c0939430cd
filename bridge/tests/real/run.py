#!/usr/bin/env python3
"""run.py BINARY: real servers, added to a bridge, serve people's clients.

setup.sh fetches the servers. Each is added to a bridge in an empty home folder; then the clients of MCP's Python and
TypeScript SDKs, in both eras of the protocol, call its tools where it is served alone and among all. One JSON line a check;
the exit code is 1 if one failed.
"""
import contextlib, json, os, re, signal, subprocess, sys, time
import real

failed = []


def told(check, is_right, **facts):
    if not is_right:
        failed.append(check)
    print(json.dumps({"check": check, "ok": bool(is_right), **({} if is_right else facts)}), flush=True)


def prepare(folder):
    """A folder for the filesystem server and a repository for Git's; what each server is started with, and what is called.

    A call is a tool, its arguments, and what its text must match."""
    files, repository = folder / "files", folder / "repository"
    files.mkdir()
    (files / "poem.txt").write_text("roses\nviolets\n")
    git = ["git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "--quiet", repository], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "the first"], check=True)
    entity = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
    return {
        "everything": ({}, [
            ("echo", {"message": "hello"}, "^Echo: hello$"),
            ("get-sum", {"a": 2, "b": 3}, r"\b5\b"),
            ("get-structured-content", {"location": "New York"}, "temperature"),
            ("simulate-research-query", {"topic": "tea"}, "tea"),
        ]),
        "filesystem": ({"allowed_dir": files}, [
            ("read_text_file", {"path": str(files / "poem.txt")}, "^roses\nviolets\n$"),
            ("list_directory", {"path": str(files)}, r"\[FILE\] poem.txt"),
            ("read_text_file", {"path": "/etc/hostname"}, "denied"),
        ]),
        "memory": ({"MEMORY_FILE_PATH": folder / "memory.jsonl"}, [
            ("create_entities", {"entities": [entity]}, r"Ada|\[\]"),
            ("read_graph", {}, "writes programs"),
        ]),
        "time": ({}, [
            ("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}, r"21:00"),
        ]),
        "git": ({"--repository": repository}, [
            ("git_log", {"repo_path": str(repository)}, "the first"),
            ("git_status", {"repo_path": str(repository)}, "clean|nothing to commit"),
        ]),
    }


def calls(servers):
    """All calls at the merged endpoint, with what each must match."""
    return [call for _, calls in servers.values() for call in calls]


def check_lists(client, bridge, servers):
    """A client that starts each server itself sees no tool that the bridge doesn't have."""
    def directly(name):
        inputs = servers[name][0]
        variables = {key: str(value) for key, value in inputs.items() if key.isupper()}
        flags = [it for key, value in inputs.items() if key.startswith("--") for it in (key, value)]
        others = [value for key, value in inputs.items() if not key.startswith("--") and not key.isupper()]
        program, *arguments = real.command(name, flags + others)
        environment = bridge.environment | variables
        return {"name": name, "command": {"command": program, "args": arguments, "env": environment}}

    direct = real.look(client, real.SESSIONS, [directly(name) for name in servers])
    through = [{"name": name, "url": f"{bridge.url}/ext/{name}"} for name in servers]
    through = real.look(client, real.SESSIONS, through, bridge.token)
    for name in servers:
        if isinstance(direct[name], str) or isinstance(through[name], str):
            told(f"{name} lists its tools", False, direct=direct[name], through=through[name])
            continue
        lost = set(direct[name]["tools"]) - set(through[name]["tools"])
        told(f"no tool of {name} is lost", direct[name]["tools"] and not lost, lost=sorted(lost))


def check(client, version, bridge, servers):
    """A client sees each server alone, and all together."""
    jobs = [
        {"name": name, "url": f"{bridge.url}/ext/{name}", "calls": [it[:2] for it in calls]}
        for name, (_, calls) in servers.items()
    ]
    jobs.append({"name": "all", "url": bridge.url, "calls": [it[:2] for it in calls(servers)]})
    seen = real.look(client, version, jobs, bridge.token)
    alone = []
    for name, (_, wanted) in [*servers.items(), ("all", ({}, calls(servers)))]:
        where = f"{client.name} {version}: {name}"
        if isinstance(seen[name], str):
            told(where, False, seen=seen[name])
            continue
        tools, texts = seen[name]["tools"], seen[name]["texts"]
        if name == "all":
            missing = [it for it in alone if it not in tools]
            told(f"{where} tools", not missing, missing=missing)
        else:
            alone += tools
        for (tool, arguments, pattern), text in zip(wanted, texts, strict=True):
            told(f"{where} {tool}", re.search(pattern, text or ""), arguments=arguments, text=text, pattern=pattern)


def check_ends(client, bridge, servers):
    """Servers that are killed are started again by the next call, and end when the bridge is killed itself."""
    bridge.start()
    jobs = [
        {"name": name, "url": f"{bridge.url}/ext/{name}", "calls": [it[:2] for it in calls[:1]]}
        for name, (_, calls) in servers.items()
    ]
    real.look(client, real.STATELESS, jobs, bridge.token)
    started = bridge.servers()
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    seen = real.look(client, real.STATELESS, jobs, bridge.token)
    missing = {name: it for name, it in seen.items() if isinstance(it, str)}
    told("servers that are killed are started again", started and not missing, started=started, missing=missing)
    left = bridge.stop(signal.SIGKILL)
    told("no server outlives a bridge that is killed", not left, left=left)


def main():
    began = time.monotonic()
    with real.bridge(sys.argv[1]) as bridge:
        servers = prepare(bridge.folder)
        with real.registry(bridge) as synced:
            told("sync", "servers" in synced, said=synced)
            for name, (inputs, _) in servers.items():
                said = real.add(bridge, name, inputs)
                told(f"add {name}", re.search(rf"`{name}` is there, with [1-9][0-9]* tools", said), said=said)
        bridge.start()
        clients = real.clients("mcp", "typescript2")
        check_lists(clients[0], bridge, servers)
        for client in clients:
            for version in (real.SESSIONS, real.STATELESS):
                check(client, version, bridge, servers)
        told("the bridge panics nowhere", "panicked" not in bridge.log(), log=bridge.log()[-1500:])
        left = bridge.stop()
        told("no server outlives the bridge", not left, left=left)
        check_ends(clients[0], bridge, servers)
    print(f"real servers: {len(failed)} checks failed, {time.monotonic() - began:.0f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
