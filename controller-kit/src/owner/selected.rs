//! Objects that an owner selects without stamping them, read with its own rights.

use std::sync::Arc;
use std::time::Duration;

use realizer::{Needed, ObjectChoice, SubmitFailure, SubmitFailureKind};
use serde_json::{Value, json};

use super::{Dependency, OwnerShell};
use crate::mapper::{Kind, MapError, Served};
use crate::selections::{Matches, NotOne, Read, Reading, Selection, WatchAnswer};
use crate::stamped::{ObjectKey, Projection};
use crate::submit::{SLOW_READ, SubmitError, missing_to_watch};
use crate::tokens::Account;

/// What an owner wants to read.
#[derive(Debug)]
pub struct Wanted<'w> {
    /// The owner.
    pub owner: &'w ObjectKey,
    /// The account whose rights are used.
    pub account: &'w Account,
    /// The kind of the object.
    pub kind: Kind,
    /// Which of its objects, in the owner's namespace if the kind has them.
    pub choice: ObjectChoice,
    /// How many are asked for at most, where there is to be one: any number of them may be large.
    pub most: usize,
    /// Which part of it is kept, if not all of it.
    pub part: Option<Projection>,
    /// Whether what was read before does not do, neither now nor later.
    pub is_fresh: bool,
    /// How much of it is asked for. It is watched in any case.
    pub needed: Needed,
}

/// What selecting came to, and what the owner waits for besides.
#[derive(Debug)]
pub struct Selected {
    /// The object.
    pub object: Result<Arc<Value>, Unselected>,
    /// In which version it was read or, if no more was asked for, is there for the account; if that is known.
    pub version: Option<String>,
    /// What is watched for it, if its kind is known.
    pub selection: Option<Selection>,
    /// Look again after this time: the object is not watched.
    pub again: Option<Duration>,
    /// What the owner waits for.
    pub awaited: Vec<Dependency>,
    /// What is missing to watch the object.
    pub unwatched: Option<String>,
}

/// Why there is no object.
#[derive(Debug)]
pub enum Unselected {
    /// It was not to be read.
    Unneeded,
    /// The kind is not known.
    Unmapped(MapError),
    /// There is none, or there are several.
    NotOne(NotOne),
    /// The API server refused to read it.
    Refused {
        /// What it said.
        failure: SubmitFailure,
        /// Whether the kind has namespaces.
        namespaced: bool,
    },
}

impl OwnerShell {
    /// Reads an object; sends nothing as long as those that match are those of the last time.
    ///
    /// # Errors
    /// There is no token, or the API server did not carry it out.
    pub async fn select(&self, wanted: Wanted<'_>) -> Result<Selected, SubmitError> {
        let served = match self.submitter.mapper().served(&wanted.kind).await {
            Ok(served) => served,
            // Whoever needs it asks for more, and is told.
            Err(_) if wanted.needed != Needed::Value => {
                return Ok(Selected::of(Err(Unselected::Unneeded), None, None));
            }
            Err(error) => {
                return match SubmitError::of_lookup(&error) {
                    Some(prevented) => Err(prevented),
                    None => Ok(unmapped(&wanted.kind, error)),
                };
            }
        };
        let selection = Selection {
            namespace: served
                .namespaced
                .then(|| wanted.owner.namespace.to_string()),
            kind: wanted.kind.clone(),
            choice: wanted.choice.clone(),
        };
        let answer = self.followed(&wanted, &selection, &served).await;
        match wanted.needed {
            Needed::Nothing => {
                let unneeded = Err(Unselected::Unneeded);
                Ok(Selected::of(unneeded, Some(selection), None))
            }
            Needed::Version => Ok(Selected {
                version: self.selections.version(wanted.owner, &selection, &answer),
                ..Selected::of(Err(Unselected::Unneeded), Some(selection), None)
            }),
            Needed::Value => {
                self.read_selected(&wanted, selection, &served, answer)
                    .await
            }
        }
    }

    /// Has it watched, and returns what the watch says. Whoever wants to know more than that waits a moment for one that has just
    /// begun: owners that come at the same time would each read what one can read for all.
    async fn followed(
        &self,
        wanted: &Wanted<'_>,
        selection: &Selection,
        served: &Served,
    ) -> WatchAnswer {
        let (owner, account) = (wanted.owner, &wanted.account.uid);
        let follow = || {
            let rights_changes = self.dependencies.rights_changes();
            self.selections
                .follow(owner, account, selection, served, rights_changes)
        };
        let answer = follow();
        // Before it waits: what others begin to read meanwhile is not too old.
        if wanted.is_fresh {
            self.selections.outdate(owner, selection);
        }
        if answer != WatchAnswer::Nothing || wanted.needed == Needed::Nothing {
            return answer;
        }
        self.selections.wait_for_listing(selection).await;
        follow()
    }

    async fn read_selected(
        &self,
        wanted: &Wanted<'_>,
        selection: Selection,
        served: &Served,
        answer: WatchAnswer,
    ) -> Result<Selected, SubmitError> {
        match answer {
            WatchAnswer::Matches(matches) => {
                self.read_watched(wanted, selection, served, matches).await
            }
            WatchAnswer::Nothing => self.read_unwatched(wanted, selection, served).await,
            WatchAnswer::Refused(why) => {
                let mut selected = self.read_unwatched(wanted, selection, served).await?;
                selected.unwatched = Some(missing_to_watch(served, &why));
                let namespace = wanted.owner.namespace.clone();
                selected.awaited.push(Dependency::Rights(namespace));
                Ok(selected)
            }
        }
    }

    /// Reads it unless it was read with the rights of the account when the same objects matched, or is being read so.
    async fn read_watched(
        &self,
        wanted: &Wanted<'_>,
        selection: Selection,
        served: &Served,
        matches: Matches,
    ) -> Result<Selected, SubmitError> {
        let (owner, part) = (wanted.owner, wanted.part.as_ref());
        let reading = || self.selections.reading(owner, &selection, &matches, part);
        let mut found = reading();
        if let Some(Reading::UnderWay(under_way)) = found {
            under_way.ended().await;
            found = reading();
        }
        if let Some(Reading::Done(read)) = found {
            return Ok(Selected::read(read.object, read.version, selection, None));
        }
        // Until it is dropped others wait for it.
        let begun = self.selections.begin(owner, &selection, &matches, part);
        let found = match self.ask_for(wanted, &selection, served).await? {
            Ok(found) => found,
            Err(failure) => return Ok(refused(wanted, selection, served, failure)),
        };
        let (object, version) = self.taken(wanted, &selection, found);
        if let Some(begun) = &begun {
            let read = Read {
                asked: begun.asked,
                matches,
                part: wanted.part.clone(),
                object: object.clone(),
                version: version.clone(),
            };
            self.selections.keep(&selection, &wanted.account.uid, read);
        }
        Ok(Selected::read(object, version, selection, None))
    }

    /// Reads it, and again after a while: nothing tells when it changes.
    async fn read_unwatched(
        &self,
        wanted: &Wanted<'_>,
        selection: Selection,
        served: &Served,
    ) -> Result<Selected, SubmitError> {
        let found = match self.ask_for(wanted, &selection, served).await? {
            Ok(found) => found,
            Err(failure) => return Ok(refused(wanted, selection, served, failure)),
        };
        let (object, version) = self.taken(wanted, &selection, found);
        let again = Some(SLOW_READ);
        Ok(Selected::read(object, version, selection, again))
    }

    async fn ask_for(
        &self,
        wanted: &Wanted<'_>,
        selection: &Selection,
        served: &Served,
    ) -> Result<Result<Vec<Value>, SubmitFailure>, SubmitError> {
        let Wanted { owner, account, .. } = wanted;
        let (namespace, choice) = (&owner.namespace, &selection.choice);
        let listed = self
            .submitter
            .select(account, served, namespace, choice, wanted.most);
        let found = listed.await?;
        if found.is_err() {
            self.selections.forget_reads(selection, &account.uid);
        }
        Ok(found)
    }

    /// The one object of what was found, as far as it is wanted, and its version.
    fn taken(
        &self,
        wanted: &Wanted<'_>,
        selection: &Selection,
        found: Vec<Value>,
    ) -> (Result<Arc<Value>, NotOne>, String) {
        let version = Matches::of(&found).seen_by(&wanted.account.uid);
        let object = only(found).map(|object| match &wanted.part {
            None => self.selections.share(selection, object),
            Some(part) => Arc::new(projected(&object, part)),
        });
        (object, version)
    }
}

impl Selected {
    fn read(
        object: Result<Arc<Value>, NotOne>,
        version: String,
        selection: Selection,
        again: Option<Duration>,
    ) -> Self {
        // Of several, not all were listed.
        let is_known = !matches!(object, Err(NotOne::Several(_)));
        Self {
            version: is_known.then_some(version),
            ..Self::of(object.map_err(Unselected::NotOne), Some(selection), again)
        }
    }

    fn of(
        object: Result<Arc<Value>, Unselected>,
        selection: Option<Selection>,
        again: Option<Duration>,
    ) -> Self {
        Self {
            object,
            version: None,
            selection,
            again,
            awaited: Vec::new(),
            unwatched: None,
        }
    }
}

fn unmapped(kind: &Kind, error: MapError) -> Selected {
    let unselected = Err(Unselected::Unmapped(error));
    Selected {
        awaited: vec![Dependency::Group(kind.group().into())],
        ..Selected::of(unselected, None, Some(SLOW_READ))
    }
}

fn refused(
    wanted: &Wanted<'_>,
    selection: Selection,
    served: &Served,
    failure: SubmitFailure,
) -> Selected {
    let awaited = match failure.kind {
        // The binding is where the object is, which is not where a lent account is; a role may be in either.
        SubmitFailureKind::Forbidden => vec![
            Dependency::Rights(wanted.owner.namespace.clone()),
            Dependency::Rights(wanted.account.namespace.as_str().into()),
        ],
        _ => vec![Dependency::Group(wanted.kind.group().into())],
    };
    let namespaced = served.namespaced;
    let unselected = Err(Unselected::Refused {
        failure,
        namespaced,
    });
    Selected {
        awaited,
        ..Selected::of(unselected, Some(selection), Some(SLOW_READ))
    }
}

/// The one object that there is to be.
fn only(found: Vec<Value>) -> Result<Value, NotOne> {
    if found.len() > 1 {
        let name = |object: &Value| object["metadata"]["name"].as_str().map(str::to_owned);
        return Err(NotOne::Several(found.iter().filter_map(name).collect()));
    }
    found.into_iter().next().ok_or(NotOne::None)
}

/// What rules read of an object, and what says whether it is a Secret.
fn projected(object: &Value, part: &Projection) -> Value {
    let mut kept = json!({"apiVersion": object["apiVersion"], "kind": object["kind"]});
    part.copy(object, &mut kept);
    kept
}
