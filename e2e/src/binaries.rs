//! The binaries under test.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::{Context, anyhow, ensure};

/// The supply-chain controller: its package, its binary, and what is named after it in deploy/install.yaml.
pub const SUPPLY_CHAIN_CONTROLLER: &str = "supplychain-controller";
/// The delivery controller, likewise.
pub const DELIVERY_CONTROLLER: &str = "delivery-controller";
/// The runnable controller, likewise.
pub const RUNNABLE_CONTROLLER: &str = "runnable-controller";
/// The conventions controller, likewise, but in deploy/conventions/install.yaml.
pub const CONVENTIONS_CONTROLLER: &str = "conventions-controller";

/// The binary of a controller, built when it is missing or older than its sources.
///
/// # Errors
///
/// When it cannot be built; the text has the compiler's words.
pub fn controller(name: &'static str) -> anyhow::Result<PathBuf> {
    binary(name, name)
}

/// The command line tool's binary, built when it is missing or older than its sources.
///
/// # Errors
///
/// When it cannot be built; the text has the compiler's words.
pub fn carto() -> anyhow::Result<PathBuf> {
    binary("carto", "cli")
}

/// The webhook of an example in examples/conventions, built when it is missing or older than its sources.
///
/// # Errors
///
/// When it cannot be built; the text has the compiler's words.
pub fn convention(example: &'static str) -> anyhow::Result<PathBuf> {
    binary(example, example)
}

/// Looks once per process: a source that is edited meanwhile must not exchange the binary under running tests.
fn binary(name: &'static str, package: &str) -> anyhow::Result<PathBuf> {
    static BUILT: Mutex<BTreeMap<&'static str, Result<PathBuf, String>>> =
        Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let found = built
        .entry(name)
        .or_insert_with(|| up_to_date(name, package).map_err(|error| format!("{error:#}")));
    found.clone().map_err(|error| anyhow!(error))
}

/// Cargo builds no binaries of other packages for a test. `make test` has built them by then, and `make demo` too; asking
/// cargo again would compile dependencies anew, with the features that this package alone turns on.
fn up_to_date(name: &str, package: &str) -> anyhow::Result<PathBuf> {
    let folder = folder()?;
    let binary = folder.join(name);
    if is_up_to_date(&binary) {
        return Ok(binary);
    }
    let profile = if folder.ends_with("release") {
        "release"
    } else {
        "dev"
    };
    let output = Command::new("cargo")
        .args([
            "build",
            "--quiet",
            "--bins",
            "--profile",
            profile,
            "-p",
            package,
        ])
        .current_dir(workspace())
        .output()
        .context("cargo, which builds the binaries under test")?;
    ensure!(
        output.status.success(),
        "cargo build -p {package}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(binary)
}

/// Whether a binary is newer than every file that cargo says it was made of.
fn is_up_to_date(binary: &Path) -> bool {
    let Ok(built) = modified(binary) else {
        return false;
    };
    let Ok(listing) = fs::read_to_string(binary.with_extension("d")) else {
        return false;
    };
    let lock = workspace().join("Cargo.lock");
    let sources = listing
        .split_once(": ")
        .map_or("", |(_, sources)| sources)
        .split_whitespace()
        .map(PathBuf::from);
    sources
        .chain([lock])
        .all(|source| modified(&source).is_ok_and(|changed| changed <= built))
}

fn modified(file: &Path) -> std::io::Result<SystemTime> {
    fs::metadata(file)?.modified()
}

/// Where cargo puts binaries: beside this one, or above it when this is a test.
fn folder() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("the path of this program")?;
    let folder = own.parent().context("this program lies in no folder")?;
    Ok(if folder.ends_with("deps") {
        folder.parent().unwrap_or(folder)
    } else {
        folder
    }
    .to_path_buf())
}

/// Where hack/images/build.sh puts what it makes.
///
/// # Errors
///
/// When this program lies in no folder.
pub fn images() -> anyhow::Result<PathBuf> {
    let target = folder()?.parent().map(Path::to_path_buf);
    Ok(target
        .context("this program lies in no folder of cargo")?
        .join("images"))
}

/// The root of the repository.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}
