//! What the controllers' Pods say of themselves: metrics, logs, restarts.

use std::collections::BTreeMap;

use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, LogParams};
use serde_json::Value;
use test_support::{CONTROLLERS_NAMESPACE, sum_of};
use tokio::time::Instant;

use crate::path_stack::PathStack;

const MIB: f64 = 1024.0 * 1024.0;

fn pods(stack: &PathStack) -> anyhow::Result<Api<Pod>> {
    Ok(Api::namespaced(
        stack.control_plane.client()?,
        CONTROLLERS_NAMESPACE,
    ))
}

fn ours() -> ListParams {
    ListParams::default().labels("app.kubernetes.io/part-of=carto")
}

/// Adds the memory that each controller's process takes now, by what it says itself: seconds since the begin, and MiB.
pub(super) async fn sample(
    stack: &PathStack,
    begun: Instant,
    samples: &mut BTreeMap<String, Vec<(f64, f64)>>,
) -> anyhow::Result<()> {
    for (name, metrics) in metrics(stack).await? {
        let bytes = sum_of(&metrics, "process_resident_memory_bytes", &[]);
        let mib = bytes.with_context(|| format!("{name} does not say what it takes"))? / MIB;
        let seen = samples.entry(name).or_default();
        seen.push((begun.elapsed().as_secs_f64(), mib));
    }
    Ok(())
}

/// What the controllers' Pods export, each with its name.
async fn metrics(stack: &PathStack) -> anyhow::Result<Vec<(String, String)>> {
    let client = stack.control_plane.client()?;
    let mut all = Vec::new();
    for pod in pods(stack)?.list(&ours()).await? {
        let name = pod.metadata.name.context("a Pod without a name")?;
        let path =
            format!("/api/v1/namespaces/{CONTROLLERS_NAMESPACE}/pods/{name}:9998/proxy/metrics");
        let text = client.request_text(http::Request::get(path).body(Vec::new())?);
        all.push((name, text.await?));
    }
    Ok(all)
}

/// How many tokens of service accounts were issued, and how many were not.
pub(super) async fn tokens(stack: &PathStack) -> anyhow::Result<(f64, f64)> {
    let (mut issued, mut requests) = (0.0, 0.0);
    for (_, metrics) in metrics(stack).await? {
        // Not every controller asks for tokens.
        let of = |labels: &[&str]| sum_of(&metrics, "carto_token_requests_total", labels);
        issued += of(&[r#"outcome="issued""#]).unwrap_or_default();
        requests += of(&[]).unwrap_or_default();
    }
    Ok((issued, requests - issued))
}

/// What controllers logged as errors, and how often they were started again.
pub(super) async fn complaints(stack: &PathStack) -> anyhow::Result<(Vec<String>, i32)> {
    let pods = pods(stack)?;
    let (mut errors, mut restarts) = (Vec::new(), 0);
    for pod in pods.list(&ours()).await? {
        let name = pod.metadata.name.context("a Pod without a name")?;
        let log = pods.logs(&name, &LogParams::default()).await?;
        let told = log.lines().filter(|line| is_error(line));
        errors.extend(told.map(|line| format!("{name}: {line}")));
        let containers = pod.status.and_then(|it| it.container_statuses);
        restarts += containers
            .iter()
            .flatten()
            .map(|it| it.restart_count)
            .sum::<i32>();
    }
    Ok((errors, restarts))
}

/// A line that is no JSON is a panic's.
fn is_error(line: &str) -> bool {
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    let level = line["level"].as_str();
    level.is_none_or(|level| level.eq_ignore_ascii_case("error"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_panics_are_errors_and_other_levels_are_not() {
        assert!(is_error(r#"{"level":"ERROR","message":"refused"}"#));
        assert!(is_error("thread 'main' panicked at src/main.rs"));
        assert!(!is_error(r#"{"level":"WARN","message":"late"}"#));
        assert!(!is_error(
            r#"{"level":"INFO","message":"an error in a text"}"#
        ));
    }
}
