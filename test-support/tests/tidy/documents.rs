//! What the documents say of the code, as far as a machine can tell.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::repository::{dangling, files, names_a_path, quoted, read, root, table};

/// Our crates with those of ours they depend on; the flag says whether only tests do.
fn members() -> BTreeMap<String, BTreeSet<(String, bool)>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let ours: BTreeSet<String> = packages.iter().map(name).collect();
    let dependencies = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.map(|dependency| (name(dependency), dependency["kind"] == "dev"))
            .filter(|(name, _)| ours.contains(name))
            .collect()
    };
    packages
        .iter()
        .map(|package| (name(package), dependencies(package)))
        .collect()
}

#[test]
fn the_code_map_names_every_crate_and_what_it_may_depend_on() {
    let document = read("ARCHITECTURE.md");
    let mut allowed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in table(&document, "## Code map") {
        for name in quoted(&row[0]) {
            let dependencies = quoted(&row[2]).map(str::to_owned).collect();
            allowed.insert(name.to_owned(), dependencies);
        }
    }
    let members = members();
    assert_eq!(
        allowed.keys().collect::<Vec<_>>(),
        members.keys().collect::<Vec<_>>()
    );
    for (member, dependencies) in members {
        for (dependency, _) in dependencies.iter().filter(|(_, for_tests)| !for_tests) {
            assert!(
                allowed[&member].contains(dependency),
                "{member} depends on {dependency}, which the code map does not allow"
            );
        }
    }
}

#[test]
fn controllers_know_each_other_only_through_the_api_server() {
    let members = members();
    let is_controller = |name: &str| name.ends_with("-controller");
    assert!(members.keys().any(|name| is_controller(name)));
    for (member, dependencies) in members.iter().filter(|(name, _)| is_controller(name)) {
        for (dependency, _) in dependencies {
            assert!(
                !is_controller(dependency),
                "{member} depends on {dependency}"
            );
        }
    }
}

#[test]
fn every_invariant_has_a_guard_that_exists() {
    let lints = read("Cargo.toml") + &read("clippy.toml");
    for row in table(&read("ARCHITECTURE.md"), "## Invariants") {
        let [number, _, guards] = &row[..] else {
            panic!("not three cells: {row:?}");
        };
        assert!(names_a_path(guards), "invariant {number} has no guard");
        let (named_lints, references): (Vec<&str>, Vec<&str>) =
            guards.split(';').partition(|part| part.contains("lint"));
        assert_eq!(
            dangling(&references.join(";")),
            Vec::<String>::new(),
            "invariant {number}"
        );
        for lint in named_lints.iter().flat_map(|part| quoted(part)) {
            assert!(
                lints.contains(lint),
                "invariant {number}: lint {lint} is not on"
            );
        }
    }
}

#[test]
fn paths_in_documents_exist() {
    let mut wrong = Vec::new();
    let ours = |path: &str| path.starts_with("docs/") || !path.contains('/');
    for (path, text) in files(&[".md"]).into_iter().filter(|(path, _)| ours(path)) {
        let is_path = |text: &&str| {
            let ending = text.rsplit('.').next().unwrap_or_default();
            let (folder, _) = text.split_once('/').unwrap_or_default();
            // In a folder that we do not have it is an example.
            !folder.is_empty()
                && root().join(folder).is_dir()
                && ["rs", "md", "yaml", "toml"].contains(&ending)
        };
        for reference in quoted(&text.replace('\n', " ")).filter(is_path) {
            if !root().join(reference).exists() {
                wrong.push(format!("{path}: {reference}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Where the links of a document lead within the repository, without anchors.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1);
    targets
        .filter_map(|rest| rest.split([')', '#', ' ']).next())
        .filter(|target| !target.is_empty() && !target.contains(':'))
}

#[test]
fn links_in_documents_lead_somewhere() {
    let mut wrong = Vec::new();
    let mut followed = 0;
    for (path, text) in files(&[".md"]) {
        let document = root().join(&path);
        let folder = document.parent().unwrap();
        for link in links(&text) {
            followed += 1;
            if !folder.join(link).exists() {
                wrong.push(format!("{path}: {link}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(followed > 20, "{followed} links");
    let planted = "[a](docs/a.md#part), [b](#here), [c](https://c.example/d), [e](f)";
    assert_eq!(links(planted).collect::<Vec<_>>(), ["docs/a.md", "f"]);
}

#[test]
fn one_version_of_the_toolchain_is_named_everywhere() {
    let toolchain = read("rust-toolchain.toml");
    let channel = after(&toolchain, "channel = \"", '"');
    let (minor, _) = channel.rsplit_once('.').unwrap();
    let manifest = read("Cargo.toml");
    assert_eq!(
        after(&manifest, "rust-version = \"", '"'),
        minor,
        "Cargo.toml"
    );
    let readme = read("README.md");
    assert!(readme.contains(&format!("version {channel} is pinned")));
    let images: Vec<_> = files(&[])
        .into_iter()
        .filter(|(path, _)| path.contains("/Dockerfile") && !path.ends_with("ignore"))
        .collect();
    assert!(!images.is_empty());
    for (path, text) in images {
        // The first is named where a digest can be written beside it.
        let base = ["ARG RUST_IMAGE=rust:", "FROM rust:"].map(|start| text.split_once(start));
        let (_, tag) = base.into_iter().flatten().next().unwrap();
        let version = tag.split([' ', '-', '@', '\n']).next();
        assert_eq!(version, Some(minor), "{path}");
    }
}

/// What stands between a text and a delimiter.
fn after<'t>(text: &'t str, start: &str, end: char) -> &'t str {
    let (_, rest) = text.split_once(start).unwrap();
    rest.split(end).next().unwrap().trim()
}
