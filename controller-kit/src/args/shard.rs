//! Which owners a process takes, where several share them.

use std::collections::BTreeSet;

use api_types::names::NameRule;
use clap::{ArgAction, Args};

use super::label_selector::label_selector;
use super::parse_bool;

/// Which owners a process takes.
#[derive(Debug, Clone, Default, Args)]
pub struct ShardArgs {
    /// Name of the part of the owners that this process takes; its Lease is `<controller>-<name>`. Needed with
    /// --watch-label-selector and --watch-namespaces, and only then; default: there are no parts
    #[arg(long, value_name = "NAME", env = "CARTO_SHARD", value_parser = shard_name)]
    pub shard: Option<String>,

    /// Take only owners with these labels, as in kubectl's --selector; other processes take the others; default: all
    #[arg(
        long,
        value_name = "SELECTOR",
        env = "CARTO_WATCH_LABEL_SELECTOR",
        value_parser = label_selector
    )]
    pub watch_label_selector: Option<String>,

    /// Take only owners in these namespaces, with commas between; other processes take the others; default: all
    #[arg(
        long,
        value_name = "NAMES",
        env = "CARTO_WATCH_NAMESPACES",
        value_parser = namespaces
    )]
    pub watch_namespaces: Option<Namespaces>,

    /// Take only a share of the owners, of all that there are or of those that the other flags say: by namespace, each falls
    /// to one of the replicas that have this flag and the same Lease. Without it one of them leads, and the others wait
    #[arg(long, env = "CARTO_SHARE_OWNERS", default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_name = "BOOL", value_parser = parse_bool, action = ArgAction::Set)]
    pub share_owners: bool,
}

/// Names of namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespaces(pub BTreeSet<String>);

/// The name of a namespace or shard; an empty one is none.
fn dns_label(text: &str) -> Result<String, String> {
    if text.is_empty() || NameRule::DnsLabel.is_kept_by(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} {}", NameRule::DnsLabel))
    }
}

fn shard_name(text: &str) -> Result<String, String> {
    dns_label(text)
}

fn namespaces(text: &str) -> Result<Namespaces, String> {
    let names = text.split(',').map(str::trim).map(dns_label);
    let names: BTreeSet<String> = names.collect::<Result<_, _>>()?;
    if names.contains("") && names.len() > 1 {
        return Err(format!("{text:?} has a comma without a name beside it"));
    }
    let named = names.into_iter().filter(|name| !name.is_empty());
    Ok(Namespaces(named.collect()))
}
