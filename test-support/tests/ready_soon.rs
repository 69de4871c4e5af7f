//! How long a test waits for its control plane. A target of its own: nothing else of this crate runs beside it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use test_support::ControlPlane;

/// With the binaries built. Slower, and nobody would start one for each test.
const SOON: Duration = Duration::from_secs(3);
/// The first one reads the binaries from the disk: the best one counts.
const TRIES: usize = 10;

/// A slow or busy machine may take longer, but not because somebody sleeps: etcd and the API server are at work all the time,
/// or wait for a processor.
#[tokio::test]
async fn a_control_plane_is_ready_within_three_seconds() -> anyhow::Result<()> {
    let mut took = Vec::new();
    for _ in 0..TRIES {
        let started = Instant::now();
        let control_plane = ControlPlane::start().await?;
        let ready = started.elapsed();
        let at_work = at_work(control_plane.folder())?;
        if ready < SOON.max(at_work) {
            return Ok(());
        }
        took.push((ready, at_work));
    }
    anyhow::bail!("none of {TRIES} was ready within {SOON:?} or its time at work: {took:?}")
}

/// For how long the threads of etcd and the API server in this folder ran or waited for a processor, together.
fn at_work(folder: &Path) -> anyhow::Result<Duration> {
    let folder = folder.to_string_lossy();
    let (mut programs, mut total) = (0, Duration::ZERO);
    for process in fs::read_dir("/proc")? {
        let process = process?.path();
        // A process may end while we look; so may a thread.
        let Ok(command_line) = fs::read(process.join("cmdline")) else {
            continue;
        };
        let command_line = String::from_utf8_lossy(&command_line);
        let program = command_line.split('\0').next().unwrap_or_default();
        if !["/etcd", "/kube-apiserver"]
            .iter()
            .any(|name| program.ends_with(name))
            || !command_line.contains(&*folder)
        {
            continue;
        }
        programs += 1;
        for thread in fs::read_dir(process.join("task"))? {
            let Ok(times) = fs::read_to_string(thread?.path().join("schedstat")) else {
                continue;
            };
            for nanoseconds in times.split_whitespace().take(2) {
                let nanoseconds = nanoseconds.parse().context("schedstat")?;
                total += Duration::from_nanos(nanoseconds);
            }
        }
    }
    ensure!(programs == 2, "{programs} programs in {folder}");
    Ok(total)
}
