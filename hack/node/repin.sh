#!/usr/bin/env bash
# Writes module/go.mod and go.sum: the control plane's pins of Kubernetes, with the sums that only the kubelet needs. Run it
# after ../control-plane/repin.sh, and commit the result.
#
# It is a module of its own, because a line more in the control plane's go.sum would build that anew for everybody.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

export GOTOOLCHAIN=local GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0
readonly SOURCE=../control-plane/modules/kubernetes

mapfile -t packages < <(awk '!/^#/ {print $2}' pins)
mkdir -p module
{
  printf '// Written by repin.sh; do not edit.\nmodule carto.run/hack/node\n\ngo 1.26.0\n\n'
  printf 'tool %s\n\n' "${packages[@]}"
  sed -n '/^require k8s.io\/kubernetes /,$p' "$SOURCE/go.mod"
} >module/go.mod
cp "$SOURCE/go.sum" module/go.sum
(cd module && go list -deps "${packages[@]}" >/dev/null)
