//! What a node leaves on a machine: while it runs, and what may not be there afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

const CGROUPS: &str = "/sys/fs/cgroup";
/// `CGROUP` of hack/node/addresses.sh.
const OURS: &str = "carto-node";
/// What a process may have of its own; the others are shared with the machine.
const NAMESPACES: [&str; 3] = ["pid", "net", "mnt"];

/// What outlives processes: by what it is called, in the words of the tool that shows it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Machine(BTreeMap<&'static str, String>);

impl Machine {
    pub(crate) fn look() -> anyhow::Result<Self> {
        let cgroups: Vec<String> = our_cgroups()?
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        Ok(Self(BTreeMap::from([
            ("links", shown("ip", &["-brief", "link"])?),
            ("routes", shown("ip", &["route"])?),
            ("filters", shown("iptables", &["--list-rules"])?),
            (
                "translations",
                shown("iptables", &["--table", "nat", "--list-rules"])?,
            ),
            // Bind mounts of namespaces, as `ip netns` makes them, are among these.
            ("mounts", std::fs::read_to_string("/proc/self/mounts")?),
            ("cgroups", cgroups.join("\n")),
        ])))
    }

    /// The parts that differ, before and after.
    pub(crate) fn difference(&self, now: &Self) -> String {
        let differing = self.0.iter().filter(|(name, text)| now.0[*name] != **text);
        let parts: Vec<String> = differing
            .map(|(name, text)| format!("{name}, before:\n{text}\nnow:\n{}", now.0[name]))
            .collect();
        parts.join("\n")
    }
}

/// The namespaces in which a node and its Pods live.
#[derive(Debug)]
pub(crate) struct NodeTraces(BTreeSet<PathBuf>);

impl NodeTraces {
    /// Found by the processes in the node's cgroups.
    pub(crate) fn of_the_running_one() -> anyhow::Result<Self> {
        let own = namespaces_of(Path::new("/proc/self"));
        let mut found = BTreeSet::new();
        for folder in our_cgroups()? {
            let processes = std::fs::read_to_string(folder.join("cgroup.procs"))?;
            for process in processes.lines() {
                found.extend(namespaces_of(&Path::new("/proc").join(process)));
            }
        }
        found.retain(|namespace| !own.contains(namespace));
        ensure!(
            found.len() >= NAMESPACES.len(),
            "the node shares the machine's namespaces: {found:?}"
        );
        Ok(Self(found))
    }

    /// The programs that still live in one of them.
    pub(crate) fn left(&self) -> anyhow::Result<Vec<String>> {
        let mut left = Vec::new();
        for entry in std::fs::read_dir("/proc")? {
            let process = entry?.path();
            if !namespaces_of(&process).is_disjoint(&self.0) {
                left.push(std::fs::read_to_string(process.join("comm")).unwrap_or_default());
            }
        }
        Ok(left)
    }
}

/// None for what is no process, or has ended meanwhile.
fn namespaces_of(process: &Path) -> BTreeSet<PathBuf> {
    let links = NAMESPACES.iter().map(|kind| process.join("ns").join(kind));
    links.filter_map(|link| link.read_link().ok()).collect()
}

/// All folders of our cgroups, in all hierarchies.
fn our_cgroups() -> anyhow::Result<Vec<PathBuf>> {
    let output = shown(
        "find",
        &[CGROUPS, "-type", "d", "-path", &format!("*/{OURS}*")],
    )?;
    Ok(output.lines().map(PathBuf::from).collect())
}

fn shown(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .context(program.to_owned())?;
    ensure!(output.status.success(), "{program}: {output:?}");
    Ok(String::from_utf8(output.stdout)?)
}
