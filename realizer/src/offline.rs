//! A cluster in memory, to walk without an API server.
//!
//! ```text
//!  Realization or Run ◀── drive() ──▶ Answers ─┬─▶ Cluster: does what the controllers make an API server do
//!                                              └─▶ whatever wraps one: ytt, refusals, other writers
//! ```
//!
//! [`Cluster`] holds objects and nothing else: it makes what is submitted, replaces what was rendered otherwise, and leaves
//! the rest alone. No controller works in it. What an object comes to is said by whoever writes its status:
//!
//! ```
//! # use std::sync::Arc;
//! # use realizer::*;
//! # use serde_json::json;
//! use realizer::offline::{Cluster, drive};
//!
//! # struct Templates(Arc<Template>);
//! # impl TemplateSource for Templates {
//! #     fn template(&self, _: api_types::TemplateKind, _: &str) -> TemplateState { TemplateState::Found(Arc::clone(&self.0)) }
//! # }
//! # let templates = Templates(Arc::new(Template::compile(&json!({
//! #     "apiVersion": "carto.run/v1alpha1", "kind": "ClusterImageTemplate", "metadata": {"name": "image"},
//! #     "spec": {"imagePath": ".status.image", "template": {"apiVersion": "kpack.io/v1alpha2", "kind": "Image",
//! #         "metadata": {"name": "$(workload.metadata.name)$"}}},
//! # })).unwrap()));
//! # let blueprint = Blueprint::compile(Family::SupplyChain, &json!({
//! #     "metadata": {"name": "chain"}, "spec": {"selector": {"type": "web"}, "resources": [
//! #         {"name": "build", "templateRef": {"kind": "ClusterImageTemplate", "name": "image"}}]},
//! # })).unwrap();
//! # let owner = Owner::parse(Family::SupplyChain, Arc::new(json!({
//! #     "metadata": {"namespace": "dev", "name": "app", "uid": "u"}}))).unwrap();
//! let mut cluster = Cluster::default();
//! let mut walk = || {
//!     let now = cluster.now;
//!     let mut realization = Realization::new(&owner, &blueprint, &templates, now, StatusKey::NONE);
//!     drive(&mut realization, &mut cluster);
//!     let outcome = realization.conclude(&cluster.known()).report(&[]);
//!     // The image is built between two walks.
//!     if let Some(image) = cluster.object("app") {
//!         image["status"] = json!({"image": "registry.example/app@sha256:1"});
//!     }
//!     outcome.reason
//! };
//! assert_eq!([walk(), walk()], ["MissingValueAtPath", "Ready"]);
//! ```

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::template::family_members::object_ref;
use crate::{
    Ask, AskFeed, Beside, FoundObject, KnownObject, Labels, Looked, Needed, ObjectChoice,
    ObjectQuery, ObjectRef, Observation, Observed, Precondition, Rendered, Submission,
    SubmitFailure, SubmitFailureKind, Unread, Write, YttCall,
};

/// Answers to what a walk asks for.
pub trait Answers {
    /// What a template renders to that is written for ytt.
    ///
    /// # Errors
    /// There is no rendering; the walk tells why.
    fn rendered(&mut self, call: &YttCall) -> Rendered;
    /// What is in the place of an object.
    ///
    /// # Errors
    /// That cannot be known; the walk tells why.
    fn looked(&mut self, submission: &Submission) -> Looked;
    /// What came of an object that is to be held.
    fn observed(&mut self, submission: &Submission) -> Observation;
    /// The object that a rule reads beside the stamped one.
    ///
    /// # Errors
    /// It is not there, or cannot be read; the walk tells why.
    fn read(&mut self, query: &ObjectQuery) -> FoundObject;
}

/// Answers a walk until it asks for nothing more.
pub fn drive(walk: &mut dyn AskFeed, answers: &mut dyn Answers) {
    loop {
        match walk.next() {
            Ask::Render(call) => walk.record_rendered(answers.rendered(&call)),
            Ask::Look(submission) => walk.record_looked(answers.looked(&submission)),
            Ask::Submit(submission) => walk.record_observed(answers.observed(&submission)),
            Ask::Read(query) => walk.record_read(answers.read(&query)),
            Ask::Done => return,
        }
    }
}

/// The objects that walks made, and their statuses.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    /// All objects in order of creation, and what is known of each. One that [is gone](Observed::is_gone) is shown as the last
    /// that was seen of it.
    pub objects: Vec<Observed>,
    /// The time of day, for what is created.
    pub now: Timestamp,
    made: u64,
}

impl Answers for Cluster {
    /// No process is started.
    fn rendered(&mut self, _: &YttCall) -> Rendered {
        Err("ytt is not run here".to_owned().into())
    }

    fn looked(&mut self, submission: &Submission) -> Looked {
        if submission.lifecycle.is_immutable() {
            return Ok(self.family(&submission.family));
        }
        let place = self.place_of(&submission.object);
        let held = place.map(|place| seen(&self.objects[place]));
        Ok(held.into_iter().collect())
    }

    fn observed(&mut self, submission: &Submission) -> Observation {
        if submission.lifecycle.is_immutable() {
            self.submit_member(submission)
        } else {
            self.apply(submission)
        }
    }

    /// Whether a kind has namespaces is not known here: an object without one is there for all.
    fn read(&mut self, query: &ObjectQuery) -> FoundObject {
        self.found(query).into()
    }
}

impl Cluster {
    fn found(&self, query: &ObjectQuery) -> Result<Arc<Value>, Unread> {
        if query.needed != Needed::Value {
            return Err(Unread::Unneeded);
        }
        let is_it = |object: &&Value| is_asked_for(object, query);
        let objects = self.present().map(|held| &held.object);
        let found: Vec<&Value> = objects.filter(is_it).collect();
        match found[..] {
            [] => Err(Unread::Missing),
            [object] => Ok(Arc::new(object.clone())),
            _ => {
                let names = found.iter().map(|object| name_in(object).to_owned());
                Err(Unread::Several(names.collect()))
            }
        }
    }

    /// The object with this name that was created first.
    pub fn object(&mut self, name: &str) -> Option<&mut Value> {
        self.present_mut(name).map(|held| &mut held.object)
    }

    /// The names of all objects, in order of creation.
    pub fn names(&self) -> Vec<&str> {
        self.present().map(name_of).collect()
    }

    /// The objects by which a conclusion tells what no step stands for.
    pub fn known(&self) -> Vec<KnownObject> {
        let known = self.present().map(|held| KnownObject {
            labels: serde_json::from_value(held.object["metadata"]["labels"].clone())
                .unwrap_or_default(),
            terminating: seen(held).terminating,
            object: object_ref(held),
        });
        known.collect()
    }

    /// An object is deleted, and nothing is left of it.
    pub fn delete(&mut self, object: &ObjectRef) {
        // Whatever version and uid status knows of it.
        let place =
            |object: &ObjectRef| [&object.kind, &object.namespace, &object.name].map(String::clone);
        self.objects
            .retain(|held| place(&object_ref(held)) != place(object));
    }

    /// An object is deleted, and this was the last that was seen of it.
    pub fn depart(&mut self, name: &str) {
        if let Some(held) = self.present_mut(name) {
            held.terminating = true;
            held.is_gone = true;
        }
    }

    fn present(&self) -> impl Iterator<Item = &Observed> {
        self.objects.iter().filter(|held| !held.is_gone)
    }

    fn present_mut(&mut self, name: &str) -> Option<&mut Observed> {
        let mut present = self.objects.iter_mut().filter(|held| !held.is_gone);
        present.find(|held| name_of(held) == name)
    }

    fn place_of(&self, rendered: &Value) -> Option<usize> {
        let is_it = |held: &Observed| !held.is_gone && is_same(&held.object, rendered);
        self.objects.iter().position(is_it)
    }

    /// The object becomes what is rendered, but for what others write: its status.
    fn apply(&mut self, submission: &Submission) -> Observation {
        let place = self.place_of(&submission.object);
        let version = place.map(|place| self.objects[place].version);
        let is_stale = match submission.precondition {
            Precondition::None => false,
            Precondition::Absent => version.is_some(),
            Precondition::Version(bound) => version != Some(bound),
        };
        if is_stale {
            return Observation::Failed(SubmitFailure {
                kind: SubmitFailureKind::Stale,
                message: "patch: the object has been modified".to_owned(),
            });
        }
        let (held, write) = match place {
            None => (self.create(submission, None), Write::Created),
            Some(place) => {
                let write = replace(&mut self.objects[place], submission);
                (&self.objects[place], write)
            }
        };
        let observed = seen(held);
        Observation::Object { observed, write }
    }

    /// One object per rendering: the one that is to be there, or a new one.
    fn submit_member(&mut self, submission: &Submission) -> Observation {
        let sequence = submission.recorded.position.sequence;
        let there = self.family(&submission.family).into_iter().find(|member| {
            let is_rendered = member.digest.as_ref() == Some(&submission.digest);
            is_rendered && member.sequence == sequence && !member.terminating
        });
        let (submitted, write) = match there {
            Some(there) => (there, Write::Unchanged),
            None => (
                seen(self.create(submission, Some(sequence))),
                Write::Created,
            ),
        };
        Observation::Family {
            submitted,
            members: self.family(&submission.family),
            write,
        }
    }

    /// A member has a number; its name ends with that if only the beginning of one is rendered, and is no other object's.
    fn create(&mut self, submission: &Submission, mut sequence: Option<u64>) -> &Observed {
        self.made += 1;
        let mut object = submission.object.clone();
        let metadata = &mut object["metadata"];
        let is_nameless = metadata["name"].as_str().is_none_or(str::is_empty);
        if let Some(sequence) = sequence.as_mut().filter(|_| is_nameless) {
            let prefix = metadata["generateName"].as_str().unwrap_or_default();
            let mut name = format!("{prefix}{sequence}");
            while self.names().contains(&&*name) {
                *sequence += 1;
                name = format!("{prefix}{sequence}");
            }
            metadata["name"] = json!(name);
        }
        metadata["uid"] = json!(format!("uid-{}", self.made));
        metadata["creationTimestamp"] = json!(self.now.to_string());
        metadata["generation"] = json!(1);
        self.objects.push(Observed {
            qualified_resource: qualified(&object),
            sequence: sequence.unwrap_or_default(),
            digest: Some(submission.digest.clone()),
            state: Some(state_of(&submission.digest)),
            values: Some(state_of(&submission.digest)),
            beside: Some(Beside::expected(Vec::new())),
            version: 1,
            ..Observed::of(object)
        });
        &self.objects[self.objects.len() - 1]
    }

    /// The members of a family, the newest last.
    fn family(&self, labels: &Labels) -> Vec<Observed> {
        let is_member = |held: &&Observed| {
            let held = &held.object["metadata"]["labels"];
            labels.iter().all(|(key, value)| held[key] == json!(value))
        };
        let mut members: Vec<Observed> = self.objects.iter().filter(is_member).map(seen).collect();
        members.sort_by(|a, b| a.order_key().cmp(&b.order_key()));
        members
    }
}

/// What a walk sees of an object: whoever writes a deletion into it need say nothing besides.
fn seen(held: &Observed) -> Observed {
    let deletion = held.object.pointer("/metadata/deletionTimestamp");
    let terminating = held.terminating || deletion.is_some_and(Value::is_string);
    Observed {
        terminating,
        ..held.clone()
    }
}

/// An object that holds another rendering, or that somebody has changed, becomes what is rendered.
fn replace(held: &mut Observed, submission: &Submission) -> Write {
    if held.digest.as_ref() == Some(&submission.digest) {
        return Write::Unchanged;
    }
    let before = std::mem::replace(&mut held.object, submission.object.clone());
    let object = &mut held.object;
    for field in ["uid", "creationTimestamp"] {
        object["metadata"][field] = before["metadata"][field].clone();
    }
    let generation = before["metadata"]["generation"].as_u64().unwrap_or(1);
    let is_changed = before["spec"] != object["spec"];
    object["metadata"]["generation"] = json!(generation + u64::from(is_changed));
    if let Some(status) = before.get("status") {
        object["status"] = status.clone();
    }
    held.digest = Some(submission.digest.clone());
    held.state = Some(state_of(&submission.digest));
    held.values.clone_from(&held.state);
    held.version += 1;
    Write::Patched
}

/// What status says of an object that is as it was applied. Nothing is defaulted here, so that the rendering tells all of it.
fn state_of(digest: &str) -> String {
    let state = digest.replace("sha256:", "state-of-");
    state.chars().take(24).collect()
}

fn is_same(live: &Value, rendered: &Value) -> bool {
    let of_both = [
        "/apiVersion",
        "/kind",
        "/metadata/namespace",
        "/metadata/name",
    ];
    of_both
        .iter()
        .all(|pointer| live.pointer(pointer) == rendered.pointer(pointer))
}

/// `<plural>.<group>`. Nothing says here how a kind is served; for most kinds that is right.
fn qualified(object: &Value) -> Option<String> {
    let kind = object["kind"].as_str()?.to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    };
    Some(match object["apiVersion"].as_str()?.split_once('/') {
        Some((group, _)) => format!("{plural}.{group}"),
        None => plural,
    })
}

fn is_asked_for(object: &Value, query: &ObjectQuery) -> bool {
    let metadata = &object["metadata"];
    let namespace = metadata["namespace"].as_str().unwrap_or_default();
    object["apiVersion"] == *query.api_version
        && object["kind"] == *query.kind
        && [query.namespace.as_str(), ""].contains(&namespace)
        && match &query.choice {
            ObjectChoice::Name(name) => metadata["name"] == **name,
            ObjectChoice::Labels(labels) => labels
                .iter()
                .all(|(key, value)| metadata["labels"][key] == **value),
        }
}

fn name_of(held: &Observed) -> &str {
    name_in(&held.object)
}

fn name_in(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
