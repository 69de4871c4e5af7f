//! What needs Pods that run: a real node on this machine. Needs root; `make test-node` runs it.

mod full_path;
mod installed;
mod killed;
mod killing;
mod tekton;
mod traces;
mod workloads;

use std::time::Duration;

/// How long anything may take, on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);
