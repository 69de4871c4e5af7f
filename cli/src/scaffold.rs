//! `carto convention new`: a convention to begin with, as a crate of its own.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// What is written, by its path in the new folder.
const FILES: [(&str, &str); 10] = [
    ("Cargo.toml", include_str!("../scaffold/Cargo.toml.in")),
    ("README.md", include_str!("../scaffold/README.md.in")),
    ("Dockerfile", include_str!("../scaffold/Dockerfile.in")),
    (".dockerignore", include_str!("../scaffold/dockerignore.in")),
    (".gitignore", include_str!("../scaffold/gitignore.in")),
    (
        "manifests.yaml",
        include_str!("../scaffold/manifests.yaml.in"),
    ),
    ("values.yaml", include_str!("../scaffold/values.yaml.in")),
    ("src/lib.rs", include_str!("../scaffold/src/lib.rs.in")),
    ("src/main.rs", include_str!("../scaffold/src/main.rs.in")),
    (
        "tests/convention.rs",
        include_str!("../scaffold/tests/convention.rs.in"),
    ),
];

/// The library that a convention is written with.
const SDK: &str = "convention-webhook-sdk";
/// The chart for conventions, from the root of the repository.
const CHART: &str = "deploy/charts/convention-webhook";
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
    /// There is no folder to write it in.
    #[error("there is no folder {}: make it, or name another one with --directory", .0.display())]
    Parent(PathBuf),
    /// The library is not where it was said to be.
    #[error(
        "no {SDK} in {}: give its folder, which is {SDK} in a clone of carto's repository",
        .0.display()
    )]
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

/// Where the library is, as the files say it.
#[derive(Debug)]
pub struct Library {
    /// As Cargo.toml has it.
    dependency: String,
    /// The folder that an image is built from besides: that of the workspace of the library, as long
    /// as this is not the published one.
    context: Option<PathBuf>,
}

impl Library {
    /// The published one.
    pub fn published() -> Self {
        Self {
            dependency: format!("version = \"{}\"", env!("CARGO_PKG_VERSION")),
            context: None,
        }
    }

    /// That of its folder, or of a clone of the repository.
    ///
    /// # Errors
    ///
    /// There is none; whoever named the folder must name the right one.
    pub fn in_folder(folder: &Path) -> Result<Self, ScaffoldError> {
        let wrong = || ScaffoldError::Sdk(folder.to_owned());
        let in_clone = folder.join(SDK);
        let folder = if in_clone.is_dir() { &in_clone } else { folder };
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).map_err(|_| wrong())?;
        if !manifest.contains(&format!("name = \"{SDK}\"")) {
            return Err(wrong());
        }
        let folder = folder.canonicalize().map_err(|_| wrong())?;
        // A text of JSON is one of TOML.
        let path = serde_json::to_string(&folder).map_err(|_| wrong())?;
        let around = folder
            .parent()
            .filter(|_| manifest.contains(".workspace = true"));
        Ok(Self {
            dependency: format!("path = {path}"),
            context: Some(around.unwrap_or(&folder).to_owned()),
        })
    }

    /// What stands in the Dockerfile, so that the library is where Cargo.toml says that it is.
    fn copy(&self) -> String {
        let Some(context) = &self.context else {
            return String::new();
        };
        // Docker puts variables in the place of what begins with a dollar sign.
        let target = context.display().to_string().replace('$', "\\$");
        let paths = serde_json::json!([".", target]);
        format!("# The library, where Cargo.toml says that it is.\nCOPY --from=carto {paths}\n")
    }

    /// What `docker build` is told of it.
    fn build_context(&self) -> String {
        let context = self.context.as_ref();
        context.map_or_else(String::new, |context| {
            let context = format!("carto={}", context.display());
            format!("--build-context {} ", quoted(&context))
        })
    }

    /// The folder of the chart for conventions, where it is known.
    fn known_chart(&self) -> Option<PathBuf> {
        let chart = self.context.as_ref().map(|context| context.join(CHART));
        chart.filter(|chart| chart.is_dir())
    }

    fn chart(&self) -> String {
        self.known_chart().map_or_else(
            || format!("CARTO/{CHART}"),
            |chart| quoted(&chart.display().to_string()),
        )
    }

    fn where_charts_are(&self) -> &'static str {
        match self.known_chart() {
            Some(_) => "",
            None => "; `CARTO` is a clone of carto's repository",
        }
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |next: char| next.is_ascii_alphanumeric() || "/-_.=+,".contains(next);
    if word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Writes a crate of this name into a new folder below `parent`, and returns the folder. `sdk` is
/// the folder of the library; without it the crate takes the published one.
///
/// # Errors
///
/// See [`ScaffoldError`]. Nothing is left behind then.
pub fn scaffold(name: &str, parent: &Path, sdk: Option<&Path>) -> Result<PathBuf, ScaffoldError> {
    check_name(name)?;
    let library = sdk.map_or_else(|| Ok(Library::published()), Library::in_folder)?;
    let folder = parent.join(name);
    fs::create_dir(&folder).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => ScaffoldError::Exists(folder.clone()),
        io::ErrorKind::NotFound => ScaffoldError::Parent(parent.to_owned()),
        _ => ScaffoldError::Write {
            path: folder.clone(),
            source,
        },
    })?;
    for (path, text) in rendered(name, &library) {
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
pub fn rendered(
    name: &str,
    library: &Library,
) -> impl Iterator<Item = (&'static str, String)> + use<> {
    let said = [
        // First, as what follows may hold anything.
        ("@NAME@", name.to_owned()),
        ("@MODULE@", name.replace('-', "_")),
        ("@SDK@", library.dependency.clone()),
        ("@COPY@", library.copy()),
        ("@CONTEXT@", library.build_context()),
        ("@WHERE@", library.where_charts_are().to_owned()),
        ("@CHART@", library.chart()),
    ];
    FILES.into_iter().map(move |(path, text)| {
        let placed = |text: String, (place, word): &(&str, String)| text.replace(place, word);
        (path, said.iter().fold(text.to_owned(), placed))
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
pub fn show(folder: &Path, is_published: bool) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{} is made. Next:", folder.display())?;
    let place = quoted(&folder.display().to_string());
    writeln!(output, "  cd {place} && cargo test")?;
    if is_published {
        writeln!(
            output,
            "  (if cargo does not know {SDK}: begin again with --sdk, the folder of a clone of carto's repository)"
        )?;
    }
    writeln!(
        output,
        "  src/lib.rs is the convention, README.md says how it comes to a cluster"
    )
}
