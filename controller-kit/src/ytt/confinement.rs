//! What a ytt process can reach: itself and its values, and nothing else of the machine.
//!
//! It is handed a template that a platform engineer wrote and values that a tenant wrote, and runs as the same user as the
//! controller, beside the token that may create tokens. ytt by itself opens no file and no connection for a template. Should
//! somebody make it do so, the kernel refuses: Landlock keeps it from files, and a system call filter from sockets and from
//! other processes. Both are properties of a thread that what it starts inherits, so each process is started by a thread of
//! its own that has given these rights up.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tracing::warn;

/// Where a program that is not static is loaded from; in an image without anything but us there are none of these.
const PROGRAMS: [&str; 4] = ["/bin", "/lib", "/lib64", "/usr"];

/// Keeps ytt processes from what is none of their business, as far as the kernel does that.
#[derive(Default)]
pub(super) struct Confinement {
    told: OnceLock<()>,
    #[cfg(test)]
    is_off: bool,
}

impl Confinement {
    /// For programs in ytt's place that look at more.
    #[cfg(test)]
    pub(super) fn off() -> Self {
        Self {
            is_off: true,
            ..Self::default()
        }
    }

    /// Starts `binary` by `command`; it can read `values`.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn spawn(
        &self,
        mut command: Command,
        binary: &Path,
        values: &Path,
    ) -> io::Result<Child> {
        #[cfg(test)]
        if self.is_off {
            return command.spawn();
        }
        let runtime = Handle::current();
        let programs = PROGRAMS.iter().map(PathBuf::from);
        let programs: Vec<PathBuf> = programs.chain(found(binary)).collect();
        std::thread::scope(|scope| {
            let starting = move || {
                let _entered = runtime.enter();
                if let Err(lack) = kernel::confine(&programs, values) {
                    self.tell(&lack);
                }
                command.spawn()
            };
            let name = "starts-ytt".to_owned();
            let thread = std::thread::Builder::new().name(name);
            let started = thread.spawn_scoped(scope, starting)?.join();
            started.unwrap_or_else(|_| Err(io::Error::other("the thread that starts it failed")))
        })
    }

    fn tell(&self, lack: &str) {
        self.told.get_or_init(|| {
            warn!(
                %lack,
                "this kernel does not keep ytt from everything that it has no need of: its own limits alone do, and those of the container"
            );
        });
    }
}

/// The file that a command is, looked for as the system does.
#[expect(
    clippy::disallowed_methods,
    reason = "the variable by which the child is found"
)]
fn found(binary: &Path) -> Option<PathBuf> {
    if binary.components().count() > 1 {
        return Some(binary.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(binary));
    places.find(|place| place.is_file())
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    use landlock::{
        ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
        RulesetStatus, Scope, path_beneath_rules,
    };
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

    /// What is asked for; an older kernel does its part of it.
    const KNOWN: ABI = ABI::V6;

    /// No connection, and nothing of other processes.
    const REFUSED: [i64; 8] = [
        libc::SYS_socket,
        libc::SYS_connect,
        libc::SYS_bind,
        libc::SYS_io_uring_setup,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
    ];

    /// Gives up all rights of this thread, and of what it starts, but to run these programs and read these values.
    ///
    /// # Errors
    /// What the kernel does not do, in words. The rest is done.
    pub(super) fn confine(programs: &[PathBuf], values: &Path) -> Result<(), String> {
        let files = match keep_from_files(programs, values) {
            Ok(RulesetStatus::NotEnforced) => Some("Landlock is not there".to_owned()),
            Ok(_) => None,
            Err(error) => Some(format!("Landlock: {error}")),
        };
        let calls = keep_from_calls().err().map(|why| format!("seccomp: {why}"));
        let lacks: Vec<String> = files.into_iter().chain(calls).collect();
        if lacks.is_empty() {
            Ok(())
        } else {
            Err(lacks.join("; "))
        }
    }

    fn keep_from_files(programs: &[PathBuf], values: &Path) -> Result<RulesetStatus, RulesetError> {
        let restricted = Ruleset::default()
            .handle_access(AccessFs::from_all(KNOWN))?
            .handle_access(AccessNet::from_all(KNOWN))?
            .scope(Scope::from_all(KNOWN))?
            .create()?
            .add_rules(path_beneath_rules(programs, AccessFs::from_read(KNOWN)))?
            .add_rules(path_beneath_rules([values], AccessFs::ReadFile))?
            .restrict_self()?;
        Ok(restricted.ruleset)
    }

    fn keep_from_calls() -> Result<(), String> {
        let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|it| it.to_string())?;
        let refused: BTreeMap<i64, Vec<_>> = REFUSED.map(|call| (call, Vec::new())).into();
        let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let filter = SeccompFilter::new(refused, SeccompAction::Allow, refuse, arch);
        let program = filter.and_then(BpfProgram::try_from);
        let program = program.map_err(|error| error.to_string())?;
        apply_filter(&program).map_err(|error| error.to_string())
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use std::path::{Path, PathBuf};

    pub(super) fn confine(_programs: &[PathBuf], _values: &Path) -> Result<(), String> {
        Err("it is no Linux".to_owned())
    }
}
