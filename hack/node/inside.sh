#!/usr/bin/env bash
# The first process in the namespaces of a node; up.sh starts it. It ends when stdin ends or a part does, and all with it.
#
#   inside.sh FOLDER CONTROLLERS      descriptor 8: the network namespace of the machine
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# shellcheck source=hack/node/addresses.sh
source "$here/addresses.sh"
readonly FOLDER=$1 CONTROLLERS=$2
readonly KUBECONFIG=$FOLDER/kubeconfig SOCKET=$FOLDER/containerd.sock
# Seconds. The API server runs by now; the others start on a busy machine.
readonly ANSWER_LIMIT=20 START_LIMIT=120
export KUBECONFIG

say() { printf 'node: %s\n' "$*" >&2; }

die() {
  say "$@"
  exit 1
}

on_machine() { nsenter --net=/proc/self/fd/8 -- "$@"; }

# Quiet, as some files refuse some values on some kernels: the caller knows whether that matters.
put() { (echo "$1" >"$2") 2>/dev/null; }

hierarchies() { awk '$3 == "cgroup" && $2 ~ /^\/sys\/fs\/cgroup\// {print $2}' /proc/mounts; }

# Pods live below a cgroup of ours, not beside those of a kubelet that may run on the machine; so do the parts.
make_cgroups() {
  local folder controller file
  if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
    mkdir -p "/sys/fs/cgroup/$CGROUP/parts"
    put $$ "/sys/fs/cgroup/$CGROUP/parts/cgroup.procs"
    for controller in $(</sys/fs/cgroup/cgroup.controllers); do
      put "+$controller" /sys/fs/cgroup/cgroup.subtree_control || true
      put "+$controller" "/sys/fs/cgroup/$CGROUP/cgroup.subtree_control" || true
    done
    return
  fi
  for folder in $(hierarchies); do
    mkdir -p "$folder/$CGROUP"
    for file in cpuset.cpus cpuset.mems; do # new ones are empty, and then nothing may run there
      [[ ! -e $folder/$file ]] || put "$(<"$folder/$file")" "$folder/$CGROUP/$file"
    done
  done
  mkdir -p "/sys/fs/cgroup/pids/$CGROUP/parts"
  put $$ "/sys/fs/cgroup/pids/$CGROUP/parts/cgroup.procs"
}

# What parts write at fixed paths must not reach the machine. Large things lie in the folder, the rest in memory.
make_mounts() {
  local path
  mount --make-rshared /
  for path in /run /var/lib /var/log; do mount -t tmpfs -o mode=755 tmpfs "$path"; done
  for path in kubelet containerd; do
    mkdir -p "$FOLDER/$path" "/var/lib/$path"
    mount --bind "$FOLDER/$path" "/var/lib/$path"
  done
}

# The cable and the routes on the machine's side vanish with this namespace.
make_network() {
  local tries range
  for ((tries = 0; tries < 100; tries++)); do # that of an earlier node may take a moment to vanish
    on_machine ip link add "$LINK" type veth peer name eth0 netns $$ 2>/dev/null && break
    sleep 0.1
  done
  on_machine ip link show "$LINK" >/dev/null || die "no link named $LINK can be made"
  on_machine ip address add "$HOST_IP/30" dev "$LINK"
  on_machine ip link set "$LINK" up
  ip link set lo up
  ip address add "$NODE_IP/30" dev eth0
  ip link set eth0 up
  ip route add default via "$HOST_IP"
  # The API server calls webhooks at their Service, and tests may look at Pods.
  for range in "$POD_CIDR" "$SERVICE_CIDR"; do
    on_machine ip route add "$range" via "$NODE_IP" ||
      die "$range is in use on this machine (ip route): another cluster? Its addresses and these must differ: $here/addresses.sh"
  done
  put 1 /proc/sys/net/ipv4/ip_forward || die "Pods cannot be routed: ip_forward cannot be set"
  # Pod to Service to Pod on one bridge: the answer has to pass the NAT rules too.
  put 1 /proc/sys/net/bridge/bridge-nf-call-iptables || true
}

write_containerd_config() {
  # Without CAP_SYS_RESOURCE nobody may lower oom_score_adj, and runc dies on a sandbox's -998 with a message about a pipe.
  local restrict=false
  put -998 /proc/self/oom_score_adj || restrict=true
  mkdir -p "$FOLDER/cni"
  cat >"$FOLDER/cni/10-bridge.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "$CGROUP", "plugins": [
  {"type": "bridge", "bridge": "pods0", "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$POD_CIDR"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
  cat >"$FOLDER/containerd.toml" <<TOML
version = 2
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "$SOCKET"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/carto-test/tools:1"
  restrict_oom_score_adj = $restrict
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "$FOLDER/registries"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$FOLDER/cni"
TOML
}

# The kubelet is reached from this machine and its Pods only: no client has to show who it is.
write_kubelet_config() {
  : >"$FOLDER/resolv.conf"
  cat >"$FOLDER/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP
containerRuntimeEndpoint: unix://$SOCKET
address: $NODE_IP
healthzPort: 0
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
resolvConf: $FOLDER/resolv.conf
clusterDNS: [$NODE_IP]
clusterDomain: cluster.local
failSwapOn: false
serializeImagePulls: false
# An image that was imported stays usable when the same one is pulled under another name.
imagePullCredentialsVerificationPolicy: NeverVerify
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%"}
YAML
}

write_proxy_config() {
  cat >"$FOLDER/proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clusterCIDR: $POD_CIDR
hostnameOverride: $NODE_NAME
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
clientConnection: {kubeconfig: $KUBECONFIG}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
iptables: {minSyncPeriod: 0s}
YAML
}

# Names of Services, and no others: what is beyond this machine is not reached by name either.
write_dns_config() {
  cat >"$FOLDER/Corefile" <<CONFIG
cluster.local {
  bind $NODE_IP
  errors
  kubernetes cluster.local {
    kubeconfig $KUBECONFIG
  }
}
CONFIG
}

declare -A parts=()

start() { # program arguments...
  "$@" >"$FOLDER/log/$1.log" 2>&1 </dev/null 8<&- &
  parts[$!]=$1
}

# Ends everything when one of the children is dead: nobody waits for a node whose kubelet gave up.
check_parts() {
  local pid
  for pid in "${!parts[@]}"; do
    [[ -d /proc/$pid ]] && ! grep -q '^State:\s*Z' "/proc/$pid/status" 2>/dev/null && continue
    tail -n 20 "$FOLDER/log/${parts[$pid]}.log" >&2
    die "${parts[$pid]} ended early (whole log: $FOLDER/log/${parts[$pid]}.log)"
  done
}

await() { # limit what command...
  local limit=$1 what=$2 deadline=$((SECONDS + $1))
  shift 2
  until "$@" >/dev/null 2>&1; do
    check_parts
    [[ $SECONDS -lt $deadline ]] || die "$what: not there within $limit s (logs: $FOLDER/log)"
    sleep 0.1
  done
}

node_is_ready() {
  local answer
  # Condition, then taints: without the node lifecycle controller the taint of a new node stays.
  answer=$(kubectl --request-timeout=5s get node "$NODE_NAME" --output \
    'jsonpath={.status.conditions[?(@.type=="Ready")].status}/{.spec.taints}')
  [[ $answer == True/ ]]
}

services_are_programmed() { busybox wget -q -O - http://127.0.0.1:10256/healthz; }

start_runtime() {
  say "container runtime"
  start containerd --config "$FOLDER/containerd.toml"
  await "$START_LIMIT" "the container runtime" ctr --address "$SOCKET" version
  ctr --address "$SOCKET" --namespace k8s.io images import "$FOLDER/tools.tar" >"$FOLDER/log/import.log" 2>&1 ||
    die "the image of tools cannot be imported: $(tail -n 5 "$FOLDER/log/import.log")"
}

start_node() {
  await "$ANSWER_LIMIT" "the API server at $HOST_IP (does it have the flags of 'up.sh --apiserver-flags'?)" kubectl --request-timeout=5s get --raw /readyz
  say "kubelet, kube-proxy, DNS, scheduler and controllers"
  start kubelet --config="$FOLDER/kubelet.yaml" --kubeconfig="$KUBECONFIG" --hostname-override="$NODE_NAME" --node-ip="$NODE_IP"
  start kube-proxy --config="$FOLDER/proxy.yaml"
  start coredns -conf "$FOLDER/Corefile"
  start kube-scheduler --kubeconfig="$KUBECONFIG" --leader-elect=false --secure-port=0
  # The default limits of requests make it the slowest part of every test.
  start kube-controller-manager --kubeconfig="$KUBECONFIG" --leader-elect=false --secure-port=0 --controllers="$CONTROLLERS" \
    --use-service-account-credentials=false --kube-api-qps=1000 --kube-api-burst=2000
  await "$START_LIMIT" "the node" node_is_ready
  await "$START_LIMIT" "kube-proxy" services_are_programmed
}

make_cgroups
make_mounts
make_network
write_containerd_config
write_kubelet_config
write_proxy_config
write_dns_config
# Whoever started us holds the other end of stdin; the kernel closes it when that process dies, also while a node starts.
trap 'exit 0' USR1
{ cat >/dev/null; kill -USR1 1; } <&0 8<&- &
start_runtime
start_node
say "ready"
wait -n || true
check_parts
