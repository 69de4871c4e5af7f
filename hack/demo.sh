#!/usr/bin/env bash
# The demo: builds what is missing, then runs the whole product on this machine. `make demo` calls it.
#
#   demo.sh          tell the story, then clean up
#   demo.sh keep     leave everything running until Ctrl-C, to look around
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/needs.sh
hack/control-plane/build.sh
echo "demo: building the controllers, carto and the demo (some minutes the first time)" >&2
# Of the whole workspace, with the examples: the features are then those of the tests, and `make test` compiles nothing twice.
cargo build --workspace --bins --examples

arguments=()
[[ -z ${1:-} ]] || arguments+=(--keep)
exec "${CARGO_TARGET_DIR:-target}/debug/demo" "${arguments[@]}"
