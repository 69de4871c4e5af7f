//! What is to be done for a PodIntent, decided from what is watched; nothing is asked.

use std::collections::HashSet;
use std::sync::Arc;

use controller_kit::stamped::ObjectKey;
use conventions::authority::AuthorityError;
use conventions::condition::IntentReason;
use conventions::considered::others;
use conventions::inputs::{Called, Inputs, digest_of_bytes};
use conventions::outcome::Failure;
use conventions::select::{Labels, Selectable, select};
use conventions::{ConsideredConvention, FailurePolicy, PodIntent};

use crate::authority::Authority;
use crate::controller::{Dependency, IntentController};
use crate::entries::ConventionEntry;
use crate::fault::Stop;
use crate::presets::Selected;

/// What is to be done.
pub(crate) struct Plan {
    /// The conventions that match, in their order.
    pub(crate) calls: Vec<PlannedCall>,
    /// Those that do not.
    pub(crate) others: Vec<ConsideredConvention>,
    /// The pull secrets in the order in which they are asked, with their versions.
    pub(crate) secrets: Vec<(String, Option<u64>)>,
    /// A digest of all that decides what comes of it.
    pub(crate) inputs_digest: String,
    /// The same without what is exchanged while nobody wants another template.
    pub(crate) contents_digest: String,
}

/// A convention that matches.
pub(crate) struct PlannedCall {
    pub(crate) entry: Arc<ConventionEntry>,
    pub(crate) considered: ConsideredConvention,
    pub(crate) mechanism: Mechanism,
}

/// How a convention is applied.
pub(crate) enum Mechanism {
    Webhook {
        /// Whom it trusts. It is not known only where failures are ignored.
        authority: Result<Authority, AuthorityError>,
    },
    /// Nothing if presets are not served here.
    PodPresets(Option<Selected>),
}

impl IntentController {
    /// What is to be done for this PodIntent.
    ///
    /// It says what it depends on before that is looked at: what changes in between wakes it again.
    pub(crate) async fn plan(&self, key: &ObjectKey, intent: &PodIntent) -> Result<Plan, Stop> {
        let secrets = self.pull_secrets(key, intent)?;
        let entries = self.conventions();
        let empty = Labels::new();
        let labels = Selectable {
            intent: intent.metadata.labels.as_ref().unwrap_or(&empty),
            template: &intent.spec.template.metadata.labels,
        };
        let calls = self.matching(key, &entries, labels).await?;
        let called: Vec<Called> = calls.iter().map(PlannedCall::called).collect();
        let inputs = Inputs {
            template: &intent.spec.template,
            credentials: &secrets,
            conventions: &called,
            resolution: &self.options.resolution,
        };
        Ok(Plan {
            inputs_digest: inputs.digest(),
            contents_digest: inputs.digest_of_contents(),
            others: others(entries.iter().map(|entry| &entry.selection), labels),
            calls,
            secrets,
        })
    }

    /// The conventions that match, in their order, and whom they trust.
    async fn matching(
        &self,
        key: &ObjectKey,
        entries: &[Arc<ConventionEntry>],
        labels: Selectable<'_>,
    ) -> Result<Vec<PlannedCall>, Stop> {
        let selections = entries.iter().map(|entry| &entry.selection);
        let selected = select(selections, labels).map_err(Failure::from)?;
        let mut calls = Vec::new();
        for selection in selected {
            let name = selection.name();
            let entry = entries.iter().find(|entry| *entry.name == *name);
            let (Some(entry), Some(by)) = (entry, selection.matched_by(labels)) else {
                continue;
            };
            if let Some(cause) = unreadable(entry) {
                let convention = name.to_owned();
                return Err(Failure::Unreadable { convention, cause }.into());
            }
            calls.push(PlannedCall {
                entry: entry.clone(),
                considered: ConsideredConvention::matching(selection, by),
                mechanism: self.mechanism(key, entry, labels.template).await?,
            });
        }
        Ok(calls)
    }

    async fn mechanism(
        &self,
        key: &ObjectKey,
        entry: &ConventionEntry,
        labels: &Labels,
    ) -> Result<Mechanism, Stop> {
        if entry.applies_presets() {
            let presets = self.presets.as_ref();
            let selected = presets.map(|presets| presets.select(&key.namespace, labels));
            return Ok(Mechanism::PodPresets(selected.transpose()?));
        }
        let authority = self.authority(key, entry).await?;
        if let Err(error) = &authority
            && entry.failure_policy() == FailurePolicy::Fail
        {
            return Err(unauthentic(error).into());
        }
        Ok(Mechanism::Webhook { authority })
    }

    /// The Secrets that are asked for credentials: those of the PodIntent, then those of its
    /// service account.
    fn pull_secrets(
        &self,
        key: &ObjectKey,
        intent: &PodIntent,
    ) -> Result<Vec<(String, Option<u64>)>, Failure> {
        let account_name = intent.spec.service_account();
        let account = ObjectKey::new(&key.namespace, account_name);
        let own = intent.spec.image_pull_secrets.iter();
        let mut names: Vec<String> = own.map(|secret| secret.name.clone()).collect();
        let mut awaited = vec![Dependency::Account(account.clone())];
        self.dependencies.set(key, &awaited);
        let account = self.stores.accounts.get(&account);
        let of_account = account.iter().flat_map(|account| &account.pull_secrets);
        names.extend(of_account.map(ToString::to_string));
        let asked = each_once(names);
        let secret = |name: &String| ObjectKey::new(&key.namespace, name);
        awaited.extend(asked.iter().map(|name| Dependency::Secret(secret(name))));
        self.dependencies.set(key, &awaited);
        if account.is_none() {
            return Err(Failure::Credentials {
                cause: format!("serviceaccounts \"{account_name}\" not found"),
            });
        }
        let versions = asked.into_iter().map(|name| {
            let entry = self.stores.secrets.get(&secret(&name));
            (name, entry.map(|entry| entry.version))
        });
        Ok(versions.collect())
    }
}

/// Why a convention cannot be read without which the template does not go on.
fn unreadable(entry: &ConventionEntry) -> Option<String> {
    let cause = entry.unreadable.clone()?;
    (entry.failure_policy() == FailurePolicy::Fail).then_some(cause)
}

/// The names that there are, in order, each once.
fn each_once(mut names: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    names.retain(|name| !name.is_empty() && seen.insert(name.clone()));
    names
}

/// What is told of a convention of which nobody knows whom it trusts.
fn unauthentic(error: &AuthorityError) -> Failure {
    let cause = error.to_string();
    match error {
        AuthorityError::Forbidden { .. } => Failure::Forbidden {
            reason: IntentReason::CaBundleResolutionFailed,
            cause,
        },
        _ => Failure::CaBundle { cause },
    }
}

impl PlannedCall {
    pub(crate) fn called(&self) -> Called {
        Called {
            name: self.entry.name.to_string(),
            uid: self.entry.uid.to_string(),
            generation: self.entry.generation,
            revision: self.revision(),
            authority: match &self.mechanism {
                Mechanism::Webhook { authority } => match authority {
                    Ok(None) => String::new(),
                    Ok(Some(pem)) => digest_of_bytes(pem),
                    Err(error) => error.to_string(),
                },
                Mechanism::PodPresets(_) => String::new(),
            },
        }
    }

    /// What stands for what it would do, beside its spec.
    fn revision(&self) -> String {
        let said = &self.entry.revision;
        match &self.mechanism {
            Mechanism::PodPresets(Some(selected)) => format!("{said} {}", selected.digest()),
            Mechanism::PodPresets(None) | Mechanism::Webhook { .. } => said.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_secrets_are_asked_in_their_order_and_each_once() {
        let names = ["b", "", "a", "b", "a"].map(str::to_owned).to_vec();
        assert_eq!(each_once(names), ["b", "a"]);
        test_support::takes_about_ten_times_as_long(30_000, |count| {
            let names: Vec<String> = (0..count).map(|index| format!("pull-{index}")).collect();
            move || assert_eq!(each_once(names.clone()).len(), count)
        });
    }
}
