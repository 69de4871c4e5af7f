//! What a process used, from `/proc`.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

/// Linux counts CPU time for user space in hundredths of a second on every architecture (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;
const KIB_PER_MIB: f64 = 1024.0;

/// What one process used since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Usage {
    /// User and system time of all threads, in seconds.
    pub(crate) cpu_seconds: f64,
    /// Resident memory now, in MiB.
    pub(crate) rss_mib: f64,
    /// The most resident memory there ever was, in MiB.
    pub(crate) peak_rss_mib: f64,
}

/// Reads the usage of a process.
///
/// # Errors
///
/// When there is no such process.
pub(crate) fn usage(pid: u32) -> anyhow::Result<Usage> {
    let read = |file: &str| {
        let path = format!("/proc/{pid}/{file}");
        fs::read_to_string(&path).with_context(|| path)
    };
    parse(&read("stat")?, &read("status")?).with_context(|| format!("/proc/{pid}"))
}

/// The programs that run out of one folder or name it on their command line, by file name, with their process ids.
pub(crate) fn processes_naming(folder: &Path) -> Vec<(String, u32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let command_line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let program = program_naming(&command_line, &folder.to_string_lossy())?;
        Some((program, pid))
    })
    .collect()
}

fn program_naming(command_line: &[u8], folder: &str) -> Option<String> {
    let mut words = command_line
        .split(|&byte| byte == 0)
        .map(String::from_utf8_lossy);
    let program = words.next()?;
    let named = words.any(|word| word.contains(folder));
    let name = Path::new(program.as_ref()).file_name()?.to_str()?;
    (named && name != "bash").then(|| name.to_owned())
}

/// From the text of `/proc/PID/stat` and `/proc/PID/status`.
fn parse(stat: &str, status: &str) -> Option<Usage> {
    // The program's name, in parentheses, may hold blanks and parentheses; fields are counted from its end.
    let (_, fields) = stat.rsplit_once(')')?;
    let field = |number: usize| {
        fields
            .split_whitespace()
            .nth(number - 3)?
            .parse::<f64>()
            .ok()
    };
    let mib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib / KIB_PER_MIB)
    };
    Some(Usage {
        cpu_seconds: (field(14)? + field(15)?) / TICKS_PER_SECOND,
        rss_mib: mib("VmRSS")?,
        peak_rss_mib: mib("VmHWM")?,
    })
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
        assert_eq!(parse(stat, STATUS), Some(expected));
    }

    #[test]
    fn a_process_that_has_ended_has_no_memory_to_report() {
        let stat = "42 (x) Z 1 42 42 0 -1 4194304 100 0 0 0 150 50 7 7 20 0 5 0 100 1 2";
        assert_eq!(parse(stat, "Name:\tx\n"), None);
    }

    #[test]
    fn our_own_usage_can_be_read() {
        let own = usage(std::process::id()).unwrap();
        assert!(own.rss_mib > 0.0 && own.peak_rss_mib >= own.rss_mib);
    }

    #[test]
    fn a_program_is_found_by_a_folder_on_its_command_line_and_its_supervisor_is_not() {
        let found = |line: &str| program_naming(line.as_bytes(), "/tmp/plane");
        assert_eq!(
            found("/x/etcd\0--data-dir=/tmp/plane/etcd\0").as_deref(),
            Some("etcd")
        );
        assert_eq!(
            found("bash\0-c\0x\0/x/etcd\0--data-dir=/tmp/plane/etcd\0"),
            None
        );
        assert_eq!(found("/x/etcd\0--data-dir=/tmp/other\0"), None);
    }
}
