#!/usr/bin/env bash
# Builds ytt, which renders `spec.ytt` of templates, at the version that the tests run, and collects what its authors want to
# be handed on with it.
#
#   ytt.sh [--arch amd64,arm64] [--out FOLDER]
#
# FOLDER/bin/ARCH/ytt and FOLDER/licenses/ytt.txt are what it writes (default: target/images).
set -euo pipefail
# shellcheck source=hack/images/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly CONTROL_PLANE=$root/hack/control-plane
readonly PACKAGE=carvel.dev/ytt/cmd/ytt

archs=
out=$root/target/images

arguments() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      -h | --help) help && exit ;;
      --arch) archs=${2:?--arch takes amd64, arm64, or both with a comma between} && shift 2 ;;
      --out) out=${2:?--out takes a folder} && shift 2 ;;
      *) die "unknown argument '$1'; known: --arch, --out" ;;
    esac
  done
  archs=${archs:-$(host_arch)}
}

build() { # arch
  local goarch=$1
  # The one that tests run is this machine's, and is found under no other name.
  [[ $1 != "$(host_arch)" ]] || goarch=
  GOARCH=$goarch quiet_control_plane ytt
  mkdir -p "$out/bin/$1"
  install -m 0755 "$(GOARCH=$goarch "$CONTROL_PLANE/build.sh" --path)/ytt" "$out/bin/$1/ytt"
}

# The modules of the binary, each with its folder in Go's cache.
modules() {
  (
    cd "$CONTROL_PLANE/modules/ytt"
    CGO_ENABLED=0 GOOS=linux GOFLAGS=-mod=readonly GOTOOLCHAIN=local GOWORK=off \
      go list -deps -f '{{with .Module}}{{.Path}} {{.Version}} {{.Dir}}{{end}}' "$PACKAGE" | LC_ALL=C sort -u
  )
}

texts() { # folder
  find "$1" -type f \( -iname 'licen[sc]e*' -o -iname 'copying*' -o -iname 'notice*' \) \
    ! -path '*/examples/*' ! -path '*/testdata/*' ! -name '*.go' | LC_ALL=C sort
}

licenses() {
  local path version folder text found
  while read -r path version folder; do
    found=
    while IFS= read -r text; do
      found=yes
      heading "$path $version: ${text#"$folder"/}"
      cat "$text"
    done < <(texts "$folder")
    [[ -n $found ]] || die "$path $version has no licence in $folder: look where it says what its terms are"
  done < <(modules)
  heading "The Go programming language, its library and runtime"
  cat "$(go env GOROOT)/LICENSE"
}

arguments "$@"
umask 022
for arch in ${archs//,/ }; do build "$arch"; done
mkdir -p "$out/licenses"
licenses >"$out/licenses/.ytt.partial"
mv "$out/licenses/.ytt.partial" "$out/licenses/ytt.txt"
