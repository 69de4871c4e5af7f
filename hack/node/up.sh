#!/usr/bin/env bash
# Runs one real Kubernetes node (containerd, kubelet, kube-proxy, DNS, scheduler, workload controllers) beside a control plane
# that runs on this machine already. In the foreground, until stdin ends, Ctrl-C or SIGTERM; then nothing of it is left.
#
#   up.sh KUBECONFIG FOLDER [CONTROLLERS]   run a node; images, keys and logs lie in FOLDER. Prints "node: ready"
#   up.sh --down                            end a node and what an earlier one, killed with SIGKILL, left behind
#   up.sh --apiserver-flags                 print the flags that kube-apiserver needs for a node
#   up.sh --check                           say what is missing, if a node cannot run here
#
# CONTROLLERS are those of kube-controller-manager that run here: leave out what the control plane runs itself.
#
# How it stays clean: all parts live in mount, network and process namespaces of their own (inside.sh), and in a cgroup of
# their own. When the first process in there ends, the kernel kills the rest, Pods included, and with the last one go
# mounts, network and iptables rules. What remains is for us: empty cgroups.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# shellcheck source=hack/node/addresses.sh
source "$here/addresses.sh"
readonly DEFAULT_CONTROLLERS=deployment-controller,replicaset-controller,job-controller,cronjob-controller,\
statefulset-controller,daemonset-controller,endpointslice-controller,endpoints-controller,node-lifecycle-controller,\
taint-eviction-controller,disruption-controller,pod-garbage-collector-controller,ttl-after-finished-controller
readonly OTHER_NODE_LIMIT=60

say() { printf 'node: %s\n' "$*" >&2; }

die() {
  say "$@"
  exit 1
}

apiserver_flags() {
  # Pods see the API server as a Service whose endpoint may not be on loopback; it must listen there, too.
  echo "--bind-address=0.0.0.0"
  echo "--advertise-address=$HOST_IP"
  echo "--endpoint-reconciler-type=lease"
  echo "--service-cluster-ip-range=$SERVICE_CIDR"
  # The name of a node is no DNS name here.
  echo "--kubelet-preferred-address-types=InternalIP"
}

our_cgroups() { find /sys/fs/cgroup -depth -type d -path "*/$CGROUP*" 2>/dev/null; }

# Kills what is in our cgroups and removes them. A cgroup can be removed a moment after its last process is gone.
sweep() {
  local folder pid tries
  for ((tries = 0; tries < 150; tries++)); do
    [[ -n $(our_cgroups) ]] || return 0
    while read -r folder; do
      while read -r pid; do kill -KILL "$pid" 2>/dev/null || true; done 2>/dev/null <"$folder/cgroup.procs" || true
      rmdir "$folder" 2>/dev/null || true
    done < <(our_cgroups)
    sleep 0.1
  done
  die "these cgroups cannot be removed: $(our_cgroups | tr '\n' ' ')"
}

require_root() {
  [[ $(id -u) == 0 ]] || die "a node needs root (namespaces, mounts, cgroups): run this as root"
}

require_binaries() {
  local name
  PATH=$("$here/build.sh" --path):${KUBEBUILDER_ASSETS:-}:${CARTO_ASSETS:-$("$here/../control-plane/build.sh" --path)}:/usr/sbin:/sbin:$PATH
  export PATH
  for name in kubelet kube-scheduler kube-proxy coredns kube-controller-manager kubectl containerd runc iptables setpriv unshare nsenter ip busybox; do
    command -v "$name" >/dev/null || die "$name is missing: run 'make control-plane node'"
  done
}

# The node sees the API server under another address than its certificate does.
write_kubeconfig() { # given written
  local server authority host cluster
  kubectl --kubeconfig "$1" config view --flatten --minify --raw >"$2"
  server=$(kubectl --kubeconfig "$2" config view --output 'jsonpath={.clusters[0].cluster.server}')
  cluster=$(kubectl --kubeconfig "$2" config view --output 'jsonpath={.clusters[0].name}')
  authority=${server#https://}
  host=${authority%:*}
  [[ $server == https://* && ($host == 127.0.0.1 || $host == localhost) ]] ||
    die "the API server of $1 is at $server; only one that runs on this machine will do (https://127.0.0.1:PORT)"
  kubectl --kubeconfig "$2" config set-cluster "$cluster" \
    --server="https://$HOST_IP:${authority##*:}" --tls-server-name="$host" >/dev/null
}

# Addresses and names are fixed, so one node at a time runs on a machine. /run itself is the lock: no file stays.
lock() {
  exec 9</run
  flock -n 9 && return 0
  say "another node runs on this machine, waiting for its end"
  flock -w "$OTHER_NODE_LIMIT" 9 || die "the other node still runs after $OTHER_NODE_LIMIT s; '$here/up.sh --down' ends it"
}

run() { # kubeconfig folder controllers
  require_root
  require_binaries
  mkdir -p "$2/log"
  local folder inside
  folder=$(cd "$2" && pwd -P)
  [[ $folder != /run/* && $folder != /var/lib/* && $folder != /var/log/* ]] || die "$folder is hidden inside the node: take another one"
  chmod 700 "$folder"
  lock
  sweep
  write_kubeconfig "$1" "$folder/kubeconfig"
  "$here/image.sh" "$folder/tools.tar"
  # Descriptor 8 is the way back to the network of the machine. If this script is killed, the kernel kills its child.
  setpriv --pdeathsig KILL -- unshare --mount --net --pid --fork --mount-proc --kill-child=KILL -- \
    "$here/inside.sh" "$folder" "$3" <&0 9<&- 8</proc/self/ns/net &
  inside=$!
  trap 'kill -KILL "$inside" 2>/dev/null || true' INT TERM HUP
  local status=0
  wait "$inside" || status=$?
  trap '' INT TERM HUP
  sweep
  say "stopped, nothing is left"
  # Ended from outside is not a failure.
  [[ $status -lt 128 ]] || status=0
  return "$status"
}

case ${1:-} in
  --down)
    require_root
    sweep
    say "nothing is left"
    ;;
  --apiserver-flags) apiserver_flags ;;
  --check)
    require_root
    require_binaries
    ;;
  -* | '') die "usage: up.sh KUBECONFIG FOLDER [CONTROLLERS] | --down | --apiserver-flags | --check" ;;
  *) run "$1" "${2:?the folder of the node}" "${3:-$DEFAULT_CONTROLLERS}" ;;
esac
