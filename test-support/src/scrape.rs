//! What a controller says of itself over HTTP: metrics, and whether it is ready.

use anyhow::{Context as _, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::eventually;
use crate::stage::PATIENCE;

/// The sum over a metric's series that have all these labels, each as `name="value"`: zero when the metric is there without
/// such a series, nothing when there is no metric of that name. A test that asks for a metric nobody has must not pass.
pub fn sum_of(exposition: &str, metric: &str, labels: &[&str]) -> Option<f64> {
    let mut series = exposition
        .lines()
        .filter_map(|line| series(line, metric))
        .peekable();
    series.peek()?;
    let has = |of: &str, label: &str| {
        let mut found = of.match_indices(label);
        found.any(|(at, _)| at == 0 || of[..at].ends_with(','))
    };
    Some(
        series
            .filter(|(of, _)| labels.iter().all(|label| has(of, label)))
            .map(|(_, value)| value)
            .sum(),
    )
}

/// Labels and value of a line, if it is of the metric.
fn series<'l>(line: &'l str, metric: &str) -> Option<(&'l str, f64)> {
    let rest = line.strip_prefix(metric)?;
    let (labels, value) = match rest.strip_prefix('{') {
        Some(labelled) => labelled.rsplit_once("} ")?,
        None => ("", rest.strip_prefix(' ')?),
    };
    // A time may follow.
    let value = value.split_whitespace().next()?;
    Some((labels, value.parse().ok()?))
}

/// As [`sum_of`], of the process that serves this port; nothing, too, while it does not answer.
pub(crate) async fn metric(port: u16, name: &str, labels: &[&str]) -> Option<f64> {
    sum_of(&http_get(port, "/metrics").await.ok()?, name, labels)
}

/// Waits until nothing is being reconciled or about to be, in any queue: the status of a blueprint is a request, too.
pub(crate) async fn idle(port: u16) {
    eventually("the controller is idle", PATIENCE, async || {
        let text = http_get(port, "/metrics").await?;
        let of = |name: &str| sum_of(&text, name, &[]).with_context(|| format!("no {name}"));
        let (running, waiting) = (of("carto_queue_running")?, of("carto_queue_depth")?);
        ensure!(running + waiting < 0.5, "{running} run, {waiting} wait");
        anyhow::Ok(())
    })
    .await;
}

/// The body that a server on this port of the machine answers with; a path such as `/readyz`.
///
/// # Errors
///
/// When it does not answer, or with anything but 200.
pub async fn http_get(port: u16, path: &str) -> anyhow::Result<String> {
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port))
        .await
        .with_context(|| format!("port {port}"))?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("an answer without a body")?;
    let status = head.lines().next().unwrap_or_default();
    ensure!(status.contains(" 200"), "{path}: {head}\n\n{body}");
    Ok(body.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# HELP carto_reconcile_total Reconciles.
# TYPE carto_reconcile_total counter
carto_reconcile_total{kind="Workload",outcome="done"} 40
carto_reconcile_total{kind="Workload",outcome="retry"} 2
carto_reconcile_total{kind="ClusterSupplyChain",outcome="done"} 1
carto_reconcile_total_created{kind="Workload"} 7
other{subkind="Workload",kind="x"} 5 1700000000000
plain 1.5e3
"#;

    #[test]
    fn series_with_the_wanted_labels_are_added_up() {
        let reconciles = |labels: &[&str]| sum_of(TEXT, "carto_reconcile_total", labels);
        assert_eq!(reconciles(&["kind=\"Workload\""]), Some(42.0));
        let retried = ["kind=\"Workload\"", "outcome=\"retry\""];
        assert_eq!(reconciles(&retried), Some(2.0));
        assert_eq!(reconciles(&[]), Some(43.0));
        assert_eq!(reconciles(&["kind=\"Deliverable\""]), Some(0.0));
    }

    #[test]
    fn a_metric_that_nobody_has_is_not_zero() {
        assert_eq!(sum_of(TEXT, "carto_reconcile", &[]), None);
        assert_eq!(sum_of(TEXT, "carto_reconciles_total", &[]), None);
    }

    #[test]
    fn labels_are_whole_names_and_a_time_is_no_value() {
        assert_eq!(sum_of(TEXT, "other", &["kind=\"Workload\""]), Some(0.0));
        assert_eq!(sum_of(TEXT, "other", &[]), Some(5.0));
        assert_eq!(sum_of(TEXT, "plain", &[]), Some(1500.0));
    }
}
