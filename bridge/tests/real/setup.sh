#!/usr/bin/env bash
# setup.sh: fetches the real servers that run.py adds, at the versions of records.json, into ~/.cache/clopen-mcp/real (or
# REAL_DIR), so that they start from there without the network: npm's into its cache, PyPI's into the one of uv, which
# comes along. Needs Node, npm and Python.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
dir="${REAL_DIR:-$HOME/.cache/clopen-mcp/real}"
uv="uv==0.13.9"
pins="$uv $(cksum <"$here/records.json")"
[ "$(cat "$dir/pins" 2>/dev/null)" != "$pins" ] || exit 0

rm -rf "$dir"
mkdir -p "$dir/home"
python3 -m venv "$dir/uv"
"$dir/uv/bin/pip" install --quiet --disable-pip-version-check "$uv"
PYTHONPATH="$here" python3 -c 'import real; print(*(" ".join(map(str, it)) for it in real.commands_that_fetch()), sep="\n")' |
  while read -r command; do
    # Where it asks its standard input for more, nothing comes, and it ends.
    HOME="$dir/home" PATH="$dir/uv/bin:$PATH" $command </dev/null >/dev/null 2>"$dir/log" || { cat "$dir/log" >&2; exit 1; }
  done
echo "$pins" >"$dir/pins"
