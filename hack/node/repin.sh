#!/usr/bin/env bash
# Writes modules/<module>/go.mod and go.sum. Run it after ../control-plane/repin.sh, or when a version below changes, and
# commit the result.
#
#   kubernetes   the control plane's pins of Kubernetes, with the sums that only the kubelet needs. It is a module of its
#                own, because a line more in the control plane's go.sum would build that anew for everybody
#   tekton, coredns   as ../control-plane/repin.sh does it: a module around the part repeats its `require` and `replace` lines.
#                     That of coredns has a program of its own, main.go
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

export GOTOOLCHAIN=local GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0
readonly TEKTON=v1.6.0 COREDNS=v1.12.1
readonly SOURCE=../control-plane/modules/kubernetes

# The packages that are built from a module.
packages() { awk -v module="$1" '!/^#/ && $2 == module {print $3}' pins; }

head_of() { # module
  printf '// Written by repin.sh; do not edit.\nmodule carto.run/hack/node/%s\n\ngo 1.26.0\n\n' "$1"
  packages "$1" | sed -n '/^[^.]/s/^/tool /p'
  echo
}

complete() { # module
  local packages
  mapfile -t packages < <(packages "$1")
  (cd "modules/$1" && go list -deps "${packages[@]}" >/dev/null)
}

kubernetes() {
  {
    head_of kubernetes
    sed -n '/^require k8s.io\/kubernetes /,$p' "$SOURCE/go.mod"
  } >modules/kubernetes/go.mod
  cp "$SOURCE/go.sum" modules/kubernetes/go.sum
}

wrap() { # module path version
  local source
  source=$(cd / && go mod download -json "$2@$3" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  {
    head_of "$1"
    printf 'require %s %s\n\n' "$2" "$3"
    sed -n '/^require (/,/^)/p; /^replace (/,/^)/p; /^replace [^(]/p' "$source/go.mod"
  } >"modules/$1/go.mod"
  cp "$source/go.sum" "modules/$1/go.sum"
  chmod u+w "modules/$1/go.sum"
}

mkdir -p modules/{kubernetes,tekton,coredns}
kubernetes
wrap tekton github.com/tektoncd/pipeline "$TEKTON"
wrap coredns github.com/coredns/coredns "$COREDNS"
for module in kubernetes tekton coredns; do complete "$module"; done
