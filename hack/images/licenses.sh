#!/usr/bin/env bash
# Terms of what is linked into binaries.
#
#   licenses.sh update   write deploy/licenses/crates.txt anew, of all crates (minutes): after a change of Cargo.lock
#   licenses.sh check    fail if a crate that is linked is not in that file (seconds)
#   licenses.sh lay-out FOLDER
#                        put that file, our own terms, and those of the libraries of Rust and C into FOLDER
#
# C_LIBRARY_TERMS   the file with those of glibc and libgcc, where it is not at Debian's path
set -euo pipefail
# shellcheck source=hack/images/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly CARGO_ABOUT=0.9.3
readonly CRATES=deploy/licenses/crates.txt

# A crate whose terms are not known, or not among those of about.toml, fails this. Nothing is asked of the network but the
# crates themselves, those of other platforms among them: the texts are in the crates.
update() {
  local about
  about=$(OPT_LEVEL=2 hack/cargo-tool.sh cargo-about "$CARGO_ABOUT" --features cli)
  cargo fetch --quiet --locked
  mkdir -p "${CRATES%/*}"
  "$about" generate --frozen --fail --workspace --config hack/images/about.toml --output-file "$CRATES.partial" \
    hack/images/licenses.hbs
  # Lines as Git wants them, whatever the authors' editors did.
  sed -i 's/[[:space:]]*$//' "$CRATES.partial"
  mv "$CRATES.partial" "$CRATES"
}

check() {
  local packages=() name tuple missing
  for name in $(component_names) "$COMMAND_LINE"; do packages+=(--package "$(package_of "$name")"); done
  missing=$(for tuple in amd64 arm64; do
    linked_crates "$(rust_target "$tuple")" "${packages[@]}"
  done | sort -u | without_our_own | while read -r name version; do
    grep -qxF "  $name ${version#v}" "$CRATES" || echo "$name ${version#v}"
  done)
  [[ -z $missing ]] ||
    die "the terms of these are not in $CRATES: ${missing//$'\n'/, }. Run hack/images/licenses.sh update, and commit it"
}

without_our_own() {
  grep -vxF "$(cargo metadata --no-deps --format-version 1 --locked | grep -oE '"name":"[^"]*","version":"[^"]*","id":"path' |
    sed 's/"name":"\([^"]*\)","version":"\([^"]*\)".*/\1 v\2/')"
}

# Both libraries of C are in static binaries. glibc is under the LGPL: whoever wants another one in there builds anew, from this
# source, with hack/images/build.sh.
lay_out() { # folder
  local file rust files
  rust=$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html
  files=("${C_LIBRARY_TERMS:-/usr/share/doc/libc6-dev/copyright}")
  [[ -n ${C_LIBRARY_TERMS:-} ]] || files+=("/usr/share/doc/libgcc-$(gcc -dumpversion)-dev/copyright")
  for file in "$rust" "${files[@]}"; do
    [[ -e $file ]] || die "$file is missing. Rust's is there with rustup; C_LIBRARY_TERMS names a file with those of glibc and libgcc"
  done
  mkdir -p "$1"
  install -m 0644 LICENSE-MIT LICENSE-APACHE "$CRATES" "$1/"
  install -m 0644 "$rust" "$1/rust-library.html"
  cat "${files[@]}" >"$1/c-library.txt"
}

cd "$root"
umask 022
case ${1:-} in
  update) update ;;
  check) check ;;
  lay-out) lay_out "${2:?lay-out takes a folder}" ;;
  *)
    help
    exit 2
    ;;
esac
