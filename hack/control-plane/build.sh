#!/usr/bin/env bash
# Builds the real parts that tests and the demo run: API server, etcd, kubectl, ytt, helm, Flux, a registry. All pinned (see
# `pins` and modules/), all from Go modules, kept outside the source tree in a folder named by the hash of the pins.
#
#   build.sh          build what is missing; well under a second when nothing is
#   build.sh NAME...  build these only, such as helm
#   build.sh --path   print the folder of binaries, build nothing
#   build.sh --clean  remove every cached control plane
#   build.sh --kubernetes MINOR [--path]
#                     the API server and controller manager of another minor version (minors/), such as 1.33, in a folder of
#                     their own: for `make test-versions`
#   build.sh --third-party [--path]
#                     third-party controllers that only `make test-third-party` runs (third-party/), with their kinds, in a
#                     folder of their own as well
#
# CARTO_CACHE          where the cache lies (default: $XDG_CACHE_HOME/carto, else ~/.cache/carto)
# GOARCH               another architecture, as in `GOARCH=arm64 build.sh ytt`: images have ytt for each
# KUBEBUILDER_ASSETS   a folder with your own Kubernetes binaries of the pinned minor version: those found there are not built
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# One setting for all parts, or the packages they share compile twice. Part of the hash, as what they decide is in the binaries.
export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOTOOLCHAIN=local GOWORK=off
readonly BUILD_FLAGS=(-trimpath -buildvcs=false)
readonly LINK_FLAGS='-s -w'
readonly GO_MINOR_WANTED=26
# Only its definitions are taken, so it is no part of the hash: nothing that is built depends on it.
readonly CERT_MANAGER=github.com/cert-manager/cert-manager@v1.21.2
readonly CERT_MANAGER_SUM=h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=

# Where the pins are: of all parts, or of another minor of Kubernetes.
pins=pins modules=modules
cache=${CARTO_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/carto}/control-plane

assets_folder() {
  local hash
  hash=$({
    echo "${BUILD_FLAGS[*]} $LINK_FLAGS $CGO_ENABLED $(uname -sm)${GOARCH:+ for $GOARCH}"
    grep -v '^#' "$pins"
    cat "$modules"/*/go.mod "$modules"/*/go.sum
  } | sha256sum | cut -c 1-16)
  echo "$cache/$hash"
}

say() { printf 'control-plane: %s\n' "$*" >&2; }

die() {
  say "$@"
  exit 1
}

require_tools() {
  command -v go >/dev/null ||
    die "Go is missing: install Go 1.$GO_MINOR_WANTED or newer (https://go.dev/doc/install), then run this again"
  local version minor
  version=$(go env GOVERSION)
  minor=${version#go1.}
  minor=${minor%%[!0-9]*}
  [[ $version == go1.* && $minor -ge $GO_MINOR_WANTED ]] ||
    die "Go 1.$GO_MINOR_WANTED or newer is needed, but '$(command -v go)' is $version"
}

# Tests serve repositories to Flux over the smart protocol; nothing here builds git.
check_git() {
  command -v git >/dev/null || die "git is missing: install it (Debian: apt-get install git)"
  [[ -x $(git --exec-path)/git-http-backend ]] ||
    die "git has no http-backend in $(git --exec-path): install the full git package (Debian: git)"
}

# Waits for a child, with a line every half minute, so that nobody takes four silent minutes for a hang.
await() { # name pid
  local next=30
  while kill -0 "$2" 2>/dev/null; do
    sleep 0.2
    if [[ $SECONDS -ge $next ]]; then
      say "$1: still building, $SECONDS s"
      next=$((next + 30))
    fi
  done
  wait "$2"
}

compile() { # name module package x-flags, into $assets
  local name=$1 module=$2 package=$3 link=$LINK_FLAGS x
  [[ $4 == - ]] || for x in ${4//,/ }; do link+=" -X $x"; done
  say "$name: building"
  SECONDS=0
  # The lock (descriptor 9) stays with this script: a compiler left behind must not hold it.
  # A compiler lives for a moment: it need not collect what it leaves behind so often.
  (cd "$modules/$module" && exec env GOGC="${GOGC:-400}" go build "${BUILD_FLAGS[@]}" -ldflags "$link" -o "$assets/.$name.partial" "$package") \
    >"$assets/.$name.log" 2>&1 9>&- &
  if ! await "$name" $!; then
    tail -n 40 "$assets/.$name.log" >&2
    die "$name: build failed after $SECONDS s (whole log: $assets/.$name.log)"
  fi
  mv -f "$assets/.$name.partial" "$assets/$name"
  rm -f "$assets/.$name.log"
  say "$name: built in $SECONDS s"
}

# Tests against another Kubernetes would say nothing about the one that is meant.
check_given_kubernetes() {
  local server=${KUBEBUILDER_ASSETS:-}/kube-apiserver wanted found
  [[ -n ${KUBEBUILDER_ASSETS:-} && $KUBEBUILDER_ASSETS != "$assets" && -x $server ]] || return 0
  wanted=$(sed -n 's/^kube-apiserver .*gitVersion=\(v[0-9]*\.[0-9]*\)\..*/\1/p' pins)
  found=$("$server" --version)
  [[ $found == *" $wanted."* ]] ||
    die "KUBEBUILDER_ASSETS has $found in $KUBEBUILDER_ASSETS, and tests are for Kubernetes $wanted: unset it, and this one is built"
}

build_binaries() { # name... ; all without names
  local name module package x_flags wanted=" $* "
  while read -r name module package x_flags; do
    [[ $# == 0 || $wanted == *" $name "* ]] || continue
    if [[ -x $assets/$name ]]; then
      say "$name: cached"
    elif [[ -n ${KUBEBUILDER_ASSETS:-} && -x $KUBEBUILDER_ASSETS/$name ]]; then
      say "$name: taken from KUBEBUILDER_ASSETS"
    else
      require_tools
      compile "$name" "$module" "$package" "$x_flags" </dev/null
    fi
  done < <(grep -v '^#' "$pins")
}

# A folder of manifests from modules. Each argument after its name is a wrapper, the path of a module that it requires, and a
# pattern below that. They all go into one folder: no two of the files have one name.
copy_manifests() { # name wrapper:path:pattern...
  local name=$1 entry wrapper path pattern source
  shift
  if [[ -d $assets/$name ]]; then
    say "$name: cached"
    return
  fi
  require_tools
  rm -rf "$assets/.$name.partial"
  mkdir "$assets/.$name.partial"
  for entry in "$@"; do
    IFS=: read -r wrapper path pattern <<<"$entry"
    source=$(cd "$modules/$wrapper" && go list -m -f '{{.Dir}}' "$path")
    # shellcheck disable=SC2086 # the pattern
    cp "$source"/$pattern "$assets/.$name.partial/"
  done
  chmod u+w "$assets/.$name.partial"/*
  mv "$assets/.$name.partial" "$assets/$name"
  say "$name: copied"
}

copy_flux_crds() {
  copy_manifests flux-crds 'source-controller:github.com/fluxcd/source-controller:config/crd/bases/*.yaml' \
    'kustomize-controller:github.com/fluxcd/kustomize-controller:config/crd/bases/*.yaml'
}

# The kinds of cert-manager that conventions read. Its programs are no part of the module.
copy_cert_manager_crds() {
  local folder=$assets/cert-manager-crds partial=$assets/.cert-manager-crds.partial
  if [[ -e $folder/version && $(<"$folder/version") == "$CERT_MANAGER" ]]; then
    say "cert-manager-crds: cached"
    return
  fi
  require_tools
  local said source
  said=$(cd / && go mod download -json "$CERT_MANAGER")
  [[ $said == *"\"Sum\": \"$CERT_MANAGER_SUM\""* ]] ||
    die "$CERT_MANAGER is not what it was when it was pinned: $said"
  source=$(sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' <<<"$said")
  rm -rf "$partial" "$folder"
  mkdir "$partial"
  cp "$source"/deploy/crds/cert-manager.io_certificate{s,requests}.yaml "$partial/"
  chmod u+w "$partial"/*
  echo "$CERT_MANAGER" >"$partial/version"
  mv "$partial" "$folder"
  say "cert-manager-crds: copied"
}

known() { # name...
  local name
  for name in "$@"; do
    grep -q "^$name " pins || die "no binary is called '$name'; see hack/control-plane/pins, or use --path or --clean"
  done
}

build() { # name... ; all without names
  known "$@"
  if [[ $# == 0 ]]; then
    check_git
    check_given_kubernetes
  fi
  mkdir -p "$assets"
  # Two runs at once (two terminals, `make test` and an editor) would compile everything twice.
  if command -v flock >/dev/null; then
    exec 9>"$assets/.lock"
    flock -n 9 || { say "another run is building, waiting for it" && flock 9; }
  fi
  build_binaries "$@"
  if [[ $# == 0 ]]; then
    copy_flux_crds
    copy_cert_manager_crds
  fi
  say "ready in $assets"
}

# What is given by KUBEBUILDER_ASSETS is of the minor that is pinned, so it is none of these.
build_others() { # flag --path?
  local flag=$1
  shift
  [[ ${1:-} != --path ]] || { echo "$assets"; return; }
  [[ $# == 0 ]] || die "unknown argument '$1'; known: $flag [--path]"
  [[ $flag != --third-party ]] || check_redis
  mkdir -p "$assets"
  KUBEBUILDER_ASSETS='' build_binaries
  [[ $flag != --third-party ]] || copy_third_party_manifests
  say "ready in $assets"
}

# Argo CD keeps what it knows there. It is no Go program.
check_redis() {
  command -v redis-server >/dev/null || die "redis is missing: install it (Debian: apt-get install redis-server)"
}

copy_third_party_manifests() {
  local serving=knative-serving:knative.dev/serving:config/core networking=knative-serving:knative.dev/networking:config
  copy_manifests argo-cd-crds 'argo-cd:github.com/argoproj/argo-cd/v3:manifests/crds/*-crd.yaml'
  copy_manifests knative-serving-crds "$serving/300-resources/*.yaml" 'knative-serving:knative.dev/caching:config/*.yaml' \
    "$networking"/{certificate,domain-claim,ingress,serverlessservice}.yaml
  copy_manifests knative-serving-config "$serving/configmaps/*.yaml" "$networking/config-network.yaml"
}

if [[ ${1:-} == --kubernetes ]]; then
  modules=minors/${2:-}
  pins=$modules/pins
  [[ -n ${2:-} && -f $pins ]] || die "no minor of Kubernetes is called '${2:-}'; there are: $(cd minors && echo *)"
  shift 2
  assets=$(assets_folder)
  build_others "--kubernetes ${modules#*/}" "$@"
  exit
fi
if [[ ${1:-} == --third-party ]]; then
  modules=third-party
  pins=$modules/pins
  assets=$(assets_folder)
  build_others "$@"
  exit
fi
assets=$(assets_folder)
case ${1:-} in
  --path) echo "$assets" ;;
  --clean) rm -rf "$cache" ;;
  -*) die "unknown argument '$1'; known: --path, --clean, --kubernetes, --third-party" ;;
  *) build "$@" ;;
esac
