//! The shell shared by all controllers: watches, writes, tokens, status, events, leases, telemetry.
//!
//! The engine (`realizer`) decides, this crate does. Read from the outside in:
//!
//! ```text
//! owner (reconcile loop) ─▶ submit (one object) ─▶ cluster (requests)
//!        ▲                        ▲
//!        │ wakes                  │ what the cluster holds
//! reflect (our kinds)      stamped (kinds that templates stamp)
//! ```

mod api_latency;
pub mod args;
pub mod cluster;
pub mod events;
pub mod jitter;
mod kubeconfig;
pub mod lease;
pub mod mapper;
pub mod metrics;
mod object_key;
pub mod openapi;
pub mod owner;
pub mod packed_text;
mod probes;
pub mod process;
mod raw_object;
pub mod reflect;
pub mod scheduler;
pub mod selections;
mod serving;
pub mod share;
mod shared_secret;
pub mod shutdown;
pub mod stamped;
pub mod status;
pub mod status_key;
pub mod submit;
pub mod telemetry;
mod time_of_day;
pub mod tokens;
pub mod waiting;
pub mod webhook;
pub mod ytt;
