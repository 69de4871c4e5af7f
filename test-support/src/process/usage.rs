//! What a process used, from `/proc`.

use std::fs;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// Linux counts CPU time for user space in hundredths of a second on every architecture (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;
const KIB_PER_MIB: f64 = 1024.0;

/// What one process used since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// User and system time of all threads, in seconds.
    pub cpu_seconds: f64,
    /// Resident memory now, in MiB.
    pub rss_mib: f64,
    /// The most resident memory there ever was, in MiB.
    pub peak_rss_mib: f64,
}

impl Usage {
    /// Of a process, by its id.
    ///
    /// # Errors
    ///
    /// When there is no such process.
    pub fn of(pid: u32) -> anyhow::Result<Self> {
        let read = |file: &str| {
            let path = format!("/proc/{pid}/{file}");
            fs::read_to_string(&path).with_context(|| path)
        };
        Self::parse(&read("stat")?, &read("status")?).with_context(|| format!("/proc/{pid}"))
    }

    /// From the text of `/proc/PID/stat` and `/proc/PID/status`.
    fn parse(stat: &str, status: &str) -> Option<Self> {
        // The program's name, in parentheses, may hold blanks and parentheses; fields are counted from its end.
        let (_, fields) = stat.rsplit_once(')')?;
        let field = |number: usize| {
            let text = fields.split_whitespace().nth(number - 3);
            text?.parse::<f64>().ok()
        };
        let mib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
            Some(kib / KIB_PER_MIB)
        };
        Some(Self {
            cpu_seconds: (field(14)? + field(15)?) / TICKS_PER_SECOND,
            rss_mib: mib("VmRSS")?,
            peak_rss_mib: mib("VmHWM")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tx\nVmPeak:\t 99999 kB\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";

    #[test]
    fn cpu_time_is_user_plus_system_even_with_a_strange_program_name() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194304 100 0 0 0 150 50 7 7 20 0 5 0 100 1 2";
        let expected = Usage {
            cpu_seconds: 2.0,
            rss_mib: 1.0,
            peak_rss_mib: 2.0,
        };
        assert_eq!(Usage::parse(stat, STATUS), Some(expected));
        // One that has ended has no memory to report.
        assert_eq!(Usage::parse(stat, "Name:\tx\n"), None);
    }

    #[test]
    fn our_own_usage_can_be_read() {
        let own = Usage::of(std::process::id()).unwrap();
        assert!(own.rss_mib > 0.0 && own.peak_rss_mib >= own.rss_mib);
    }
}
