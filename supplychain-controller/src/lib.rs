//! Realizes Workloads through ClusterSupplyChains.
