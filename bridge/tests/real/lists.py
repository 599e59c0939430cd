#!/usr/bin/env python3
"""lists.py BINARY: the lists of odd.py, as clients see them directly and through the bridge.

bridge/tests/data/odd.py has a list of tools for each way in which real servers are known to be odd. FastMCP's client, the
one of MCP's TypeScript SDK and rmcp's own start it themselves, then ask a bridge for it, in both eras of the protocol. A
table says how many tools each client loses of each list; the exit code is 1 if the bridge loses one, for any client.
"""
import importlib.util, io, json, pathlib, sys
import real

ODD = real.HERE.parent / "data/odd.py"
# Tools that nobody can call: one without a name, and the second of two that have the same.
LOST_TO_ALL = {"dup_names": 1, "empty_name": 1}


def lists():
    """How many tools each list has, as odd.py itself has them."""
    spec = importlib.util.spec_from_file_location("odd", ODD)
    odd = importlib.util.module_from_spec(spec)
    # It serves whoever loads it, until its standard input ends.
    given = sys.argv, sys.stdin
    sys.argv, sys.stdin = [str(ODD), ""], io.StringIO()
    spec.loader.exec_module(odd)
    sys.argv, sys.stdin = given
    return {name: len(tools) for name, tools in odd.tools.items()}


def lost(seen, count):
    """How many tools a client loses, or why it sees no list at all."""
    return f"all {count}" if isinstance(seen, str) else str(count - len(seen["tools"]))


def main():
    counts = lists()
    clients = real.clients("typescript2", "fastmcp", "rmcp")
    columns = [(client, version) for client in clients for version in ("direct", real.SESSIONS, real.STATELESS)]
    seen, failed = {}, []
    with real.bridge(sys.argv[1]) as bridge:
        for name in counts:
            bridge.run("servers", "add", name.replace("_", "-"), "--", sys.executable, str(ODD), name)
        bridge.start()
        direct = [{"name": it, "command": {"command": sys.executable, "args": [str(ODD), it]}} for it in counts]
        through = [{"name": it, "url": f"{bridge.url}/ext/{it.replace('_', '-')}"} for it in counts]
        for client, version in columns:
            if version == "direct":
                seen[client, version] = real.look(client, real.SESSIONS, direct)
            else:
                seen[client, version] = real.look(client, version, through, bridge.token)
    print("| list | tools | " + " | ".join(f"{client.name} {version}" for client, version in columns) + " |")
    print("|---" * (len(columns) + 2) + "|")
    for name, count in counts.items():
        cells = [lost(seen[column][name], count) for column in columns]
        print(f"| {name} | {count} | " + " | ".join("" if it == "0" else it for it in cells) + " |")
        for column, cell in zip(columns, cells, strict=True):
            if column[1] != "direct" and cell != str(LOST_TO_ALL.get(name, 0)):
                failed.append({"list": name, "client": column[0].name, "version": column[1], "seen": seen[column][name]})
    for it in failed:
        print(json.dumps(it))
    print(f"odd lists: {len(counts)} lists, {len(columns)} ways, {len(failed)} lose a tool through the bridge")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
