//! Child processes that never outlive the test.
//!
//! `Drop` runs on return and on panic, but not when the test is killed. So each child is started by a few lines of bash that
//! hold the read end of a pipe from us. Whatever ends this process, the kernel closes the pipe, and the supervisor kills
//! its child. (`prctl(PR_SET_PDEATHSIG)` would need unsafe code and follows the spawning *thread*, not the process.)

mod usage;

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use tokio::time::{Instant, sleep};

pub use usage::Usage;

/// Arguments: the program and its arguments. Stdin: one signal name a line; its end means "kill". Stdout: the child's pid.
const SUPERVISOR: &str = r#"
exec 3<&0
"$@" </dev/null >&2 3<&- &
child=$!
echo "$child"
exec >/dev/null 2>&1
{ while read -r signal <&3; do kill -s "$signal" "$child"; done; kill -KILL "$child"; } &
reader=$!
wait "$child"
kill -KILL "$reader"
"#;

/// Between two looks at a program that starts.
const LOOK: Duration = Duration::from_millis(10);
/// How much of a log an error message repeats.
const LOG_TAIL_BYTES: u64 = 4096;

/// A running program. Dropping it kills the program (SIGKILL) and waits for its end.
#[derive(Debug)]
pub struct Process {
    name: String,
    supervisor: Child,
    orders: Option<ChildStdin>,
    pid: u32,
    log: PathBuf,
}

/// What to run. Start it with [`ProcessBuilder::start`].
#[derive(Debug)]
pub struct ProcessBuilder {
    program: PathBuf,
    command: Command,
}

impl Process {
    /// Describes a child process. `name` is used in messages only.
    pub fn builder(program: impl Into<PathBuf>) -> ProcessBuilder {
        let program = program.into();
        let mut command = Command::new("bash");
        command
            .arg("-c")
            .arg(SUPERVISOR)
            .arg("supervisor")
            .arg(&program);
        ProcessBuilder { program, command }
    }

    /// The file name of the program.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the program used since it started.
    ///
    /// # Errors
    ///
    /// When it has ended; the text has the end of its log.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        Usage::of(self.pid).with_context(|| self.ended_early())
    }

    /// The process id of the program itself, for `/proc`.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The file with everything the program printed.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The end of what the program printed, for error messages.
    pub fn log_tail(&self) -> String {
        tail(&self.log).unwrap_or_else(|error| format!("{}: {error}", self.log.display()))
    }

    /// Whether the program still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.supervisor.try_wait(), Ok(None))
    }

    /// Waits until `look` succeeds; returns what it found.
    ///
    /// # Errors
    ///
    /// When the program ends first, or `limit` passes: the text has the end of its log, the cause what was seen last.
    pub async fn ready<T, L>(&mut self, limit: Duration, look: impl Fn() -> L) -> anyhow::Result<T>
    where
        L: Future<Output = anyhow::Result<T>>,
    {
        let deadline = Instant::now() + limit;
        loop {
            let error = match look().await {
                Ok(found) => return Ok(found),
                Err(error) => error,
            };
            if !self.is_running() {
                return Err(error.context(self.ended_early()));
            }
            if Instant::now() > deadline {
                let (name, log) = (&self.name, self.log_tail());
                let late =
                    format!("{name} is not ready after {limit:?}; the end of its log:\n{log}");
                return Err(error.context(late));
            }
            sleep(LOOK).await;
        }
    }

    /// Waits until the program has ended, which it should not. Returns the text for an error message.
    pub async fn early_end(&mut self) -> String {
        while self.is_running() {
            sleep(LOOK).await;
        }
        self.ended_early()
    }

    fn ended_early(&self) -> String {
        let (name, log) = (&self.name, self.log_tail());
        format!("{name} ended early; the end of its log:\n{log}")
    }

    /// Sends a signal by name, such as `TERM`, `STOP` or `CONT`, and does not wait.
    ///
    /// # Errors
    ///
    /// When the program has ended.
    pub fn signal(&mut self, name: &str) -> anyhow::Result<()> {
        let orders = self
            .orders
            .as_mut()
            .with_context(|| format!("{} was killed before", self.name))?;
        writeln!(orders, "{name}").with_context(|| format!("{} has ended", self.name))
    }

    /// No file that it writes may become longer than this from now on; `None` for no limit. It gets a signal for trying, of which
    /// programs die that do not ignore it.
    ///
    /// # Errors
    ///
    /// When the program has ended.
    pub fn limit_files(&self, bytes: Option<u64>) -> anyhow::Result<()> {
        limit_files(self.pid, bytes).with_context(|| format!("limit {}", self.name))
    }

    /// Kills the program and waits until it is gone. Doing so twice is the same as once.
    pub fn kill(&mut self) {
        drop(self.orders.take());
        // An error means that it was waited for before: gone all the same.
        let _ = self.supervisor.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl ProcessBuilder {
    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets an environment variable; the rest is inherited.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts the program; what it prints is appended to the file `log`.
    ///
    /// # Errors
    ///
    /// When bash or the log file cannot be opened. A program that fails at once is seen by [`Process::is_running`].
    pub fn start(mut self, log: impl Into<PathBuf>) -> anyhow::Result<Process> {
        let log = log.into();
        let name = self
            .program
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let output = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("log file {}", log.display()))?;
        // A group of its own: Ctrl-C in the terminal reaches the test only, whose end then closes the pipe.
        let mut supervisor = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(output)
            .process_group(0)
            .spawn()
            .context("bash, which supervises child processes")?;
        let orders = supervisor.stdin.take();
        let pid = read_pid(&mut supervisor)
            .with_context(|| format!("start {}", self.program.display()))?;
        Ok(Process {
            name,
            supervisor,
            orders,
            pid,
            log,
        })
    }
}

#[cfg(target_os = "linux")]
fn limit_files(pid: u32, bytes: Option<u64>) -> anyhow::Result<()> {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let limit = Rlimit {
        current: bytes,
        // It can be raised again.
        maximum: None,
    };
    prlimit(Some(pid.context("no process id")?), Resource::Fsize, limit)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn limit_files(_pid: u32, _bytes: Option<u64>) -> anyhow::Result<()> {
    anyhow::bail!("only Linux limits the files of another process")
}

fn read_pid(supervisor: &mut Child) -> anyhow::Result<u32> {
    let stdout = supervisor
        .stdout
        .take()
        .context("no pipe from the supervisor")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    line.trim()
        .parse()
        .with_context(|| format!("the supervisor said {line:?}, not a process id"))
}

fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use anyhow::{anyhow, ensure};

    use super::*;
    use crate::eventually;

    const LIMIT: Duration = Duration::from_mins(1);

    fn start(script: &str) -> (tempfile::TempDir, Process) {
        let folder = tempfile::tempdir().unwrap();
        let process = Process::builder("bash")
            .args(["-c", script])
            .start(folder.path().join("log"))
            .unwrap();
        (folder, process)
    }

    fn exists(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn dropping_kills_the_program_and_waits() {
        let (_folder, process) = start("exec sleep 1000");
        let pid = process.pid();
        assert!(exists(pid));
        drop(process);
        assert!(!exists(pid));
    }

    #[tokio::test]
    async fn a_program_that_ends_by_itself_is_seen_and_its_output_kept() {
        let (_folder, mut process) = start("echo the reason; exit 3");
        eventually("the program has ended", LIMIT, async || {
            !process.is_running()
        })
        .await;
        assert_eq!(process.log_tail(), "the reason\n");
    }

    #[tokio::test]
    async fn what_a_program_does_not_come_to_is_told_with_its_log() {
        let never = || async { anyhow::Result::<()>::Err(anyhow!("nothing to see")) };
        let (_folder, mut ended) = start("echo the reason; exit 3");
        let error = ended.ready(LIMIT, never).await.unwrap_err();
        let text = format!("{error:#}");
        assert!(
            text.starts_with("bash ended early; the end of its log:\nthe reason"),
            "{text}"
        );
        assert!(text.ends_with("nothing to see"), "{text}");

        let (_folder, mut slow) = start("echo working; exec sleep 1000");
        let error = slow.ready(Duration::ZERO, never).await.unwrap_err();
        assert!(
            error.to_string().starts_with("bash is not ready after 0ns"),
            "{error}"
        );
        let file = slow.log().to_owned();
        let log = || async {
            let log = tail(&file)?;
            ensure!(!log.is_empty(), "no log yet");
            Ok(log)
        };
        assert_eq!(slow.ready(LIMIT, log).await.unwrap(), "working\n");
    }

    #[tokio::test]
    async fn a_signal_reaches_the_program() {
        let (_folder, mut process) =
            start("trap 'echo got TERM; exit 0' TERM; echo ready; while :; do sleep 0.05; done");
        eventually("the trap is set", LIMIT, async || {
            process.log_tail() == "ready\n"
        })
        .await;
        process.signal("TERM").unwrap();
        eventually("the program has ended", LIMIT, async || {
            !process.is_running()
        })
        .await;
        assert_eq!(process.log_tail(), "ready\ngot TERM\n");
    }
}
