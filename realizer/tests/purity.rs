//! The engine, the types and what is sent for an object do no I/O: nothing that could is among their dependencies.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

use std::path::Path;
use std::process::Command;

/// Our crates that do no I/O.
const PURE: [&str; 7] = [
    "template-language",
    "api-types",
    "realizer",
    "submission",
    "convention-protocol",
    "conventions",
    "pod-presets",
];

/// Crates that mean a network, a runtime or a cluster.
const BANNED: [&str; 9] = [
    "tokio",
    "hyper",
    "hyper-util",
    "kube",
    "kube-client",
    "kube-runtime",
    "reqwest",
    "mio",
    "rustls",
];

fn dependencies(package: &str, options: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "-p", package, "-e", "normal"])
        .args(["--prefix", "none", "--offline"])
        .args(options)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// Whoever writes a convention for a server of his own compiles these, and what they need.
#[test]
fn the_library_for_conventions_needs_few_crates_without_its_server() {
    let options = ["--no-default-features", "--depth", "1"];
    let mut direct = dependencies("convention-webhook-sdk", &options);
    direct.retain(|name| name != "convention-webhook-sdk");
    let few = [
        "convention-protocol",
        "semver",
        "serde",
        "serde_json",
        "thiserror",
        "tracing",
    ];
    assert_eq!(direct, few);
}

#[test]
fn engine_and_types_depend_on_nothing_that_does_io() {
    for package in PURE {
        let dependencies = dependencies(package, &[]);
        assert!(
            dependencies.iter().any(|name| name == "serde_json"),
            "the list of {package} was read"
        );
        let found: Vec<_> = BANNED
            .iter()
            .filter(|banned| dependencies.iter().any(|name| name == *banned))
            .collect();
        assert!(found.is_empty(), "{package} depends on {found:?}");
    }
}

/// What reads a clock, the environment, a file or the network.
const IMPURE: [&str; 8] = [
    "SystemTime",
    "Instant",
    "Timestamp::now",
    "Zoned::now",
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
];

/// How many sources a crate has, tests aside, and which of them use what.
fn impurities(package: &str) -> (usize, Vec<String>) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../{package}/src"));
    let (mut seen, mut found) = (0, Vec::new());
    let mut folders = vec![sources];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.file_name().is_some_and(|name| name == "tests.rs") {
                continue;
            }
            seen += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            let used = IMPURE.iter().filter(|word| text.contains(*word));
            found.extend(used.map(|word| format!("{} uses {word}", path.display())));
        }
    }
    (seen, found)
}

#[test]
fn engine_and_types_read_no_clock_no_environment_and_no_file() {
    for package in PURE {
        let (seen, found) = impurities(package);
        assert!(seen > 3, "the sources of {package} were not read");
        assert_eq!(found, Vec::<String>::new());
    }
    // A crate that may do all of it: the search finds something where there is something.
    assert!(impurities("controller-kit").1.len() > 3);
}
