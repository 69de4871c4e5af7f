//! Mirrors, as containerd's `hosts.toml` names them.
//!
//! ```toml
//! server = "https://registry.example"
//!
//! [host."https://mirror.example/v2/proxy"]
//!   capabilities = ["pull", "resolve"]
//!   override_path = true
//!   ca = "/etc/mirror/ca.crt"
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use conventions::image::DOCKER_HUB;
use reqwest::Url;
use serde::Deserialize;
use toml::{Spanned, Table};

use crate::clients::is_loopback;
use crate::fault::clip;

/// How people, and mirrors, call Docker Hub.
pub(crate) const DOCKER_HUB_ALIAS: &str = "docker.io";
/// What may be said of a host.
const OPTIONS: [&str; 4] = ["capabilities", "ca", "skip_verify", "override_path"];

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hosts {
    /// In the order in which they are to be asked.
    pub(crate) mirrors: Vec<Host>,
    /// Instead of the registry itself, if it is named.
    pub(crate) server: Option<Host>,
    /// What does not count here.
    pub(crate) unknown: Vec<String>,
}

/// One to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// Ends with a slash; repositories follow.
    pub(crate) base: Url,
    /// Whether it knows what a tag means.
    pub(crate) resolves: bool,
    /// Authorities that are trusted for it.
    pub(crate) authorities: Vec<PathBuf>,
    /// Whether any certificate is good.
    pub(crate) skip_verify: bool,
}

#[derive(Deserialize)]
struct Document {
    server: Option<String>,
    #[serde(default)]
    host: BTreeMap<Spanned<String>, Options>,
    capabilities: Option<Vec<String>>,
    ca: Option<OneOrMany>,
    #[serde(default)]
    skip_verify: bool,
    #[serde(default)]
    override_path: bool,
}

#[derive(Deserialize)]
struct Options {
    capabilities: Option<Vec<String>>,
    ca: Option<OneOrMany>,
    #[serde(default)]
    skip_verify: bool,
    #[serde(default)]
    override_path: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(PathBuf),
    Many(Vec<PathBuf>),
}

impl Hosts {
    /// Reads a file that is in this folder, to which paths in it are relative.
    ///
    /// # Errors
    ///
    /// If it says something that is not understood, or that is not safe.
    pub(crate) fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let document: Document =
            toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let mut hosts: Vec<(Spanned<String>, Options)> = document.host.into_iter().collect();
        // In the order in which they are written.
        hosts.sort_by_key(|(name, _)| name.span().start);
        let mut mirrors = Vec::new();
        for (name, options) in hosts {
            if let Some(host) = Host::new(name.get_ref(), options, folder)? {
                mirrors.push(host);
            }
        }
        let options = Options {
            capabilities: document.capabilities,
            ca: document.ca,
            skip_verify: document.skip_verify,
            override_path: document.override_path,
        };
        let server = document
            .server
            .map(|server| Host::new(&server, options, folder));
        Ok(Self {
            mirrors,
            server: server.transpose()?.flatten(),
            unknown: unknown(text),
        })
    }
}

impl Host {
    /// Nothing for one that nothing can be read from.
    fn new(name: &str, options: Options, folder: &Path) -> Result<Option<Self>, String> {
        let address = if name.contains("://") {
            name.to_owned()
        } else {
            format!("https://{name}")
        };
        let base = Url::parse(&address).map_err(|_| format!("{name:?} is no address"))?;
        let own = is_loopback(&base);
        let plain = base.scheme() == "http" && own;
        if base.host_str().is_none() || !(base.scheme() == "https" || plain) {
            return Err(format!("{name:?} is not by https, and not of loopback"));
        }
        if !base.username().is_empty() || base.password().is_some() || base.query().is_some() {
            return Err("an address has more than a host and a path".to_owned());
        }
        if options.skip_verify && !own {
            return Err(format!("skip_verify of {name:?} is for loopback only"));
        }
        let capabilities = options
            .capabilities
            .unwrap_or_else(|| vec!["pull".to_owned(), "resolve".to_owned()]);
        for capability in &capabilities {
            if !["pull", "resolve", "push"].contains(&capability.as_str()) {
                return Err(format!("there is no capability {capability:?}"));
            }
        }
        if !capabilities.iter().any(|it| it == "pull") {
            return Ok(None);
        }
        let authorities = match options.ca {
            None => Vec::new(),
            Some(OneOrMany::One(file)) => vec![file],
            Some(OneOrMany::Many(files)) => files,
        };
        Ok(Some(Self {
            base: root(base, options.override_path),
            resolves: capabilities.iter().any(|it| it == "resolve"),
            authorities: authorities
                .into_iter()
                .map(|file| folder.join(file))
                .collect(),
            skip_verify: options.skip_verify,
        }))
    }
}

/// Fields of a document that do not count: newer versions of containerd know more of them.
fn unknown(text: &str) -> Vec<String> {
    let document: Table = toml::from_str(text).unwrap_or_default();
    let known = |key: &str| OPTIONS.contains(&key);
    let of_root = document
        .keys()
        .filter(|key| !known(key) && !["server", "host"].contains(&key.as_str()));
    let mut unknown: BTreeSet<String> = of_root.cloned().collect();
    let hosts = document.get("host").and_then(|hosts| hosts.as_table());
    for options in hosts.iter().flat_map(|hosts| hosts.values()) {
        let keys = options.as_table().into_iter().flat_map(Table::keys);
        unknown.extend(keys.filter(|key| !known(key)).cloned());
    }
    unknown.into_iter().map(|key| clip(&key)).collect()
}

/// Where repositories begin: below `v2`, unless the path says all of it.
fn root(mut base: Url, whole: bool) -> Url {
    let path = base.path().trim_end_matches('/').to_owned();
    let version = if whole || path.ends_with("/v2") {
        ""
    } else {
        "/v2"
    };
    base.set_path(&format!("{path}{version}/"));
    base.set_fragment(None);
    base
}

/// The folders that may have the file of a registry, the first that has one counts.
pub(crate) fn folders(root: &Path, registry: &str) -> Vec<PathBuf> {
    // Docker Hub has several names; files are below the one that people use.
    let name = match registry {
        DOCKER_HUB => DOCKER_HUB_ALIAS,
        other => other,
    };
    // What consists of dots would be another folder.
    if name.bytes().all(|c| c == b'.') || name.contains('/') {
        return Vec::new();
    }
    let mut folders = vec![root.join(name)];
    if let Some((host, port)) = name.rsplit_once(':') {
        folders.push(root.join(format!("{host}_{port}_")));
    }
    folders.push(root.join("_default"));
    folders
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Hosts, String> {
        Hosts::parse(text, Path::new("/hosts"))
    }

    #[test]
    fn mirrors_are_asked_in_the_order_in_which_they_are_written() {
        let hosts = read(
            r#"
            server = "https://registry.example"
            ca = "own.crt"
            [host."https://z.example"]
            capabilities = ["pull"]
            [host."https://a.example/v2/proxy"]
            override_path = true
            ca = ["/a.crt", "b.crt"]
            [host."m.example:8443/sub"]
            [host."http://localhost:5000"]
            skip_verify = true
            [host."https://push.example"]
            capabilities = ["push"]
            "#,
        );
        let hosts = hosts.unwrap();
        let seen: Vec<(&str, bool)> = hosts
            .mirrors
            .iter()
            .map(|it| (it.base.as_str(), it.resolves))
            .collect();
        assert_eq!(
            seen,
            [
                ("https://z.example/v2/", false),
                ("https://a.example/v2/proxy/", true),
                ("https://m.example:8443/sub/v2/", true),
                ("http://localhost:5000/v2/", true),
            ]
        );
        assert_eq!(
            hosts.mirrors[1].authorities,
            [Path::new("/a.crt"), Path::new("/hosts/b.crt")]
        );
        let server = hosts.server.unwrap();
        assert_eq!(server.base.as_str(), "https://registry.example/v2/");
        assert_eq!(server.authorities, [Path::new("/hosts/own.crt")]);
        assert_eq!(
            read(""),
            Ok(Hosts {
                mirrors: Vec::new(),
                server: None,
                unknown: Vec::new(),
            })
        );
    }

    #[test]
    fn what_is_not_safe_or_not_known_is_refused() {
        for text in [
            "server = 5",
            "[host.\"http://mirror.example\"]",
            "[host.\"ftp://mirror.example\"]",
            "[host.\"https://mirror.example\"]\nskip_verify = true",
            "[host.\"https://user:pass@mirror.example\"]",
            "[host.\"https://mirror.example\"]\ncapabilities = [\"fly\"]",
            "[host.\"https://\"]",
            "server = \"http://registry.example\"",
            "x",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_newer_versions_say_more_does_not_count_and_is_told() {
        let hosts = read(
            r#"
            version = 3
            server = "https://registry.example"
            dial_timeout = "5s"
            [host."https://mirror.example"]
            capabilities = ["pull"]
            client = "cert.pem"
            [host."https://mirror.example".header]
            x-token = "t"
            [host."https://other.example"]
            client = ["a.pem", "a.key"]
            "#,
        );
        let hosts = hosts.unwrap();
        assert_eq!(
            hosts.unknown,
            ["client", "dial_timeout", "header", "version"]
        );
        assert_eq!(hosts.mirrors.len(), 2);
        assert!(!hosts.mirrors[0].resolves);
        assert!(hosts.server.is_some());
    }

    #[test]
    fn the_folder_of_a_registry_is_below_the_root() {
        let root = Path::new("/hosts");
        let of = |registry: &str| -> Vec<String> {
            let folders = folders(root, registry).into_iter();
            folders.map(|it| it.display().to_string()).collect()
        };
        assert_eq!(
            of("index.docker.io"),
            ["/hosts/docker.io", "/hosts/_default"]
        );
        assert_eq!(
            of("a.example:5000"),
            [
                "/hosts/a.example:5000",
                "/hosts/a.example_5000_",
                "/hosts/_default"
            ]
        );
        assert_eq!(of(".."), [""; 0]);
        assert_eq!(of("."), [""; 0]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,200}", name in "\\PC{0,30}") {
            let _ = read(&text);
            let _ = read(&format!("[host.{name:?}]\n{text}"));
            let _ = read(&format!("server = {name:?}\nhost = {text}"));
            let _ = read(&format!("[host.\"https://a.example\".{name:?}]\n{text}"));
            for folder in folders(Path::new("/hosts"), &name) {
                prop_assert_eq!(folder.components().count(), 3);
            }
        }
    }
}
