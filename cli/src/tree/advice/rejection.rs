//! What to do about an object that the API server refused.
//!
//! The reason is the same whatever it objects to, so its words are read here: to advise, never to decide. Words that are not
//! known get the advice that is right for all.

use super::names::{is_label, is_plain, is_subdomain};

/// Namespace and name of a service account.
pub(super) type Account<'a> = (&'a str, &'a str);

/// A right that is missing, as the API server's authorizer tells it.
#[derive(Debug, PartialEq, Eq)]
struct Denied<'m> {
    account: Account<'m>,
    /// `deployments`, or `deployments/scale`.
    resource: &'m str,
    /// Empty for the core group.
    group: &'m str,
    /// Absent for a kind without namespaces.
    namespace: Option<&'m str>,
}

/// What the authorizer may say that somebody must not do.
const VERBS: [&str; 8] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];

impl<'m> Denied<'m> {
    /// Reads `services "x" is forbidden: User "system:serviceaccount:dev:app" cannot patch resource "services" in API group ""
    /// in the namespace "dev"`, where nothing but that was said. Each part has to be what it can be, or the text is
    /// somebody else's: a webhook, or the API server when it quotes a value, may repeat what a developer wrote.
    fn read(message: &'m str) -> Option<Self> {
        let told = own_text(message)?;
        let (refused, told) = told.split_once(" \"")?;
        let (name, told) = told.split_once("\" is forbidden: User \"system:serviceaccount:")?;
        let (account, told) = told.split_once("\" cannot ")?;
        let (verb, told) = told.split_once(" resource \"")?;
        let (resource, told) = told.split_once("\" in API group \"")?;
        let (group, place) = told.split_once('"')?;
        let namespace = match place.strip_prefix(" in the namespace \"") {
            Some(place) => Some(place.split_once('"')?.0),
            None if place.starts_with(" at the cluster scope") => None,
            None => return None,
        };
        let account = account.split_once(':')?;
        let (plural, subresource) = resource.split_once('/').unwrap_or((resource, "status"));
        let is_known = VERBS.contains(&verb)
            && is_plain(name)
            && is_label(account.0)
            && is_subdomain(account.1)
            && is_label(plural)
            && is_label(subresource)
            && (group.is_empty() || is_subdomain(group))
            && namespace.is_none_or(is_label)
            && refused.split_once('.').unwrap_or((refused, "")) == (plural, group);
        is_known.then_some(Self {
            account,
            resource,
            group,
            // A Namespace is told to be in itself, which is of no use for creating it.
            namespace: namespace.filter(|_| (resource, group) != ("namespaces", "")),
        })
    }

    /// The commands that grant it, with all that is needed to write, read back and one day delete such objects.
    fn grant(&self) -> String {
        let (account_namespace, account) = self.account;
        let plural = self
            .resource
            .split_once('/')
            .map_or(self.resource, |(plural, _)| plural);
        let role = format!("{account}-{plural}");
        let resource = match self.group {
            "" => self.resource.to_owned(),
            // kubectl wants the group before the subresource.
            group => format!("{plural}.{group}{}", &self.resource[plural.len()..]),
        };
        let (kind, place) = match self.namespace {
            Some(namespace) => ("role", format!(" -n {namespace}")),
            None => ("clusterrole", String::new()),
        };
        format!(
            "grant it to the service account, in a {kind} it has or in a new one: kubectl create {kind} {role}{place} \
             --verb=get,list,create,patch,delete --resource={resource} && kubectl create {kind}binding {role}{place} \
             --{kind}={role} --serviceaccount={account_namespace}:{account}"
        )
    }
}

/// What the API server answered when the object was written: after what our own message says before it, of which every
/// name has to be one, so that no name can pretend to be an end of it.
fn own_text(message: &str) -> Option<&str> {
    let told = message.strip_prefix("unable to apply object [")?;
    let (object, told) = told.split_once("] for ")?;
    let (place, told) = told.split_once("]: ")?;
    let words = place.replace("] in supply chain [", " ");
    let words = words
        .strip_prefix("resource [")
        .or_else(|| words.strip_prefix("run template ["))?;
    let (namespace, name) = object.split_once('/')?;
    let are_names = words.split(' ').chain([name]).all(is_plain)
        && (namespace.is_empty() || is_label(namespace));
    let told = told
        .strip_prefix("create: ")
        .or_else(|| told.strip_prefix("patch: "))?;
    are_names.then_some(told)
}

/// A kind that the API server does not serve: its group (empty for the core group).
fn unknown_kind(message: &str) -> Option<&str> {
    let version = after(message, "no matches for kind \"")
        .and_then(|rest| after(rest, "\" in version \""))
        .and_then(until_quote)?;
    let group = version.split_once('/').map_or("", |(group, _)| group);
    (group.is_empty() || is_subdomain(group)).then_some(group)
}

/// What to do about a refusal with this message, of an object written with the rights of `account`; `template` says how to
/// look at the template.
pub(super) fn advice(message: &str, account: Account<'_>, template: &str) -> String {
    match Denied::read(message) {
        // Nobody is told to grant a right to an account that only a message names.
        Some(denied) if denied.account == account => return denied.grant(),
        _ if message.contains(" is forbidden: User \"system:serviceaccount:") => {
            return format!(
                "if a right is missing, see in the message which, and grant it to the service account that stamps the \
                 object; else correct what the message names, in the template or in what it is given: {template}"
            );
        }
        _ => {}
    }
    match unknown_kind(message) {
        Some(group) => format!(
            "install what serves this kind, or correct apiVersion and kind in the template: {template}; those there are: \
             kubectl api-resources --api-group={group}"
        ),
        None => format!(
            "correct what the message names, in the template or in what it is given: {template}"
        ),
    }
}

fn after<'m>(text: &'m str, mark: &str) -> Option<&'m str> {
    text.split_once(mark).map(|(_, rest)| rest)
}

fn until_quote(text: &str) -> Option<&str> {
    text.split_once('"').map(|(before, _)| before)
}

#[cfg(test)]
mod tests;
