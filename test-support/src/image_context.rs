//! What a Dockerfile is built from, told without a container engine: the files that a folder gives,
//! and what is copied of them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

/// The files that a `.dockerignore` leaves, of paths from the root of the folder.
pub fn left_by<'f>(ignore: &str, files: &'f [String]) -> Vec<&'f str> {
    let lines = ignore.lines().map(str::trim);
    let patterns: Vec<(bool, Vec<&str>)> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let stays = line.strip_prefix('!');
            let pattern = stays.unwrap_or(line).trim_matches('/');
            (stays.is_some(), pattern.split('/').collect())
        })
        .collect();
    let is_left = |file: &&str| {
        let segments: Vec<&str> = file.split('/').collect();
        // A pattern is for a folder with all that is in it; the last one that fits decides.
        let fits =
            |pattern: &[&str]| (1..=segments.len()).any(|end| fit(pattern, &segments[..end]));
        let last = patterns.iter().rev().find(|(_, pattern)| fits(pattern));
        last.is_none_or(|(stays, _)| *stays)
    };
    files.iter().map(String::as_str).filter(is_left).collect()
}

fn fit(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        (["**", rest @ ..], _) => (0..=path.len()).any(|skipped| fit(rest, &path[skipped..])),
        ([first, rest @ ..], [segment, below @ ..]) => is_like(first, segment) && fit(rest, below),
        _ => false,
    }
}

fn is_like(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            ends.into_iter().any(|at| is_like(rest, &text[at..]))
        }),
    }
}

/// A `COPY` of a Dockerfile.
#[derive(Debug, PartialEq, Eq)]
pub struct Copy {
    /// The stage or the named context that it is from; the folder that is built from, if none.
    pub from: Option<String>,
    /// What is copied.
    pub sources: Vec<String>,
    /// Where to.
    pub target: String,
}

/// What a Dockerfile copies, but from its own stages.
///
/// # Errors
///
/// A line that is not understood.
pub fn copies(dockerfile: &str) -> anyhow::Result<Vec<Copy>> {
    let mut stages = Vec::new();
    let mut copies = Vec::new();
    for line in dockerfile.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["FROM", .., "AS", stage] => stages.push(stage.to_owned()),
            ["COPY", ..] => {
                let copy = copied(line).with_context(|| line.to_owned())?;
                copies.push(copy);
            }
            _ => {}
        }
    }
    copies.retain(|copy| copy.from.as_ref().is_none_or(|from| !stages.contains(from)));
    Ok(copies)
}

fn copied(line: &str) -> anyhow::Result<Copy> {
    let mut rest = line.trim_start_matches("COPY ");
    let mut from = None;
    if let Some(named) = rest.strip_prefix("--from=") {
        let (name, after) = named.split_once(' ').context("nothing is copied")?;
        from = Some(name.to_owned());
        rest = after;
    }
    ensure!(!rest.starts_with("--"), "an unknown flag");
    let mut paths: Vec<String> = if rest.starts_with('[') {
        serde_json::from_str(rest)?
    } else {
        rest.split_whitespace().map(str::to_owned).collect()
    };
    let target = paths.pop().context("no target")?;
    ensure!(!paths.is_empty(), "no source");
    Ok(Copy {
        from,
        sources: paths,
        target,
    })
}

/// Whether Cargo finds all that it needs to know of a crate: its own manifest, those of the crates
/// that it is made of, and those of the workspaces around these.
///
/// # Errors
///
/// What Cargo does not find.
pub fn is_whole(crate_folder: &Path) -> anyhow::Result<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    // What only other platforms need was never downloaded where nothing but tests ran.
    let (platform, metadata) = (host()?, ["metadata", "--offline", "--format-version", "1"]);
    cargo.args(metadata).args(["--filter-platform", &platform]);
    let output = cargo.current_dir(crate_folder).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The platform that is compiled for: `x86_64-unknown-linux-gnu`.
fn host() -> anyhow::Result<String> {
    let mut rustc = Command::new("rustc");
    let output = rustc.args(["--print", "host-tuple"]).output()?;
    ensure!(output.status.success(), "rustc does not say its host");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Copies some files of a folder, with their folders.
///
/// # Errors
///
/// What the system says.
pub fn copy_files(root: &Path, files: &[&str], target: &Path) -> anyhow::Result<()> {
    for file in files {
        let to = target.join(file);
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::copy(root.join(file), to).with_context(|| (*file).to_owned())?;
    }
    Ok(())
}

/// The files of a repository that git knows and that are there.
///
/// # Errors
///
/// It is none.
pub fn tracked(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut git = Command::new("git");
    let output = git.args(["ls-files", "-z"]).current_dir(root).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    let paths = String::from_utf8(output.stdout)?;
    let paths = paths.split_terminator('\0');
    let is_there = |path: &&str| root.join(path).is_file();
    Ok(paths.filter(is_there).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(ignore: &str, files: &[&str]) -> Vec<String> {
        let files: Vec<String> = files.iter().map(|&file| file.to_owned()).collect();
        let left = left_by(ignore, &files);
        left.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn the_last_pattern_that_fits_a_file_or_a_folder_above_it_decides() {
        let files = [
            "a.md",
            "x/b.md",
            "x/target/c",
            "target/d",
            "y/z/e",
            "y/f",
            "yy",
        ];
        assert_eq!(left("", &files), files);
        assert_eq!(left("# a\n\n*.md\n", &files), files[1..]);
        assert_eq!(left("**/*.md\n**/target", &files), ["y/z/e", "y/f", "yy"]);
        assert_eq!(left("/target/\nx", &files), ["a.md", "y/z/e", "y/f", "yy"]);
        assert_eq!(left("*\n!y\ny/f", &files), ["y/z/e"]);
        assert_eq!(
            left("y/*\n!y/z", &files),
            [&files[..5], &files[6..]].concat()
        );
    }

    #[test]
    fn what_is_copied_from_other_stages_is_not_from_outside() {
        let dockerfile = "FROM --platform=$BUILDPLATFORM a AS b\nCOPY . .\nCOPY --from=sdk [\".\", \"/a b\"]\nFROM scratch\nCOPY --from=b /x /y\n";
        let copy = |from: Option<&str>, target: &str| Copy {
            from: from.map(str::to_owned),
            sources: vec![".".to_owned()],
            target: target.to_owned(),
        };
        let expected = [copy(None, "."), copy(Some("sdk"), "/a b")];
        assert_eq!(copies(dockerfile).unwrap(), expected);
        for wrong in ["COPY x", "COPY --chown=1 a b", "COPY [\"a\""] {
            assert!(copies(wrong).is_err(), "{wrong}");
        }
    }
}
