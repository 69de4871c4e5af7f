//! The rules of docs/behaviour/attribution.md for kinds of third-party controllers that no other test runs, with these
//! controllers. `make test-third-party` builds them and runs this.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod argo_cd;
mod chain;
mod knative;

use std::time::Duration;

/// How long anything may take, on a busy machine.
const LIMIT: Duration = Duration::from_mins(3);
