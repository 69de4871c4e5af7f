#!/usr/bin/env bash
# Writes what an image is made of, as SPDX 2.3 in JSON: crates as Cargo builds them for its architecture, Go modules as ytt
# names them itself, and the libraries of Rust and C that are linked in.
#
#   sbom.sh [--arch amd64,arm64] [--from FOLDER] [--out FOLDER] [NAME...]
#
# OUT/NAME-VERSION-linux-ARCH.spdx.json is what it writes; ytt is read from FROM/bin/ARCH/ytt (default of FROM: target/images, of
# OUT: target/images/sbom). NAME is a component, or carto.
set -euo pipefail
# shellcheck source=hack/images/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly CARGO_SBOM=0.10.0

archs=
from=$root/target/images
out=$root/target/images/sbom
wanted=()

# Lines `module version` of a Go binary.
modules() { # binary
  go version -m "$1" | awk '$1 == "mod" || $1 == "dep" {print $2, $3}'
}

# The C library that the linker of this architecture takes.
c_library_version() { # arch tuple
  local cc=cc
  [[ $1 == "$(host_arch)" ]] || cc=$(cross_compiler "$2")
  LC_ALL=C grep -aoE 'stable release version [0-9.]*[0-9]' "$($cc -print-file-name=libc.so.6)" | awk '{print $4}' | head -n 1
}

has_ytt() { [[ $1 != "$COMMAND_LINE" && $(component "$1") == *"|ytt|"* ]]; } # name

sbom() { # name arch
  local name=$1 arch=$2 tuple package file
  tuple=$(rust_target "$arch")
  package=$(package_of "$name")
  file=$out/$name-$VERSION-linux-$arch.spdx.json
  (cd "$root" && "$cargo_sbom" --cargo-package "$package" --output-format spdx_json_2_3) >"$work/raw.json"
  linked_crates "$tuple" --package "$package" >"$work/crates"
  : >"$work/modules"
  if has_ytt "$name"; then modules "$from/bin/$arch/ytt" >"$work/modules"; fi
  "$gojq" --from-file "$root/hack/images/sbom.jq" \
    --rawfile crates "$work/crates" --rawfile modules "$work/modules" --arg name "$name" --arg package "$package" \
    --arg arch "$arch" --arg version "$VERSION" --arg revision "$REVISION" \
    --arg created "$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)" \
    --arg rust "$(cd "$root" && rustc --version | cut -d ' ' -f 2)" --arg glibc "$(c_library_version "$arch" "$tuple")" \
    "$work/raw.json" >"$work/sbom.json"
  mv "$work/sbom.json" "$file"
}

read_arguments "arch from out" "$@"
source_facts
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cargo_sbom=$("$root/hack/cargo-tool.sh" cargo-sbom "$CARGO_SBOM")
start_json
for name in "${wanted[@]}"; do
  for arch in ${archs//,/ }; do sbom "$name" "$arch"; done
done
