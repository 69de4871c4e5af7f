# Names and addresses of the one node, for up.sh and inside.sh. None is seen outside this machine.
# shellcheck shell=bash disable=SC2034
CGROUP=carto-node
NODE_NAME=carto-node
LINK=carto-node
# The machine and the node at the two ends of a virtual cable.
HOST_IP=10.245.0.1
NODE_IP=10.245.0.2
POD_CIDR=10.244.0.0/24
SERVICE_CIDR=10.97.0.0/16
