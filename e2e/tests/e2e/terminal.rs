//! A shell that types what documents have people type.

use std::fs;
use std::path::Path;
use std::process::Command;

use e2e::binaries::{carto, workspace};
use test_support::{ControlPlane, Process, Scratch, assets, eventually};

use crate::LIMIT;

/// Of an example, for this machine: no minute to wait, no nodes, and no TLS.
pub(crate) const ADAPTATIONS: [(&str, &str); 3] = [
    ("default: 1m", "default: 1s"),
    (
        "name: replicas\n      default: 1",
        "name: replicas\n      default: 0",
    ),
    (
        "name: insecure\n          value: false",
        "name: insecure\n          value: true",
    ),
];

/// A shell in a folder with the repository's manifests, as administrator of a control plane.
pub(crate) struct Terminal {
    pub(crate) home: Scratch,
    pub(crate) environment: Vec<(&'static str, String)>,
}

impl Terminal {
    #[expect(
        clippy::disallowed_methods,
        reason = "a terminal finds what else is installed where this one does"
    )]
    pub(crate) fn new(control_plane: &ControlPlane) -> Self {
        let home = Scratch::new("carto-first-use-").unwrap();
        for folder in ["deploy", "convention-webhook-sdk", "examples/presets"] {
            let link = home.path().join(folder);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(workspace().join(folder), link).unwrap();
        }
        let kubeconfig = control_plane.kubeconfig_path().display().to_string();
        let tools = [
            assets().unwrap().binary("kubectl").unwrap(),
            carto().unwrap(),
        ];
        let mut path: Vec<_> = tools
            .iter()
            .map(|tool| tool.parent().unwrap().display().to_string())
            .collect();
        path.push(std::env::var("PATH").unwrap());
        let environment = vec![
            ("HOME", home.path().display().to_string()),
            ("KUBECONFIG", kubeconfig),
            ("PATH", path.join(":")),
        ];
        Self { home, environment }
    }

    /// Puts a folder of the repository below the home, with these texts replaced. Each must be there.
    pub(crate) fn has_adapted(&self, folder: &str, pairs: &[(&str, &str)]) {
        let (source, target) = (workspace().join(folder), self.home.path().join(folder));
        fs::create_dir_all(&target).unwrap();
        let mut used = vec![false; pairs.len()];
        for file in test_support::yaml_files(&source).unwrap() {
            let mut text = fs::read_to_string(&file).unwrap();
            for (used, (from, to)) in used.iter_mut().zip(pairs) {
                *used |= text.contains(from);
                text = text.replace(from, to);
            }
            fs::write(target.join(file.file_name().unwrap()), text).unwrap();
        }
        assert!(used.iter().all(|used| *used), "{pairs:#?}: {used:?}");
    }

    /// Whether it succeeded, and all that it printed.
    pub(crate) fn try_typing(&self, script: &str) -> (bool, String) {
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", script])
            .current_dir(self.home.path())
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    /// Goes on until it is dropped.
    pub(crate) fn keeps_typing(&self, script: &str, log: &Path) -> Process {
        let home = self.home.path().display();
        let script = format!("cd {home}; {script}");
        let mut process = Process::builder("/bin/bash").args(["-euo", "pipefail", "-c", &script]);
        for (name, value) in &self.environment {
            process = process.env(name, value);
        }
        process.start(log).unwrap()
    }

    pub(crate) fn types(&self, script: &str) -> String {
        let (succeeded, printed) = self.try_typing(script);
        assert!(succeeded, "{script}\n{printed}");
        printed
    }

    pub(crate) fn is_refused(&self, script: &str) -> String {
        let (succeeded, printed) = self.try_typing(script);
        assert!(!succeeded, "{script}\n{printed}");
        printed
    }
}

/// What a document has people type in one of its sections, block by block.
pub(crate) fn blocks(document: &str, heading: &str) -> Vec<String> {
    let text = fs::read_to_string(workspace().join(document)).unwrap();
    let (_, below) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = below.split("\n## ").next().unwrap();
    let fenced = section.split("```sh\n").skip(1);
    let blocks: Vec<String> = fenced
        .map(|block| block.split_once("\n```").unwrap().0.to_owned())
        .collect();
    assert!(
        !blocks.is_empty(),
        "{document} has no commands below {heading}"
    );
    blocks
}

/// Types it again and again until it prints what is wanted.
pub(crate) async fn eventually_prints(
    terminal: &Terminal,
    script: &str,
    is_as_wanted: impl Fn(&str) -> bool,
) {
    eventually("it prints what is wanted", LIMIT, async || {
        let printed = terminal.types(script);
        anyhow::ensure!(is_as_wanted(&printed), "{printed}");
        anyhow::Ok(())
    })
    .await;
}
