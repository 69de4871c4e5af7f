//! Immutable objects: whether a run would start.

use api_types::labels;
use realizer::{
    KnownRun, Observation, Observed, Submission, SubmitFailure, SubmitFailureKind, Write,
};
use serde_json::Value;
use submission::{
    Candidate, Kind, candidates, claimed_age, has_family_labels, is_rendering, known_run,
};

use super::member::Member;
use super::{Rehearsal, failed, labels_of, seen, text};
use crate::migrate::difference::difference;
use crate::migrate::findings::StartedRun;
use crate::migrate::world::Served;

impl Rehearsal<'_> {
    pub(super) async fn members(
        &mut self,
        submission: &Submission,
        kind: &Kind,
        served: &Served,
    ) -> Result<Vec<Member>, SubmitFailure> {
        let listed = self.world.stamped(kind, served, self.label).await;
        let listed = match &*listed {
            Ok(listed) => listed,
            Err(failure) => return Err(failure.clone()),
        };
        let mut members: Vec<Member> = listed
            .iter()
            .filter(|object| {
                self.is_owners(object) && has_family_labels(&labels_of(object), &submission.family)
            })
            .map(|object| Member {
                known: known_run(
                    &submission.recorded.runs,
                    text(object, "uid"),
                    text(object, "name"),
                    text(object, "creationTimestamp"),
                )
                .cloned(),
                object: object.clone(),
            })
            .collect();
        members.sort_by_cached_key(|member| {
            let position = member.known.as_ref().map(|known| known.sequence);
            let age = claimed_age(&member.annotations(), member.created());
            (position, age, text(&member.object, "name").to_owned())
        });
        Ok(members)
    }

    pub(super) async fn submit_immutable(
        &mut self,
        submission: &Submission,
        kind: &Kind,
        served: &Served,
    ) -> Result<Observation, SubmitFailure> {
        let mut members = self.members(submission, kind, served).await?;
        let is_current = |member: &Member| member.is_live() && member.was_submitted(submission);
        let current = members.iter().position(is_current);
        let current = current.or_else(|| self.adopt(submission, served, &mut members));
        let observe = |member: &Member| member.observed(served, self.field_manager);
        let mut all: Vec<Observed> = members.iter().map(observe).collect();
        let (submitted, write) = if let Some(place) = current {
            (all[place].clone(), Write::Unchanged)
        } else {
            let started = self.start(submission, kind, served, &members)?;
            all.push(started.clone());
            (started, Write::Created)
        };
        all.sort_by(|a, b| a.order_key().cmp(&b.order_key()));
        Ok(Observation::Family {
            submitted,
            members: all,
            write,
        })
    }

    /// The newest member, or the one created last, if it is the rendering that is due.
    fn adopt(
        &self,
        submission: &Submission,
        served: &Served,
        members: &mut [Member],
    ) -> Option<usize> {
        let nothing_known = members.iter().all(|member| member.known.is_none())
            && submission.recorded.runs.is_empty();
        let places = 0..members.len();
        let live: Vec<usize> = places.filter(|&place| members[place].is_live()).collect();
        let created: Vec<String> = live
            .iter()
            .map(|&place| members[place].created().to_owned())
            .collect();
        let placed = self.manifest(submission, served).placed();
        let is_due = |member: &Member| {
            let annotations = member.annotations();
            let candidate = Candidate {
                known: member.known.as_ref().map(|known| known.digest.as_deref()),
                nothing_known,
                claimed: annotations.digest.as_deref(),
            };
            candidate.may_be(&submission.digest, true)
                && is_rendering(&member.object, text(&member.object, "uid"), &placed)
        };
        let found = candidates(&created)
            .map(|candidate| live[candidate])
            .find(|&place| is_due(&members[place]))?;
        let member = &mut members[found];
        let sequence = member.known.as_ref().map(|known| known.sequence);
        let recorded = submission.recorded.position.sequence;
        member.known = Some(KnownRun {
            uid: Some(text(&member.object, "uid").to_owned()),
            name: text(&member.object, "name").to_owned(),
            started: None,
            digest: Some(submission.digest.clone()),
            sequence: sequence.unwrap_or_else(|| recorded.max(1)),
            state: None,
            beside: None,
        });
        Some(found)
    }

    /// A run would start.
    fn start(
        &mut self,
        submission: &Submission,
        kind: &Kind,
        served: &Served,
        members: &[Member],
    ) -> Result<Observed, SubmitFailure> {
        let sequence = submission.recorded.position.sequence;
        let manifest = self.manifest(submission, served);
        let created = manifest.created(sequence);
        let object = created
            .map_err(|error| failed(SubmitFailureKind::Rejected, format!("create: {error}")))?;
        let newest = members.iter().rfind(|member| member.is_live());
        let fields = newest.map(|newest| missing(&newest.object, &manifest.placed()));
        let told = format!(
            "{} {}/{}",
            kind.kind,
            self.owner.namespace,
            text(&object, "name")
        );
        let run = StartedRun {
            told: self.told(submission.resource.as_str(), told),
            newest: newest.map(|newest| text(&newest.object, "name").to_owned()),
            fields: fields.unwrap_or_default(),
        };
        self.findings.runs.push(run);
        let mut observed = seen(object, served);
        observed.sequence = sequence;
        observed.digest = Some(submission.digest.clone());
        Ok(observed)
    }
}

/// The fields of a rendering that an object does not hold as they are rendered.
fn missing(live: &Value, placed: &Value) -> Vec<String> {
    let fields = difference(live, placed).into_iter();
    let is_rendered = |field: &String| {
        let path = format!("/{}", field.replace(['.', '['], "/").replace(']', ""));
        placed.pointer(&path).is_some()
    };
    let ours = |field: &String| {
        !field.starts_with(&format!("metadata.annotations.{}", labels::RENDERED_DIGEST))
    };
    fields
        .filter(|field| is_rendered(field) && ours(field))
        .collect()
}
