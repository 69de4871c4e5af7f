//! The controller's binary on a real API server.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage has failed"
)]

mod stage;

mod accounts;
mod adoption;
mod applied;
mod artifacts;
mod attribution;
mod attribution_storm;
mod blueprints;
mod chain;
mod clock;
mod cluster_scoped;
mod dependencies;
mod disk;
mod doubt;
mod foreign_fields;
mod forged;
mod handover;
mod hanging;
mod immutable;
mod isolation;
mod kinds;
mod leaving;
mod limits;
mod metrics;
mod missing;
mod namespaces;
mod neighbours;
mod orphans;
mod other_objects;
mod overload;
mod ownership;
mod pruned;
mod recursion;
mod replicas;
mod rights;
mod robustness;
mod secrets;
mod shards;
mod shutdown;
mod stalled;
mod takeover;
mod traces;
mod typed_kinds;
mod unchanged;
mod unstable;
mod updates;
mod ytt;
