#!/usr/bin/env bash
# Times `cargo check` of a crate with 100 tools of 4 arguments each; see README.md.
#
#   measure.sh [runs]
#
# The crate is written outside of the source tree, uses this tree's `tool-runtime` and lock file, and is removed again.
set -euo pipefail

runs=${1:-5}
tools=100
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

mkdir "$scratch/src"
cp "$root/Cargo.lock" "$scratch/Cargo.lock"
cp "$root/rust-toolchain.toml" "$scratch/rust-toolchain.toml"
cat > "$scratch/Cargo.toml" <<TOML
[package]
name = "hundred-tools"
version = "0.0.0"
edition = "2024"

[dependencies]
schemars = "1"
serde = { version = "1", features = ["derive"] }
tool-runtime = { path = "$root/tool-runtime" }

[workspace]
TOML

# Ten servers of ten tools: two on types, eight on modules.
{
    cat <<'RUST'
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tool_runtime::{Caller, ToolError, tool_server};

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Celsius,
    Fahrenheit,
}
RUST
    for server in $(seq 10); do
        if (( server <= 2 )); then
            echo "#[derive(Default)] pub struct Server$server;"
            echo "/// A server with state."
            echo "#[tool_server(name = \"server-$server\", version = \"1.0.0\")]"
            echo "impl Server$server {"
            receiver="&self,"
        else
            echo "/// A server without state."
            echo "#[tool_server(name = \"server-$server\", version = \"1.0.0\")]"
            echo "pub mod server$server {"
            echo "    use super::*;"
            receiver=""
        fi
        for tool in $(seq $((tools / 10))); do
            cat <<RUST
    /// Get the temperature at a place.
    #[tool(read_only)]
    pub async fn get_temperature_$tool(
        $receiver
        /// Latitude, in degrees north.
        #[arg(range = -90.0..=90.0)]
        latitude: f64,
        /// Name of the place.
        #[arg(length = 1..=200)]
        name: Option<String>,
        /// How many days.
        #[arg(default = 7, range = 1..=14)]
        days: u8,
        /// Unit of the answer.
        #[arg(default = Unit::Celsius)]
        unit: Unit,
        caller: &Caller,
    ) -> Result<String, ToolError> {
        Ok(format!("{latitude} {name:?} {days} {unit:?} {}", caller.engine))
    }
RUST
        done
        echo "}"
    done
} > "$scratch/src/lib.rs"

export CARGO_INCREMENTAL=0
export CARGO_TARGET_DIR="$scratch/target"
cd "$scratch"
echo "building dependencies …" >&2
cargo check --quiet

# Each run checks only the crate itself.
for run in $(seq "$runs"); do
    touch src/lib.rs
    begin=$(date +%s%N)
    cargo check --quiet
    end=$(date +%s%N)
    echo $(((end - begin) / 1000000))
done | sort -n | awk -v tools="$tools" '
    { times[NR] = $1 }
    END {
        middle = NR % 2 ? times[(NR + 1) / 2] : (times[NR / 2] + times[NR / 2 + 1]) / 2
        printf "cargo check, %d tools of 4 arguments, %d runs: min %.2f s, median %.2f s\n", tools, NR, times[1] / 1000, middle / 1000
    }'
