//! What a controller says of itself over HTTP: metrics, and whether it is ready.

use anyhow::{Context as _, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::eventually;
use crate::stage::PATIENCE;

/// The sum over a metric's series whose line contains all of `parts`.
pub(crate) async fn metric(port: u16, name: &str, parts: &[&str]) -> Option<f64> {
    let text = http_get(port, "/metrics").await.ok()?;
    let series = text
        .lines()
        .filter(|line| line.starts_with(&format!("{name}{{")))
        .filter(|line| parts.iter().all(|part| line.contains(part)));
    series
        .map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

/// Waits until nothing is being reconciled or about to be, in any queue: the status of a blueprint is a request, too.
pub(crate) async fn idle(port: u16) {
    eventually("the controller is idle", PATIENCE, async || {
        let running = metric(port, "carto_queue_running", &[]).await?;
        let waiting = metric(port, "carto_queue_depth", &[]).await?;
        (running + waiting < 0.5).then_some(())
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
