#!/bin/bash
# check.sh BINARY [ENGINE…]: every engine, connected by the binary in an empty HOME, calls a tool of the bridge, and one of
# an external server that comes in both ways (external.py); what is switched on while an engine runs reaches it
# (changes.py; left out if engines are named); then the token is revoked, no engine gets in, and `doctor` says why. Needs
# Linux and the right to make a network namespace, in which nothing but loopback is.
set -u
here=$(cd "$(dirname "$0")" && pwd)
if [ "${FENCED:-}" = "" ]; then
  "$here/../real/setup.sh" || exit 1
  exec env FENCED=1 unshare -n bash "$0" "$@"
fi
ip link set lo up
binary=$(realpath "$1")
shift
data=$(mktemp -d)
started=()
trap 'kill "${started[@]}" 2>/dev/null; rm -rf "$data"' EXIT

python3 "$here/stub_meteo.py" 9402 &
started+=($!)
OPEN_METEO_URL=http://127.0.0.1:9402 "$binary" serve --data "$data/bridge" 2>"$data/bridge.log" &
started+=($!)
for _ in $(seq 100); do
  curl -s http://127.0.0.1:9151/healthz >/dev/null && break
  sleep 0.1
done

token=$("$binary" tokens create engines --data "$data/bridge" 2>/dev/null)
connect="$binary connect {engine} --data $data/bridge"
"$here/run_all.sh" "$connect" "$token" "$@" || { echo "check.sh: not every engine reached its tool" >&2; exit 1; }
python3 "$here/external.py" "$binary" "$@" || { echo "check.sh: not every engine reached an external server" >&2; exit 1; }
[ $# -gt 0 ] || python3 "$here/changes.py" "$binary" || { echo "check.sh: not every engine took up a change" >&2; exit 1; }

# Connected for a person, while the token was good.
mkdir "$data/home"
for engine in claude codex opencode copilot qwen gemini cline pi continue; do
  HOME=$data/home CLOPEN_TOKEN=$token "$binary" connect "$engine" --data "$data/bridge" >/dev/null 2>&1
done
"$binary" tokens revoke engines --data "$data/bridge"
# The bridge hears of what another process revokes when it next asks the database.
until [ "$(curl -s -o "$data/answer" -w '%{http_code}' -H "Authorization: Bearer $token" http://127.0.0.1:9151/mcp)" = 401 ]; do
  sleep 0.2
done
refused=0
while read -r verdict; do
  echo "$verdict"
  [[ $verdict == *'"ok": false'* ]] || { echo "check.sh: an engine got in with a revoked token" >&2; exit 1; }
  refused=$((refused + 1))
done < <("$here/run_all.sh" "$connect" "$token" "$@")
echo "check.sh: $refused engines are refused with a revoked token"

HOME=$data/home CLOPEN_TOKEN=$token "$binary" doctor --data "$data/bridge" | tee "$data/doctor.txt"
[ "$(grep -c '`engines`, which is revoked' "$data/doctor.txt")" = 9 ] || { echo "check.sh: doctor doesn't name the cause for all nine" >&2; exit 1; }
