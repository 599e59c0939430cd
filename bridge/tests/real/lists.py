#!/usr/bin/env python3
"""lists.py BINARY: odd lists and odd results, as clients see them directly and through the bridge.

bridge/tests/data/odd.py has a list of tools, or the result of a call, for each way in which real servers are known to be
odd. FastMCP's client, the one of MCP's TypeScript SDK and rmcp's own start it themselves, then ask a bridge for it, in both
eras of the protocol. Tables say how many tools of each list each client loses, and which result it can't read; the exit
code is 1 if that happens to any client through the bridge.
"""
import importlib.util, io, json, pathlib, sys
import real

ODD = real.HERE.parent / "data/odd.py"
# Tools that nobody can call: one without a name, and the second of two that have the same.
LOST_TO_ALL = {"dup_names": 1, "empty_name": 1}
# Data that is other than its tool promises is handed on as it is: who checks it refuses it, directly as well.
REFUSED = {"schema_mismatch"}


def odd():
    """odd.py as a module: its lists by name, and its results."""
    spec = importlib.util.spec_from_file_location("odd", ODD)
    module = importlib.util.module_from_spec(spec)
    # It serves whoever loads it, until its standard input ends.
    given = sys.argv, sys.stdin
    sys.argv, sys.stdin = [str(ODD), ""], io.StringIO()
    spec.loader.exec_module(module)
    sys.argv, sys.stdin = given
    return module


def lost(seen, count):
    """How many tools of a list a client loses; all, if it sees no list."""
    return count if isinstance(seen, str) else count - len(seen["tools"])


def table(title, rows, columns, cell):
    """Prints a table, whose cells are empty where nothing is wrong."""
    names = [f"{client.name} {version}" for client, version in columns]
    print(f"| {title} | {' | '.join(names)} |\n{'|---' * (len(columns) + 1)}|")
    for row in rows:
        print(f"| {row} | {' | '.join(cell(row, column) for column in columns)} |")
    print()


def main():
    lists = {name: len(tools) for name, tools in odd().tools.items()}
    results = list(odd().calls)
    clients = real.clients("typescript2", "fastmcp", "rmcp")
    columns = [(client, version) for client in clients for version in ("direct", real.SESSIONS, real.STATELESS)]
    seen = {}
    with real.bridge(sys.argv[1]) as bridge:
        direct, through = [], []
        for name in [*lists, *results]:
            slug, arguments = name.replace("_", "-"), [str(ODD), name]
            bridge.run("servers", "add", slug, "--", sys.executable, *arguments)
            job = {"name": name, "calls": [["a", {}]] if name in results else []}
            direct.append({**job, "command": {"command": sys.executable, "args": arguments}})
            through.append({**job, "url": f"/ext/{slug}"})
        bridge.start()
        through = [{**job, "url": bridge.url + job["url"]} for job in through]
        for client, version in columns:
            if version == "direct":
                seen[client, version] = real.look(client, real.SESSIONS, direct)
            else:
                seen[client, version] = real.look(client, version, through, bridge.token)

    table("tools lost of", lists, columns, lambda name, at: str(lost(seen[at][name], lists[name]) or ""))
    table("result of", results, columns, lambda name, at: "can't be read" if isinstance(seen[at][name], str) else "")
    failed = [
        {"case": name, "client": client.name, "version": version, "seen": seen[client, version][name]}
        for client, version in columns if version != "direct"
        for name in [*lists, *sorted(set(results) - REFUSED)]
        if isinstance(seen[client, version][name], str)
        or name in lists and lost(seen[client, version][name], lists[name]) != LOST_TO_ALL.get(name, 0)
    ]
    for it in failed:
        print(json.dumps(it))
    print(f"odd servers: {len(lists)} lists and {len(results)} results in {len(columns)} ways, {len(failed)} wrong through the bridge")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
