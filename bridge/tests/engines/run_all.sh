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
connect=$1 token=$2
shift 2

tool=${TOOL:-get_temperature}
args=${ARGS:-'{"latitude":48.85,"longitude":2.35}'}
expect=${EXPECT:-Temperature}

[ $# -gt 0 ] || set -- claude codex codex-codemode opencode copilot qwen gemini cline pi continue
failed=0
for engine in "$@"; do
  python3 "$here/drive.py" --engine "$engine" --connect "$connect" --token "$token" --tool "$tool" --args "$args" \
    --expect "$expect" || failed=1
done
exit $failed
