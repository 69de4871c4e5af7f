#!/usr/bin/env bash
# Builds what a node needs beyond the control plane (kubelet, kube-scheduler, kube-proxy, CoreDNS) and what runs on it in
# tests (Tekton Pipelines); pinned, see `pins` and modules/. Checks for what comes from the distribution: containerd, runc,
# CNI plugins.
#
#   build.sh          build and install what is missing; needs root, as a node does
#   build.sh --path   print the folder of binaries, build nothing
#   build.sh --clean  remove every cached build
#
# CARTO_CACHE   where the cache lies (default: $XDG_CACHE_HOME/carto, else ~/.cache/carto)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# The flags of ../control-plane/build.sh: with others, the packages that both share would be compiled again.
export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOTOOLCHAIN=local GOWORK=off
readonly BUILD_FLAGS=(-trimpath -buildvcs=false)
readonly LINK_FLAGS='-s -w'

# Debian's names, each after a file it brings.
readonly PACKAGES=(
  /usr/bin/containerd:containerd
  /usr/sbin/runc:runc
  /usr/lib/cni/bridge:containernetworking-plugins
  /usr/sbin/iptables:iptables
  /usr/sbin/conntrack:conntrack
  /bin/ip:iproute2
  /usr/bin/unshare:util-linux
  /bin/busybox:busybox-static
  /usr/lib/git-core/git-remote-http:git
)

cache=${CARTO_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/carto}/node

say() { printf 'node: %s\n' "$*" >&2; }

die() {
  say "$@"
  exit 1
}

binaries_folder() {
  local hash
  hash=$({
    echo "${BUILD_FLAGS[*]} $LINK_FLAGS $CGO_ENABLED $(uname -sm)"
    grep -v '^#' pins
    cat modules/*/go.mod modules/*/go.sum
  } | sha256sum | cut -c 1-16)
  echo "$cache/$hash"
}

require_root() {
  [[ $(id -u) == 0 ]] ||
    die "a node needs root (namespaces, mounts, cgroups): run this again as root, for example 'sudo -E make node'." \
      "Without root, 'make test' tests everything that needs no node"
}

install_packages() {
  local entry missing=()
  for entry in "${PACKAGES[@]}"; do
    [[ -e ${entry%%:*} ]] || missing+=("${entry#*:}")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  command -v apt-get >/dev/null ||
    die "missing: ${missing[*]} (names of Debian's packages). Install them, at the paths of Debian, then run this again"
  say "installing ${missing[*]}"
  DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends "${missing[@]}" >"$cache/apt.log" 2>&1 || {
    tail -n 20 "$cache/apt.log" >&2
    die "apt-get install ${missing[*]} failed: run 'apt-get update', then this again"
  }
}

# A line every half minute, so that nobody takes silent minutes for a hang.
await() { # name pid
  local next=30
  while kill -0 "$2" 2>/dev/null; do
    sleep 0.2
    [[ $SECONDS -lt $next ]] || {
      say "$1: still building, $SECONDS s"
      next=$((next + 30))
    }
  done
  wait "$2"
}

compile() { # name module package x-flags, into $binaries
  local name=$1 module=$2 package=$3 link=$LINK_FLAGS x
  [[ $4 == - ]] || for x in ${4//,/ }; do link+=" -X $x"; done
  command -v go >/dev/null || die "Go is missing: 'make control-plane' says which version is needed"
  say "$name: building"
  mkdir -p "$(dirname "$binaries/$name")"
  SECONDS=0
  # The lock (descriptor 9) stays with this script: a compiler left behind must not hold it.
  (cd "modules/$module" && exec go build "${BUILD_FLAGS[@]}" -ldflags "$link" -o "$binaries/$name.partial" "$package") \
    >"$binaries/$name.log" 2>&1 9>&- &
  await "$name" $! || {
    tail -n 40 "$binaries/$name.log" >&2
    die "$name: build failed after $SECONDS s (whole log: $binaries/$name.log)"
  }
  mv -f "$binaries/$name.partial" "$binaries/$name"
  rm -f "$binaries/$name.log"
  say "$name: built in $SECONDS s"
}

# What `kubectl apply` of a release of Tekton would bring, but for the names of images: its manifests beside its programs.
copy_tekton_config() {
  [[ ! -d $binaries/tekton/config ]] || return 0
  local module
  module=$(cd modules/tekton && go list -m -f '{{.Dir}}' github.com/tektoncd/pipeline)
  rm -rf "$binaries/tekton/config.partial"
  cp -r "$module/config" "$binaries/tekton/config.partial"
  chmod -R u+w "$binaries/tekton/config.partial"
  mv "$binaries/tekton/config.partial" "$binaries/tekton/config"
  say "tekton/config: copied"
}

build() {
  require_root
  mkdir -p "$binaries"
  exec 9>"$binaries/.lock"
  flock -n 9 || { say "another run is building, waiting for it" && flock 9; }
  install_packages
  local name module package x_flags
  while read -r name module package x_flags; do
    if [[ -x $binaries/$name ]]; then
      say "$name: cached"
    else
      compile "$name" "$module" "$package" "$x_flags" </dev/null
    fi
  done < <(grep -v '^#' pins)
  copy_tekton_config
  say "ready in $binaries"
}

binaries=$(binaries_folder)
case ${1:-} in
  --path) echo "$binaries" ;;
  --clean) rm -rf "$cache" ;;
  '') build ;;
  *) die "unknown argument '$1'; known: --path, --clean" ;;
esac
