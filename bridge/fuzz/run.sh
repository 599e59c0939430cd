#!/usr/bin/env bash
# Runs every target for some seconds on its seeds, and fails on the first finding: run.sh SECONDS
set -euo pipefail
cd "$(dirname "$0")"
seconds="${1:?how many seconds for each target: run.sh SECONDS}"
toolchain="${CLOPEN_MCP_FUZZ_TOOLCHAIN:-nightly}"

cargo "+$toolchain" fuzz --version >/dev/null 2>&1 || cargo "+$toolchain" install cargo-fuzz --locked --quiet

# What is found on the way, and the data of the bridge, stay out of the repository. A finding is printed, and kept.
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
export TMPDIR="$scratch"
for target in envelope headers; do
  echo "fuzzing $target for $seconds s"
  cp -r "corpus/$target" "$scratch/$target"
  cargo "+$toolchain" fuzz run --dev --sanitizer none --fuzz-dir . "$target" "$scratch/$target" -- \
    -max_total_time="$seconds" -max_len=4096 -timeout=30 -rss_limit_mb=4096 -print_final_stats=1 -verbosity=0
done
