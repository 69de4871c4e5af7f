//! How much memory a ytt process may take.
//!
//! A list that is doubled sixty times, or a loop as long as a developer's parameter says, grows until the kernel ends
//! something; in a container that is the controller, too. So the child is bounded, and dies alone.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use tokio::process::Child;

/// In MiB: what ytt maps before it has read anything. Little of it is ever touched.
const BASE: u64 = 64;
/// In MiB. With less, ytt does not render much.
const LEAST: u64 = 128;

/// The signal of a fault that the runtime could not even report.
const SIGSEGV: i32 = 11;

/// The memory that a ytt process may take. On Linux only; elsewhere it is not enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimit {
    /// 0 for none.
    mebibytes: u64,
}

/// A limit with which ytt could not work. The operator corrects the command line.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("ytt takes much of {0} MiB for itself: give it at least {LEAST}, or 0 for no limit")]
pub struct TooLittle(u64);

impl MemoryLimit {
    /// So many MiB; 0 for no limit.
    ///
    /// # Errors
    /// [`TooLittle`].
    pub fn new(mebibytes: u64) -> Result<Self, TooLittle> {
        if (1..LEAST).contains(&mebibytes) {
            return Err(TooLittle(mebibytes));
        }
        Ok(Self { mebibytes })
    }

    /// In MiB; `None` for no limit.
    pub fn mebibytes(self) -> Option<u64> {
        Some(self.mebibytes).filter(|mebibytes| *mebibytes > 0)
    }

    /// What the child finds in its environment. By itself Go lets the heap double before it collects garbage, and what would
    /// fit would not.
    pub(super) fn environment(self) -> Option<(&'static str, String)> {
        let heap = self.mebibytes()?.saturating_sub(BASE) / 8 * 7;
        Some(("GOMEMLIMIT", format!("{heap}MiB")))
    }

    /// Bounds a child that has not been given its template yet. What counts is writable memory of its own: the address
    /// space that Go reserves and does not use is many times the limit.
    pub(super) fn impose(self, child: &Child) -> io::Result<()> {
        match (self.mebibytes(), child.id()) {
            (Some(mebibytes), Some(id)) => set(id, mebibytes.saturating_mul(1 << 20)),
            (None, _) | (_, None) => Ok(()),
        }
    }

    /// What to say of a child that died of this limit; `None` where it died of something else.
    ///
    /// Nothing of what it wrote is told: addresses and registers of the whole process help nobody.
    pub(super) fn verdict(self, status: ExitStatus, complained: &str) -> Option<String> {
        let mebibytes = self.mebibytes()?;
        let lacked = status.signal() == Some(SIGSEGV) || complained.lines().any(tells_of_lack);
        lacked.then(|| {
            format!(
                "ytt needs more than {mebibytes} MiB of memory: make what the template builds smaller, or the \
                 parameters and inputs that its loops follow; or have the controller's --ytt-memory-limit raised"
            )
        })
    }
}

/// Go's runtime dies of an allocation that failed with one of many texts; one of its own may go unnoticed until what it
/// should have got is used (incident: Go 1.26.8, the queues of its collector). Errors of the program are `panic: `.
fn tells_of_lack(line: &str) -> bool {
    let others = ["all goroutines are asleep", "concurrent map", "newosproc"];
    match line.strip_prefix("fatal error: ") {
        Some(cause) => !others.iter().any(|other| cause.starts_with(other)),
        None => line.starts_with("SIGSEGV: "),
    }
}

#[cfg(target_os = "linux")]
fn set(id: u32, bytes: u64) -> io::Result<()> {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    // The child has not been waited for: the id is still its own.
    let id = i32::try_from(id).ok().and_then(Pid::from_raw);
    let id = id.ok_or(io::ErrorKind::InvalidInput)?;
    // What the child has inherited of us may be lower, and it takes a privilege to raise it.
    let inherited = getrlimit(Resource::Data).maximum;
    let bytes = Some(inherited.map_or(bytes, |most| most.min(bytes)));
    let limit = Rlimit {
        current: bytes,
        maximum: bytes,
    };
    prlimit(Some(id), Resource::Data, limit)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn set(_id: u32, _bytes: u64) -> io::Result<()> {
    Ok(())
}
