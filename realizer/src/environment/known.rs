//! What counts as being in an environment: what status says, compared with what the object says of itself.

use api_types::{DeployedRevision, EnvironmentStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::{Arrival, HIGHEST_READ, Incoming, Record, sealed, shown};
use crate::StatusKey;
use crate::values::redaction::{REDACTED, Taint};

/// The greatest number that status can hold.
const HIGHEST: u64 = i64::MAX.unsigned_abs();

/// What status says of an environment.
pub(crate) struct Known<'s> {
    pub(crate) status: Option<&'s EnvironmentStatus>,
    /// The validations behind it.
    pub(crate) validations: Vec<&'s str>,
    /// For what must not be shown.
    pub(crate) key: &'s StatusKey,
}

/// What counts as being in an environment whose object is there.
#[derive(Debug)]
pub(crate) enum Present {
    /// Nothing that anybody knows of.
    Nothing,
    /// The revision that was announced, or the one before it.
    Either,
    /// It is not decided: the object says something that status has not heard of, with this digest.
    Unheard(String),
    /// This.
    Revision(Record),
}

impl Known<'_> {
    /// Whether status says of every validation that the environment need not be kept for this arrival.
    pub(super) fn is_free(&self, arrival: u64) -> bool {
        let recorded = self.status.map_or(&[][..], |status| &status.validations);
        self.validations.iter().all(|name| {
            recorded.iter().any(|recorded| {
                recorded.resource == *name
                    && recorded.arrival == arrival
                    && recorded.verdict.releases()
            })
        })
    }

    /// The number of the next arrival.
    pub(super) fn number_after(&self, number: u64) -> u64 {
        let status = self.status.into_iter();
        let recorded = status.flat_map(|status| {
            let revisions = status.deployed.iter().chain(&status.arriving);
            let revisions = revisions.map(|recorded| recorded.arrival);
            revisions.chain(status.validations.iter().map(|recorded| recorded.arrival))
        });
        let highest = recorded.max().unwrap_or(0).max(number);
        highest.min(HIGHEST - 1) + 1
    }

    /// What was announced, if it is this revision; in the present rendering, which may depend on what status announces.
    pub(super) fn announced(
        &self,
        rendered: &str,
        incoming: &Incoming,
        now: &Time,
    ) -> Option<Record> {
        let recorded = self.status?.arriving.as_ref()?;
        let arrival = incoming.arrival(recorded.arrival, rendered, &recorded.since);
        let announced = Arrival::read(recorded.record.as_deref()?, self.key)?;
        let is_announced = announced.has_values_of(incoming) && announced.secret == incoming.secret;
        is_announced
            .then(|| Record::new(arrival, now.clone(), self.key))
            .flatten()
    }

    /// What counts, for an object that says this of itself.
    pub(crate) fn present(&self, said: Option<&str>, now: &Time) -> Present {
        let recorded = self
            .status
            .filter(|status| status.deployed.is_some() || status.arriving.is_some());
        let Some(recorded) = recorded else {
            let lost = said.and_then(|said| lost(said, self.key, now));
            return lost.map_or(Present::Nothing, Present::Revision);
        };
        let (record, as_recorded) = match &recorded.deployed {
            Some(deployed) => {
                let (record, as_recorded) = self.deployed(deployed, said);
                (Some(record), as_recorded)
            }
            None => (None, said.is_none()),
        };
        let digest = self.digest(said);
        if !as_recorded && !self.has_arrived(said) && recorded.disregarded.as_ref() != Some(&digest)
        {
            return Present::Unheard(digest);
        }
        match record {
            _ if recorded.arriving.is_some() => Present::Either,
            Some(record) => Present::Revision(record),
            None => Present::Nothing,
        }
    }

    /// Whether the object says what status says of what is, or may be, in the environment.
    pub(crate) fn recognises(&self, said: Option<&str>) -> bool {
        let deployed = self.status.and_then(|status| status.deployed.as_ref());
        self.has_arrived(said) || deployed.is_some_and(|recorded| self.deployed(recorded, said).1)
    }

    /// Whether anything is known to be, or to come, into the environment.
    pub(crate) fn is_in_use(&self) -> bool {
        self.status
            .is_some_and(|status| status.deployed.is_some() || status.arriving.is_some())
    }

    fn has_arrived(&self, said: Option<&str>) -> bool {
        let recorded = self.status.and_then(|status| status.arriving.as_ref());
        recorded
            .zip(said)
            .is_some_and(|(recorded, said)| recorded.record.as_deref() == Some(said))
    }

    /// The digest of what the object says, unless that is what status says of what is deployed.
    pub(crate) fn unless_deployed(&self, said: Option<&str>) -> Option<String> {
        let as_recorded = match self.status.and_then(|status| status.deployed.as_ref()) {
            Some(deployed) => self.deployed(deployed, said).1,
            None => said.is_none(),
        };
        (!as_recorded).then(|| self.digest(said))
    }

    /// Keyed, because what the object says may come from a Secret.
    fn digest(&self, said: Option<&str>) -> String {
        sealed::digest(said.unwrap_or_default(), self.key)
    }

    /// What is deployed, and whether the object says so as well.
    fn deployed(&self, recorded: &DeployedRevision, said: Option<&str>) -> (Record, bool) {
        if let Some(record) = &recorded.record {
            let known = match Arrival::read(record, self.key) {
                Some(arrival) => Record::proven(arrival, record.clone(), recorded.since.clone()),
                // It was sealed with another key.
                None => stand_in(recorded),
            };
            return (known, said == Some(record));
        }
        let said = said.and_then(|said| Some((said, Arrival::read(said, self.key)?)));
        if !recorded.unproven {
            return self.of_former_version(recorded, said);
        }
        match said.filter(|(_, said)| said.number == recorded.arrival) {
            Some((said, arrival)) => (unproven(arrival, said, &recorded.since), true),
            None => (stand_in(recorded), false),
        }
    }

    /// A former version wrote the record on the object alone: it counts if it agrees with all that status says.
    fn of_former_version(
        &self,
        recorded: &DeployedRevision,
        said: Option<(&str, Arrival)>,
    ) -> (Record, bool) {
        let agrees = |arrival: &Arrival| {
            arrival.number == recorded.arrival
                && shown(&arrival.revision, arrival.secret) == recorded.revision
                && shown(&arrival.url, arrival.secret) == recorded.url
                && arrival.started == recorded.since
        };
        match said.filter(|(_, arrival)| agrees(arrival)) {
            // That both are redacted says nothing about either.
            Some((said, arrival)) if arrival.secret => {
                (unproven(arrival, said, &recorded.since), true)
            }
            Some((said, arrival)) => {
                let record = Record::proven(arrival, said.to_owned(), recorded.since.clone());
                (record, true)
            }
            None => {
                let shown = Some(as_recorded(recorded)).filter(|arrival| !arrival.secret);
                let record =
                    shown.and_then(|shown| Record::new(shown, recorded.since.clone(), self.key));
                (record.unwrap_or_else(|| stand_in(recorded)), false)
            }
        }
    }
}

/// Status was lost, and the object says this. It is known to be so as soon as the same is rendered.
fn lost(said: &str, key: &StatusKey, now: &Time) -> Option<Record> {
    let arrival = Arrival::read(said, key)?;
    (1..=HIGHEST_READ)
        .contains(&arrival.number)
        .then(|| unproven(arrival, said, now))
}

fn unproven(arrival: Arrival, said: &str, since: &Time) -> Record {
    Record {
        taint: arrival.taint(),
        arrival,
        text: said.to_owned(),
        since: since.clone(),
        in_status: None,
        proven: false,
    }
}

/// What status says of an arrival whose values cannot be had.
fn stand_in(recorded: &DeployedRevision) -> Record {
    Record {
        arrival: as_recorded(recorded),
        text: String::new(),
        since: recorded.since.clone(),
        in_status: recorded.record.clone(),
        proven: false,
        taint: Taint::NONE,
    }
}

/// Status shows texts, which is what revisions and urls are. It does not say by which rendering they were written, so that
/// the next one is another arrival.
fn as_recorded(recorded: &DeployedRevision) -> Arrival {
    Arrival {
        number: recorded.arrival,
        revision: json!(recorded.revision),
        url: json!(recorded.url),
        rendered: String::new(),
        started: recorded.since.clone(),
        secret: is_redacted(recorded),
    }
}

fn is_redacted(recorded: &DeployedRevision) -> bool {
    [&recorded.revision, &recorded.url]
        .into_iter()
        .any(|text| text == REDACTED)
}
