//! `carto convention new`: a convention to begin with, as a crate of its own.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// What is written, by its path in the new folder.
const FILES: [(&str, &str); 9] = [
    ("Cargo.toml", include_str!("../scaffold/Cargo.toml.in")),
    ("README.md", include_str!("../scaffold/README.md.in")),
    ("Dockerfile", include_str!("../scaffold/Dockerfile.in")),
    (".dockerignore", include_str!("../scaffold/dockerignore.in")),
    (".gitignore", include_str!("../scaffold/gitignore.in")),
    (
        "manifests.yaml",
        include_str!("../scaffold/manifests.yaml.in"),
    ),
    ("src/lib.rs", include_str!("../scaffold/src/lib.rs.in")),
    ("src/main.rs", include_str!("../scaffold/src/main.rs.in")),
    (
        "tests/convention.rs",
        include_str!("../scaffold/tests/convention.rs.in"),
    ),
];

/// The library that a convention is written with.
const SDK: &str = "convention-webhook-sdk";
/// Names get a suffix in manifests, and may have 63 characters then.
const LONGEST: usize = 50;

/// Names that Cargo, Rust or the crate's own dependencies have.
const TAKEN: [&str; 60] = [
    "abstract",
    "alloc",
    "anyhow",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "tokio",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// Why no convention was made.
#[derive(Debug, Error)]
pub enum ScaffoldError {
    /// The name is none for a crate and for objects.
    #[error(
        "{0:?} is no name for a convention: up to {LONGEST} lower case letters, digits and dashes; a letter first, no dash last"
    )]
    Name(String),
    /// The name is that of something else.
    #[error(
        "{0:?} is a name that Rust or a crate has already: choose another, such as {0}-convention"
    )]
    Taken(String),
    /// There is something already.
    #[error("{} is there already: choose another name, or remove it", .0.display())]
    Exists(PathBuf),
    /// The library is not where it was said to be.
    #[error("no {SDK} in {}: give the folder that has its Cargo.toml", .0.display())]
    Sdk(PathBuf),
    /// A file could not be written.
    #[error("write {}", .path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Writes a crate of this name into a new folder below `parent`, and returns the folder. `sdk` is
/// the folder of the library; without it the crate takes the published one.
///
/// # Errors
///
/// See [`ScaffoldError`]. Nothing is left behind then.
pub fn scaffold(name: &str, parent: &Path, sdk: Option<&Path>) -> Result<PathBuf, ScaffoldError> {
    check_name(name)?;
    let sdk = match sdk {
        Some(folder) => path_dependency(folder)?,
        None => format!("version = \"{}\"", env!("CARGO_PKG_VERSION")),
    };
    let folder = parent.join(name);
    fs::create_dir(&folder).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => ScaffoldError::Exists(folder.clone()),
        _ => ScaffoldError::Write {
            path: folder.clone(),
            source,
        },
    })?;
    for (path, text) in rendered(name, &sdk) {
        let path = folder.join(path);
        if let Err(source) = write(&path, &text) {
            // It was made a moment ago, and is of no use.
            let _ = fs::remove_dir_all(&folder);
            return Err(ScaffoldError::Write { path, source });
        }
    }
    Ok(folder)
}

/// The files for a name.
pub fn rendered(name: &str, sdk: &str) -> impl Iterator<Item = (&'static str, String)> {
    let (name, sdk) = (name.to_owned(), sdk.to_owned());
    let module = name.replace('-', "_");
    FILES.into_iter().map(move |(path, text)| {
        let text = text.replace("@NAME@", &name);
        (
            path,
            text.replace("@MODULE@", &module).replace("@SDK@", &sdk),
        )
    })
}

fn check_name(name: &str) -> Result<(), ScaffoldError> {
    let plain = |next: char| next.is_ascii_lowercase() || next.is_ascii_digit() || next == '-';
    let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(plain)
        && !name.ends_with('-')
        && name.len() <= LONGEST;
    if !is_name {
        return Err(ScaffoldError::Name(name.chars().take(100).collect()));
    }
    if TAKEN.contains(&name) || name == SDK {
        return Err(ScaffoldError::Taken(name.to_owned()));
    }
    Ok(())
}

fn path_dependency(folder: &Path) -> Result<String, ScaffoldError> {
    let wrong = || ScaffoldError::Sdk(folder.to_owned());
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).map_err(|_| wrong())?;
    if !manifest.contains(&format!("name = \"{SDK}\"")) {
        return Err(wrong());
    }
    let folder = folder.canonicalize().map_err(|_| wrong())?;
    // A text of JSON is one of TOML.
    let path = serde_json::to_string(&folder).map_err(|_| wrong())?;
    Ok(format!("path = {path}"))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

/// Says what was made and what to do next.
///
/// # Errors
///
/// Nobody reads it.
pub fn show(folder: &Path) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{} is made. Next:", folder.display())?;
    writeln!(output, "  cd {} && cargo test", folder.display())?;
    writeln!(
        output,
        "  src/lib.rs is the convention, README.md says how it comes to a cluster"
    )
}
