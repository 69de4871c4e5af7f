//! Immutable objects: one object per rendering, found again by digest and sequence, never by memory.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use api_types::labels;
use http::StatusCode;
use realizer::{Labels, Observation, Submission, Write};
use serde_json::{Value, json};

use super::failure::{self, Failure, OwnerRequestError, address, during, listing};
use super::{Applicant, Source, Submitted, Submitter, identity, now};
use crate::stamped::Stamped;

impl Submitter {
    pub(super) async fn submit_immutable(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
    ) -> Result<Submitted, Failure> {
        let mut members = self.members(applicant, submission, source).await?;
        if let Some(current) = self
            .current(applicant, submission, source, &members)
            .await?
        {
            self.requests.avoided();
            return Ok(Self::family(source, &current, &members, Write::Unchanged));
        }
        if let Some(wait) = self.unsteady.held_back(applicant.uid, submission, now())
            && let Some(newest) = members.iter().rev().find(|member| !member.terminating)
        {
            let mut outcome = Self::family(source, newest, &members, Write::Unchanged);
            outcome.look_again(wait);
            return Ok(outcome);
        }
        let sequence = members
            .iter()
            .map(|member| member.sequence)
            .max()
            .unwrap_or(0)
            + 1;
        let (current, write) = self.create(applicant, submission, source, sequence).await?;
        members.retain(|member| member.key != current.key);
        members.push(Arc::new(current.clone()));
        let mut outcome = Self::family(source, &current, &members, write);
        let warning = self.unsteady.written(applicant, submission, now());
        outcome.warnings.extend(warning);
        Ok(outcome)
    }

    /// The members of the family: owned by this owner, all step labels equal; in order of submission.
    pub(super) async fn members(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
    ) -> Result<Vec<Arc<Stamped>>, Failure> {
        let mut members = match source {
            Source::Watch(watch) => watch.owned_by(applicant.uid),
            Source::Live(watch, _) => {
                let selector = family_selector(&submission.family);
                let listed = self
                    .requests
                    .list(
                        &applicant.account,
                        watch.served(),
                        applicant.namespace.as_str(),
                        &selector,
                    )
                    .await
                    .map_err(listing)?;
                let owned = |member: &Stamped| {
                    member
                        .controller
                        .as_ref()
                        .is_some_and(|controller| *controller.uid == *applicant.uid)
                };
                listed
                    .iter()
                    .map(|value| self.project(source, value))
                    .filter(owned)
                    .map(Arc::new)
                    .collect()
            }
        };
        members.retain(|member| is_member(&member.labels(), &submission.family));
        // As `Observed::age`.
        members.sort_by_cached_key(|member| {
            let made = (member.sequence, member.owner_generation);
            (made, created_at(member), member.key.clone())
        });
        Ok(members)
    }

    /// The newest member, if it is this rendering, or that of a newer version of the owner than the one we know: its
    /// event is still to come. Terminating members do not count.
    async fn current(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
        members: &[Arc<Stamped>],
    ) -> Result<Option<Stamped>, Failure> {
        let Some(newest) = members.iter().rev().find(|member| !member.terminating) else {
            return Ok(None);
        };
        match &newest.digest {
            Some(digest) if **digest == *submission.digest => Ok(Some((**newest).clone())),
            Some(_) if newest.owner_generation > applicant.generation => {
                Ok(Some((**newest).clone()))
            }
            Some(_) => Ok(None),
            None => {
                self.adopt_foreign(applicant, submission, source, newest)
                    .await
            }
        }
    }

    /// A member without annotations was made by the Go controller: it is the rendering if it contains it,
    /// so that a takeover runs nothing again. The digest is written down for the next time.
    async fn adopt_foreign(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
        member: &Stamped,
    ) -> Result<Option<Stamped>, Failure> {
        let (account, served) = (&applicant.account, source.served());
        let (namespace, name) = (&member.key.namespace, &member.key.name);
        let Some(live) = self
            .requests
            .get(account, served, namespace, name)
            .await
            .map_err(|error| during("patch", error))?
        else {
            return Ok(None);
        };
        if !identity::contains(&live, &submission.object) {
            return Ok(None);
        }
        let mut patch = vec![json!({"op": "test", "path": "/metadata/uid", "value": &*member.uid})];
        if !live["metadata"]["annotations"].is_object() {
            patch.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
        }
        let pointer = format!(
            "/metadata/annotations/{}",
            labels::RENDERED_DIGEST.replace('/', "~1")
        );
        patch.push(json!({"op": "add", "path": pointer, "value": submission.digest}));
        let answer = self
            .requests
            .json_patch(account, served, namespace, name, &Value::from(patch))
            .await;
        let answer = answer.map_err(|error| during("patch", error))?;
        Ok(Some(self.learn(source, &answer.body)))
    }

    async fn create(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
        sequence: u64,
    ) -> Result<(Stamped, Write), Failure> {
        let object = numbered(applicant, submission, sequence)?;
        match self
            .requests
            .create(&applicant.account, source.served(), &object)
            .await
        {
            Ok(answer) => Ok((self.learn(source, &answer.body), Write::Created)),
            Err(OwnerRequestError::Request(error)) if error.is(StatusCode::CONFLICT) => {
                let existing = self.adopt(applicant, submission, source, &object).await?;
                existing.ok_or_else(|| during("create", OwnerRequestError::Request(error)))
            }
            Err(error) => Err(during("create", error)),
        }
    }

    /// A create that answers AlreadyExists was done before, and the object is ours: its reply was lost, or somebody
    /// stripped the label by which the watch would show it. The labels are put back, or nobody would hear of the
    /// object any more.
    async fn adopt(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
        object: &Value,
    ) -> Result<Option<(Stamped, Write)>, Failure> {
        let (account, served) = (&applicant.account, source.served());
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let live = self
            .requests
            .get(account, served, applicant.namespace.as_str(), name)
            .await;
        let Some(live) = live.map_err(|error| during("create", error))? else {
            return Ok(None);
        };
        let stamped = self.project(source, &live);
        let ours = stamped
            .controller
            .as_ref()
            .is_some_and(|controller| *controller.uid == *applicant.uid);
        if !ours || stamped.digest.as_deref() != Some(&submission.digest) {
            return Ok(None);
        }
        let Some(patch) = relabelling(&live, object) else {
            source.watch().overlay(stamped.clone());
            return Ok(Some((stamped, Write::Unchanged)));
        };
        let answer = self
            .requests
            .json_patch(account, served, applicant.namespace.as_str(), name, &patch)
            .await
            .map_err(|error| during("patch", error))?;
        Ok(Some((self.learn(source, &answer.body), Write::Patched)))
    }

    fn family(
        source: &Source,
        submitted: &Stamped,
        members: &[Arc<Stamped>],
        write: Write,
    ) -> Submitted {
        let served = source.served();
        let mut members: Vec<_> = members
            .iter()
            .map(|member| {
                if member.key == submitted.key {
                    submitted.observed(served)
                } else {
                    member.observed(served)
                }
            })
            .collect();
        members.sort_by(|a, b| a.age().cmp(&b.age()));
        let observation = Observation::Family {
            submitted: submitted.observed(served),
            members,
            write,
        };
        let mut outcome = Submitted::plain(observation);
        Self::note_unwatched(source, &mut outcome);
        outcome
    }
}

fn numbered(
    applicant: &Applicant<'_>,
    submission: &Submission,
    sequence: u64,
) -> Result<Value, Failure> {
    let mut object = submission.object.clone();
    let metadata = &mut object["metadata"];
    if metadata["name"].as_str().unwrap_or_default().is_empty() {
        let prefix = metadata["generateName"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if prefix.is_empty() {
            return Err(failure::rejected(format!(
                "create: the object [{}] has neither metadata.name nor metadata.generateName; set generateName in the template",
                address(submission)
            )));
        }
        metadata["name"] = Value::from(identity::derived_name(
            &prefix,
            applicant.uid,
            &submission.resource,
            &submission.digest,
            sequence,
        ));
    }
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = json!({});
    }
    metadata["annotations"][labels::RENDERED_DIGEST] = Value::from(submission.digest.as_str());
    metadata["annotations"][labels::SUBMISSION] = Value::from(sequence.to_string());
    metadata["annotations"][labels::OWNER_GENERATION] =
        Value::from(applicant.generation.to_string());
    Ok(object)
}

/// JSON patch that gives a live object the labels of its rendering; `None` when it has them.
fn relabelling(live: &Value, rendered: &Value) -> Option<Value> {
    let held = &live["metadata"]["labels"];
    let missing: Vec<_> = rendered["metadata"]["labels"]
        .as_object()?
        .iter()
        .filter(|(key, value)| held.get(key.as_str()) != Some(value))
        .collect();
    if missing.is_empty() {
        return None;
    }
    let mut patch =
        vec![json!({"op": "test", "path": "/metadata/uid", "value": live["metadata"]["uid"]})];
    if !held.is_object() {
        patch.push(json!({"op": "add", "path": "/metadata/labels", "value": {}}));
    }
    patch.extend(missing.into_iter().map(|(key, value)| {
        let key = key.replace('~', "~0").replace('/', "~1");
        json!({"op": "add", "path": format!("/metadata/labels/{key}"), "value": value})
    }));
    Some(Value::from(patch))
}

fn is_member(held: &BTreeMap<String, String>, family: &Labels) -> bool {
    family.iter().all(|(key, value)| match held.get(*key) {
        Some(present) => {
            *value == **present || (*key == labels::CLUSTER_TEMPLATE_NAME && present.is_empty())
        }
        None => false,
    })
}

/// The template name is left out: the Go controller leaves it empty for options.
fn family_selector(family: &Labels) -> String {
    selector_of(
        family
            .iter()
            .filter(|(key, _)| **key != labels::CLUSTER_TEMPLATE_NAME),
    )
}

/// A label selector in the words of a request.
pub(super) fn selector_of(
    labels: impl IntoIterator<Item = (impl Display, impl Display)>,
) -> String {
    let pairs: Vec<String> = labels
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(",")
}

fn created_at(member: &Stamped) -> String {
    member.content()["metadata"]["creationTimestamp"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}
