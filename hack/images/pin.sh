#!/usr/bin/env bash
# Names the base images of deploy/Dockerfile by digest, as their registry says now, or those that are pinned already by newer
# ones of the same tag. Needs a network that reaches that registry. Review the difference and commit it.
#
#   pin.sh           write the digests
#   pin.sh --check   fail if a base is not named by digest
set -euo pipefail
# shellcheck source=hack/images/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly DOCKERFILE=$root/deploy/Dockerfile

# Lines such as `ARG RUST_IMAGE=rust:1.95-bookworm@sha256:...`: what stands behind the equals sign.
bases() { sed -n 's/^ARG [A-Z]*_IMAGE=\(.*\)$/\1/p' "$DOCKERFILE"; }

check() {
  local base
  for base in $(bases); do
    [[ $base =~ @sha256:[0-9a-f]{64}$ ]] || die "$base in deploy/Dockerfile is not named by digest: run hack/images/pin.sh"
  done
}

# That of the list of all architectures, so that any machine can build.
pin() {
  local crane base digest
  quiet_control_plane crane
  crane=$("$root/hack/control-plane/build.sh" --path)/crane
  for base in $(bases); do
    digest=$("$crane" digest "${base%@*}") || die "the registry of ${base%@*} does not say its digest: see above"
    sed -i "s|^\(ARG [A-Z]*_IMAGE=\)$base\$|\1${base%@*}@$digest|" "$DOCKERFILE"
    say "${base%@*} is $digest"
  done
}

case ${1:-} in
  --check) check ;;
  '') pin ;;
  *) die "unknown argument '$1'; known: --check" ;;
esac
