#!/usr/bin/env bash
# Fails when images differ that should not: the same commit gives the same digests, whoever builds it, where and when.
#
#   reproducible.sh                               pack the same binaries twice (seconds)
#   reproducible.sh --from-source [COMPONENT...]  compile twice as well, in checkouts on different paths (minutes; with
#                                                 --profile release as users get them, dev by default)
#   reproducible.sh --binaries FOLDER             pack FOLDER/ARCH/NAME twice; without it, any bytes serve for binaries
set -euo pipefail
# shellcheck source=hack/images/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

from_source=
profile=dev
binaries=
wanted=()

arguments() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      -h | --help) help && exit ;;
      --from-source) from_source=yes && shift ;;
      --profile) profile=${2:?--profile takes release or dev} && shift 2 ;;
      --binaries) binaries=${2:?--binaries takes a folder} && shift 2 ;;
      -*) die "unknown argument '$1'; known: --from-source, --profile, --binaries" ;;
      *) wanted+=("$1") && shift ;;
    esac
  done
  [[ ${#wanted[@]} -gt 0 ]] || mapfile -t wanted < <(component_names)
}

# For the packing it does not matter what is packed.
any_binaries() { # folder
  local name
  mkdir -p "$1/$arch"
  for name in $(component_names); do
    printf '%s\n' "$name" >"$1/$arch/$name"
    chmod 0755 "$1/$arch/$name"
  done
}

# Two builds that differ in everything that must not matter: folder, umask, time zone, language, owner's rights and times of
# the files.
pack_twice() {
  local arch
  arch=$(host_arch)
  if [[ -z $binaries ]]; then
    any_binaries "$work/any"
    binaries=$work/any
  fi
  cp -r "$binaries" "$work/copy"
  chmod -R go-rwx "$work/copy"
  find "$work/copy" -exec touch -d '2001-02-03 04:05:06' {} +
  (umask 022 && TZ=UTC LC_ALL=C "$root/hack/images/build.sh" --profile "$profile" --arch "$arch" --binaries "$binaries" \
    --out "$work/a" "${wanted[@]}" >"$work/a.table")
  # The second that a time is cut to must not be the same one by chance.
  while [[ $(date +%s) == $(stat -c %Y "$work/a.table") ]]; do :; done
  (umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 "$root/hack/images/build.sh" --profile "$profile" --arch "$arch" \
    --binaries "$work/copy" --out "$work/longer/path/b" "${wanted[@]}" >"$work/b.table")
  same_layouts "$work/a" "$work/longer/path/b"
}

# The same for the Go compiler: a second cache has nothing of the first.
build_ytt_twice() {
  "$root/hack/images/ytt.sh" --out "$work/ytt/a"
  CARTO_CACHE=$work/cache "$root/hack/images/ytt.sh" --out "$work/ytt/b"
  diff -r "$work/ytt/a" "$work/ytt/b" || die "ytt: the same source gave different files"
}

same_layouts() { # folder folder
  local name
  cat "$work/a.table"
  diff "$work/a.table" "$work/b.table" || die "the same source gave different digests: see above"
  for name in "${wanted[@]}"; do
    diff -r "$1/$name" "$2/$name" && cmp "$1/$name.tar" "$2/$name.tar" || die "$name: the same source gave different files"
  done
  say "the same, twice: ${wanted[*]}"
}

# Checkouts on different paths, each with a target folder of its own: nothing of one build is there in the other.
build_twice() {
  local one commit
  commit=$(git -C "$root" rev-parse HEAD)
  for one in a b/on/a/longer/path; do
    git clone --quiet --shared --no-checkout "$root" "$work/$one/carto"
    git -C "$work/$one/carto" checkout --quiet --detach "$commit"
    (unset CARGO_TARGET_DIR && "$work/$one/carto/hack/images/build.sh" --profile "$profile" --out "$work/$one/out" \
      "${wanted[@]}" >"$work/${one%%/*}.table")
    # The disk need not hold both.
    rm -rf "$work/$one/carto/target"
  done
  same_layouts "$work/a/out" "$work/b/on/a/longer/path/out"
}

arguments "$@"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ -n $from_source ]]; then
  build_ytt_twice
  build_twice
else
  pack_twice
fi
