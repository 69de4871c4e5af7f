//! The object that a Runnable selects, read with its own rights
//! (docs/behaviour/runnables.md#selector).

use std::time::Duration;

use controller_kit::mapper::{Kind, MapError, Served};
use controller_kit::owner::Dependency;
use controller_kit::stamped::ObjectKey;
use controller_kit::submit::{SLOW_READ, SubmitError, missing_to_watch};
use controller_kit::tokens::Account;
use realizer::SubmitFailureKind;
use realizer::runnable::{Runnable, SelectError, Selected, select_one};

use crate::controller::RunnableController;
use crate::selections::{Matches, Read, Selection, WatchAnswer};

/// Two are enough to know that there is not one, and any number of them may be large.
const ENOUGH: usize = 2;

/// What selecting came to, and what the Runnable waits for besides.
pub(crate) struct Look {
    pub(crate) selected: Selected,
    /// Look again after this time: the object is not watched.
    pub(crate) again: Option<Duration>,
    pub(crate) awaited: Vec<Dependency>,
    /// What is missing to watch the object.
    pub(crate) unwatched: Option<String>,
}

impl Look {
    fn at(selected: Selected) -> Self {
        Self {
            selected,
            again: None,
            awaited: Vec::new(),
            unwatched: None,
        }
    }

    fn failed(error: SelectError, awaited: Dependency) -> Self {
        Self {
            selected: Err(error),
            again: Some(SLOW_READ),
            awaited: vec![awaited],
            unwatched: None,
        }
    }
}

impl RunnableController {
    /// Sends nothing as long as the objects that match are those of the last time.
    pub(crate) async fn select(
        &self,
        runnable: &Runnable,
        account: &Account,
    ) -> Result<Look, SubmitError> {
        let key = ObjectKey::of_owner(&runnable.namespace, &runnable.name);
        let Some(selector) = &runnable.selector else {
            self.selections.release(&key);
            return Ok(Look::at(Ok(None)));
        };
        let resource = &selector.resource;
        let kind = Kind::new(
            resource.api_version.clone().unwrap_or_default(),
            resource.kind.clone().unwrap_or_default(),
        );
        let served = match self.shell.submitter.mapper().served(&kind).await {
            Ok(served) => served,
            Err(error) => {
                return match SubmitError::of_lookup(&error) {
                    Some(prevented) => Err(prevented),
                    None => Ok(unmapped(selector.matching_labels.clone(), &kind, &error)),
                };
            }
        };
        let selection = Selection {
            namespace: served.namespaced.then(|| runnable.namespace.to_string()),
            labels: selector.matching_labels.clone(),
            kind,
        };
        let rights_changes = self.shell.dependencies.rights_changes();
        let followed = &self.selections;
        match followed.follow(&key, &selection, &served, rights_changes) {
            WatchAnswer::Matches(matches) => {
                self.read(&key, selection, &served, account, Some(matches))
                    .await
            }
            WatchAnswer::Nothing => self.read(&key, selection, &served, account, None).await,
            WatchAnswer::Refused(why) => {
                let mut look = self.read(&key, selection, &served, account, None).await?;
                look.unwatched = Some(missing_to_watch(&served, &why));
                look.awaited.push(Dependency::Rights(key.namespace));
                Ok(look)
            }
        }
    }

    async fn read(
        &self,
        runnable: &ObjectKey,
        selection: Selection,
        served: &Served,
        account: &Account,
        matches: Option<Matches>,
    ) -> Result<Look, SubmitError> {
        if let Some(matches) = &matches
            && let Some(read) = self
                .selections
                .read(runnable, &selection, &account.uid, matches)
        {
            return Ok(Look::at(read.map(Some)));
        }
        let namespace = &runnable.namespace;
        let submitter = &self.shell.submitter;
        let listed = submitter.select(account, served, namespace, &selection.labels, ENOUGH);
        let object = match listed.await? {
            Ok(objects) => {
                select_one(objects).map(|object| self.selections.share(&selection, object))
            }
            Err(failure) => {
                let awaited = match failure.kind {
                    SubmitFailureKind::Forbidden => Dependency::Rights(namespace.clone()),
                    _ => Dependency::Group(selection.kind.group().into()),
                };
                let error = SelectError::List {
                    namespaced: served.namespaced,
                    labels: selection.labels,
                    cause: failure.message,
                };
                return Ok(Look::failed(error, awaited));
            }
        };
        let again = matches.is_none().then_some(SLOW_READ);
        if let Some(matches) = matches {
            let read = Read {
                selection,
                account: account.uid.clone(),
                matches,
                object: object.clone(),
            };
            self.selections.keep(runnable, read);
        }
        Ok(Look {
            again,
            ..Look::at(object.map(Some))
        })
    }
}

/// A kind that is not served counts as one of the cluster, whose objects then cannot be listed, as upstream. Of a version that is
/// not served, upstream's cache of discovery knows no more than that.
fn unmapped(
    labels: std::collections::BTreeMap<String, String>,
    kind: &Kind,
    error: &MapError,
) -> Look {
    let cause = error.to_string();
    let error = match error {
        MapError::NotServed {
            has_version: false, ..
        } => SelectError::Discovery("not found".to_owned()),
        MapError::NotServed { .. } => SelectError::List {
            namespaced: false,
            labels,
            cause,
        },
        MapError::Discovery { error, .. } => SelectError::Discovery(error.to_string()),
    };
    Look::failed(error, Dependency::Group(kind.group().into()))
}
