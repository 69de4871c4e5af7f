//! NetworkPolicies. Nothing on this node enforces them, so what they allow is compared with what is connected: where they are
//! enforced, each of these connections has to be allowed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use e2e::binaries::CONVENTIONS_CONTROLLER;
use e2e::path_stack::CONTROLLERS;
use serde_json::Value;
use test_support::{CONTROLLERS_NAMESPACE, objects_in};

use super::Installed;

/// `CGROUP` of hack/node/addresses.sh: what does not run below it is none of the Pods.
const NODE: &str = "carto-node";
/// The kernel tells no more of the name of a program.
const NAME_LENGTH: usize = 15;
const ESTABLISHED: &str = "01";
/// The names of the containers' ports.
const PORTS: [(&str, u16); 3] = [("health", 8081), ("metrics", 9998), ("webhook", 9443)];

/// Each connection that a controller has is one that its NetworkPolicy allows, and the API server is among them where the
/// rules are applied to the address behind the Service, too.
pub(super) async fn allow_what_is_connected(installed: &Installed<'_>) -> anyhow::Result<()> {
    let control_plane = &installed.stack.control_plane;
    let client = control_plane.client()?;
    let policies = objects_in(
        &client,
        CONTROLLERS_NAMESPACE,
        "networking.k8s.io/v1",
        "NetworkPolicy",
    );
    let server = control_plane.server_url();
    let server = server.rsplit(':').next().context("a port")?.parse()?;
    for name in CONTROLLERS.iter().chain([&CONVENTIONS_CONTROLLER]) {
        let policy = Allowed::by(&policies.get(name).await?.data["spec"])?;
        ensure!(policy.allows(Connection::To(server)), "{name}: {server}");
        let connections = connections_of(name)?;
        ensure!(!connections.is_empty(), "{name} is connected to nobody");
        for connection in connections {
            ensure!(policy.allows(connection), "{name} may not: {connection:?}");
        }
    }
    Ok(())
}

/// A connection, by the port of whoever was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Connection {
    To(u16),
    From(u16),
}

/// The ports of a NetworkPolicy that do not depend on the other end.
struct Allowed {
    ingress: BTreeSet<u16>,
    /// None if all are.
    egress: Option<BTreeSet<u16>>,
}

impl Allowed {
    fn by(spec: &Value) -> anyhow::Result<Self> {
        let rules = |name: &str| spec[name].as_array().into_iter().flatten();
        let ports = |rule: &Value| rule["ports"].as_array().cloned().unwrap_or_default();
        let number = |port: &Value| {
            let name = port["port"].as_str().unwrap_or_default();
            let named = PORTS.iter().find(|(known, _)| *known == name);
            let number = port["port"].as_u64().and_then(|it| u16::try_from(it).ok());
            number.or_else(|| named.map(|it| it.1)).context("a port")
        };
        let all = |name: &str| {
            let ports = rules(name).flat_map(ports);
            ports.map(|port| number(&port)).collect::<Result<_, _>>()
        };
        let unlimited =
            rules("egress").any(|rule| rule.as_object().is_some_and(serde_json::Map::is_empty));
        Ok(Self {
            ingress: all("ingress")?,
            egress: if unlimited {
                None
            } else {
                Some(all("egress")?)
            },
        })
    }

    fn allows(&self, connection: Connection) -> bool {
        match connection {
            Connection::From(port) => self.ingress.contains(&port),
            Connection::To(port) => self.egress.as_ref().is_none_or(|it| it.contains(&port)),
        }
    }
}

/// What the processes of this name are connected to, in the network of their Pods.
fn connections_of(name: &str) -> anyhow::Result<BTreeSet<Connection>> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir("/proc")? {
        let process = entry?.path();
        if !is_in_a_pod(&process, name) {
            continue;
        }
        for table in ["net/tcp", "net/tcp6"] {
            let table = std::fs::read_to_string(process.join(table)).unwrap_or_default();
            found.extend(table.lines().skip(1).filter_map(connection));
        }
    }
    Ok(found)
}

fn is_in_a_pod(process: &Path, name: &str) -> bool {
    let read = |file: &str| std::fs::read_to_string(PathBuf::from(process).join(file));
    let comm = read("comm").unwrap_or_default();
    let expected = &name[..name.len().min(NAME_LENGTH)];
    comm.trim_end() == expected && read("cgroup").unwrap_or_default().contains(NODE)
}

/// A line of /proc/PID/net/tcp: number, own address, other address, state.
fn connection(line: &str) -> Option<Connection> {
    let mut fields = line.split_whitespace().skip(1);
    let port = |address: &str| u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok();
    let (own, other) = (port(fields.next()?)?, port(fields.next()?)?);
    if fields.next()? != ESTABLISHED {
        return None;
    }
    let is_served = PORTS.iter().any(|(_, served)| *served == own);
    Some(if is_served {
        Connection::From(own)
    } else {
        Connection::To(other)
    })
}
