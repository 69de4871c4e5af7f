#!/bin/sh
# Compares our JSONPath, tags, YAML and Go text with the Go libraries; needs Go, for development only.
# Usage: run.sh [SEED] [COUNT]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
(cd "$here" && go build -o "$scratch/oracle" .)
"$scratch/oracle" generate -seed "${1:-1}" -count "${2:-40000}" >"$scratch/cases"
cd "$here/../.."
cargo build --quiet --workspace --example oracle
"${CARGO_TARGET_DIR:-target}/debug/examples/oracle" <"$scratch/cases" >"$scratch/ours"
"$scratch/oracle" compare "$scratch/cases" "$scratch/ours"
