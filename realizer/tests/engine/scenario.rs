//! A tiny scripted cluster around the engine: it holds objects, nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::TemplateKind;
use jiff::{Span, Timestamp};
use realizer::{
    Answer, Ask, AskFeed, Blueprint, FailedRemoval, Family, KnownObject, Labels, ObjectRef,
    Observation, Observed, Outcome, Owner, Realization, Rendered, Selection, StatusKey, Submission,
    SubmitFailure, Template, TemplateSource, TemplateState, Unrealized, Write, blueprint_status,
    report_unrealized, select_blueprint,
};
use serde_json::{Value, json};

/// Documents of one scenario and the state of its cluster.
pub(crate) struct Scenario {
    pub(crate) family: Family,
    pub(crate) templates: Templates,
    pub(crate) blueprints: Vec<Value>,
    pub(crate) owner: Value,
    pub(crate) cluster: Cluster,
    pub(crate) now: Timestamp,
    pub(crate) key: StatusKey,
}

/// Templates by kind and name.
#[derive(Default)]
pub(crate) struct Templates(pub(crate) BTreeMap<(String, String), TemplateState>);

impl TemplateSource for Templates {
    fn template(&self, kind: TemplateKind, name: &str) -> TemplateState {
        let key = (kind.as_str().to_owned(), name.to_owned());
        self.0.get(&key).cloned().unwrap_or(TemplateState::Missing)
    }
}

/// The stamped objects, and what goes wrong with them.
#[derive(Default)]
pub(crate) struct Cluster {
    pub(crate) objects: Vec<Value>,
    /// By step: what every submission of it comes to.
    pub(crate) failing: BTreeMap<String, SubmitFailure>,
    /// By step: what ytt says.
    pub(crate) ytt: BTreeMap<String, Rendered>,
    /// By name of the object: why it cannot be deleted.
    pub(crate) undeletable: BTreeMap<String, SubmitFailure>,
    /// Steps whose objects another writer keeps undoing.
    pub(crate) undone: std::collections::BTreeSet<String>,
    /// Uids of objects of which status and process know nothing, whatever they say of themselves.
    pub(crate) unknown: Vec<String>,
    /// The last that was seen of objects that were deleted before anybody looked.
    pub(crate) departed: Vec<Value>,
    /// Submissions in order, as `<step>: <write>`.
    pub(crate) log: Vec<String>,
    /// By step: what the name of its last submission is derived from in place of the digest.
    pub(crate) seeds: BTreeMap<String, Option<String>>,
    clock: u64,
}

impl Scenario {
    /// Reads the documents of a scenario; the first owner decides the family.
    pub(crate) fn new(yaml: &str) -> Self {
        let mut scenario = Self {
            family: Family::SupplyChain,
            templates: Templates::default(),
            blueprints: Vec::new(),
            owner: Value::Null,
            cluster: Cluster::default(),
            now: "2024-05-01T10:00:00Z".parse().unwrap(),
            key: StatusKey::new(b"the key of the installation"),
        };
        scenario.apply(yaml);
        scenario
    }

    /// Adds or replaces documents.
    pub(crate) fn apply(&mut self, yaml: &str) {
        for document in documents(yaml) {
            let kind = document["kind"].as_str().unwrap().to_owned();
            let name = document["metadata"]["name"].as_str().unwrap().to_owned();
            match kind.as_str() {
                "Workload" | "Deliverable" => {
                    self.family = if kind == "Workload" {
                        Family::SupplyChain
                    } else {
                        Family::Delivery
                    };
                    let status = self.owner.get("status").cloned();
                    self.owner = with_metadata(
                        document,
                        &json!({"namespace": "ns", "uid": "owner-uid", "generation": 1}),
                    );
                    if let Some(status) = status {
                        self.owner["status"] = status;
                    }
                }
                "ClusterSupplyChain" | "ClusterDelivery" => {
                    self.blueprints.retain(|blueprint| {
                        blueprint["metadata"]["name"] != document["metadata"]["name"]
                    });
                    self.blueprints.push(with_metadata(
                        document,
                        &json!({"uid": "blueprint-uid", "generation": 1}),
                    ));
                }
                _ => {
                    let template = Arc::new(Template::compile(&document).unwrap());
                    self.templates
                        .0
                        .insert((kind, name), TemplateState::Found(template));
                }
            }
        }
    }

    pub(crate) fn tick(&mut self) {
        self.now = self.now.checked_add(Span::new().minutes(1)).unwrap();
    }

    pub(crate) fn parsed_owner(&self) -> Owner {
        Owner::parse(self.family, Arc::new(self.owner.clone())).unwrap()
    }

    /// The blueprints, each with the status that it would have.
    pub(crate) fn compiled_blueprints(&self) -> Vec<Arc<Blueprint>> {
        self.blueprints
            .iter()
            .map(|object| {
                let mut object = object.clone();
                let compiled = Blueprint::compile(self.family, &object).unwrap();
                if object.get("status").is_none() {
                    object["status"] =
                        blueprint_status(&compiled, &self.templates, &Value::Null, 1, self.now)
                            .status;
                }
                Arc::new(Blueprint::compile(self.family, &object).unwrap())
            })
            .collect()
    }

    /// One reconcile, as the shell does it, a minute after the last one.
    pub(crate) fn reconcile(&mut self) -> Outcome {
        self.tick();
        self.reconcile_at_once()
    }

    /// Two reconciles: a revision that goes into an environment is announced in status first.
    pub(crate) fn arrive(&mut self) -> Outcome {
        let announced = self.reconcile();
        assert_eq!(
            (announced.again, announced.write_now),
            (Some(std::time::Duration::ZERO), true)
        );
        self.reconcile_at_once()
    }

    /// One reconcile without any time in between.
    pub(crate) fn reconcile_at_once(&mut self) -> Outcome {
        let owner = self.parsed_owner();
        let blueprints = self.compiled_blueprints();
        let outcome = match select_blueprint(&owner, &blueprints) {
            Selection::One(blueprint) if blueprint.is_ready() => self.realize(&owner, blueprint),
            selection => {
                let why = match selection {
                    Selection::One(blueprint) => Unrealized::BlueprintNotReady(blueprint),
                    Selection::LabelsMissing => Unrealized::LabelsMissing,
                    Selection::NotFound(skipped) => Unrealized::NotFound(skipped),
                    Selection::Multiple(names) => Unrealized::Multiple(names),
                    Selection::Broken(cause) => Unrealized::BlueprintUnreadable(cause),
                };
                report_unrealized(&owner, why, self.now)
            }
        };
        if outcome.changed {
            self.owner["status"] = outcome.status.clone();
        }
        outcome
    }

    fn realize(&mut self, owner: &Owner, blueprint: &Blueprint) -> Outcome {
        let mut realization = Realization::new(
            owner,
            blueprint,
            &self.templates,
            self.now,
            self.key.clone(),
        );
        loop {
            match realization.next() {
                Ask::Render(call) => {
                    let rendered = self.cluster.ytt.get(call.resource.as_str()).cloned();
                    realization.record_rendered(
                        rendered.unwrap_or_else(|| Err("no rendering scripted".to_owned().into())),
                    );
                }
                Ask::Look(submission) => {
                    realization.record_looked(Ok(self.cluster.look(&submission)));
                }
                Ask::Submit(submission) => {
                    realization.record_observed(self.cluster.submit(&submission, self.now));
                }
                Ask::Done => break,
            }
        }
        let conclusion = realization.conclude(&self.cluster.known());
        let failed: Vec<FailedRemoval> = conclusion
            .removals()
            .iter()
            .filter_map(|removal| {
                Some((removal.clone(), self.cluster.delete(&removal.object).err()?))
            })
            .collect();
        conclusion.report(&failed)
    }

    /// As [`Scenario::arrive`], with the outcome read from the owner.
    pub(crate) fn advance_with_arrival(&mut self) {
        let _ = self.arrive();
    }

    /// One reconcile whose outcome is read from the owner.
    pub(crate) fn advance(&mut self) {
        let _ = self.reconcile();
    }

    /// The status entry of a step.
    pub(crate) fn entry(&self, step: &str) -> &Value {
        let resources = self.owner["status"]["resources"]
            .as_array()
            .expect("no resources in status");
        resources
            .iter()
            .find(|entry| entry["name"] == step)
            .expect("no such step in status")
    }

    /// `<status>/<reason>/<message>` of a condition of the owner.
    pub(crate) fn owner_condition(&self, type_: &str) -> String {
        condition(&self.owner["status"]["conditions"], type_)
    }

    /// `<status>/<reason>/<message>` of a condition of a step.
    pub(crate) fn step_condition(&self, step: &str, type_: &str) -> String {
        condition(&self.entry(step)["conditions"], type_)
    }
}

impl Cluster {
    pub(crate) fn submit(&mut self, submission: &Submission, now: Timestamp) -> Observation {
        if let Some(failure) = self.failing.get(submission.resource.as_str()) {
            self.log.push(format!("{}: failed", submission.resource));
            return Observation::Failed(failure.clone());
        }
        self.clock += 1;
        let seed = submission.name_seed.clone();
        self.seeds.insert(submission.resource.to_string(), seed);
        let (observation, write) = if submission.lifecycle.is_immutable() {
            self.submit_member(submission, now)
        } else {
            self.submit_mutable(submission, now)
        };
        self.log.push(format!("{}: {write:?}", submission.resource));
        match observation {
            Observation::Object { observed, .. }
                if self.undone.contains(submission.resource.as_str()) =>
            {
                let write = Write::Undone(Answer::None);
                Observation::Object { observed, write }
            }
            observation => observation,
        }
    }

    fn look(&mut self, submission: &Submission) -> Vec<Observed> {
        self.log.push(format!("{}: look", submission.resource));
        if submission.lifecycle.is_immutable() {
            return self.family(&submission.family);
        }
        let live = self
            .objects
            .iter()
            .find(|live| same_object(live, &submission.object));
        live.cloned().map(observed).into_iter().collect()
    }

    fn submit_mutable(&mut self, submission: &Submission, now: Timestamp) -> (Observation, Write) {
        let rendered = &submission.object;
        let live = self
            .objects
            .iter_mut()
            .find(|live| same_object(live, rendered));
        let (object, write) = match live {
            Some(live) if live["metadata"]["annotations"]["digest"] == submission.digest => {
                (live.clone(), Write::Unchanged)
            }
            Some(live) => {
                let kept = (live["metadata"]["uid"].clone(), live.get("status").cloned());
                let before = (live["spec"].clone(), live["metadata"]["generation"].clone());
                *live = stored(rendered, &submission.digest, &now);
                live["metadata"]["uid"] = kept.0;
                let generation =
                    before.1.as_u64().unwrap_or(1) + u64::from(before.0 != live["spec"]);
                live["metadata"]["generation"] = json!(generation);
                if let Some(status) = kept.1 {
                    live["status"] = status;
                }
                (live.clone(), Write::Patched)
            }
            None => {
                let mut object = stored(rendered, &submission.digest, &now);
                object["metadata"]["uid"] = json!(format!("uid-{}", self.clock));
                self.objects.push(object.clone());
                (object, Write::Created)
            }
        };
        (
            Observation::Object {
                observed: observed(object),
                write,
            },
            write,
        )
    }

    fn submit_member(&mut self, submission: &Submission, now: Timestamp) -> (Observation, Write) {
        let sequence = submission.told.position.sequence;
        let family = self.family(&submission.family);
        let there = family.into_iter().find(|member| {
            let digest = &member.object["metadata"]["annotations"]["digest"];
            member.sequence == sequence && *digest == submission.digest
        });
        let (submitted, write) = if let Some(there) = there {
            (there, Write::Unchanged)
        } else {
            let mut object = stored(&submission.object, &submission.digest, &now);
            let prefix = object["metadata"]["generateName"]
                .as_str()
                .unwrap_or("fixed")
                .to_owned();
            object["metadata"]["name"] = json!(format!("{prefix}{sequence}"));
            object["metadata"]["uid"] = json!(format!("uid-{}", self.clock));
            object["metadata"]["annotations"]["sequence"] = json!(sequence);
            self.objects.push(object.clone());
            (observed(object), Write::Created)
        };
        let members = self.family(&submission.family);
        (
            Observation::Family {
                submitted,
                members,
                write,
            },
            write,
        )
    }

    fn family(&self, labels: &Labels) -> Vec<Observed> {
        let mut members: Vec<Observed> = self
            .objects
            .iter()
            .filter(|object| {
                labels
                    .iter()
                    .all(|(key, value)| object["metadata"]["labels"][key] == json!(value))
            })
            .cloned()
            .map(observed)
            .collect();
        for member in &mut members {
            let uid = member.object["metadata"]["uid"].as_str().unwrap();
            if self.unknown.iter().any(|unknown| unknown == uid) {
                member.is_known = false;
                member.sequence = 0;
                member.digest = None;
            }
        }
        let departed = self.departed.iter().cloned().map(|object| Observed {
            terminating: true,
            is_gone: true,
            ..observed(object)
        });
        members.extend(departed);
        members.sort_by_key(|member| member.sequence);
        members
    }

    fn known(&self) -> Vec<KnownObject> {
        self.objects
            .iter()
            .cloned()
            .map(|object| KnownObject {
                labels: serde_json::from_value(object["metadata"]["labels"].clone()).unwrap(),
                terminating: object["metadata"].get("deletionTimestamp").is_some(),
                object: reference(&observed(object)),
            })
            .collect()
    }

    fn delete(&mut self, object: &ObjectRef) -> Result<(), SubmitFailure> {
        if let Some(cause) = self.undeletable.get(&object.name) {
            return Err(cause.clone());
        }
        self.objects
            .retain(|live| reference(&observed(live.clone())).name != object.name);
        Ok(())
    }

    /// Somebody else deletes an object.
    pub(crate) fn prune(&mut self, name: &str) {
        self.objects
            .retain(|object| object["metadata"]["name"] != name);
    }

    /// Somebody else deletes an object between two walks.
    pub(crate) fn prune_before_anybody_looked(&mut self, name: &str) {
        let object = self.object(name).clone();
        self.departed.push(object);
        self.prune(name);
    }

    /// The object of this name.
    pub(crate) fn object(&mut self, name: &str) -> &mut Value {
        self.objects
            .iter_mut()
            .find(|object| object["metadata"]["name"] == name)
            .expect("no such object")
    }

    /// The names of all objects, in order of creation.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.objects
            .iter()
            .map(|object| object["metadata"]["name"].as_str().unwrap())
            .collect()
    }
}

/// The documents of a YAML text.
pub(crate) fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).unwrap_or_else(|error| panic!("{error}\nin\n{yaml}"))
}

/// `<status>/<reason>/<message>` of a condition in a list, `absent` when it is not there.
pub(crate) fn condition(conditions: &Value, type_: &str) -> String {
    let conditions = conditions.as_array().cloned().unwrap_or_default();
    let found = conditions
        .iter()
        .find(|condition| condition["type"] == type_);
    let Some(condition) = found else {
        return "absent".to_owned();
    };
    let text = |field: &str| condition[field].as_str().unwrap();
    format!("{}/{}/{}", text("status"), text("reason"), text("message"))
}

fn with_metadata(mut document: Value, defaults: &Value) -> Value {
    document["apiVersion"] = json!("carto.run/v1alpha1");
    for (key, value) in defaults.as_object().unwrap() {
        let metadata = document["metadata"].as_object_mut().unwrap();
        metadata.entry(key).or_insert(value.clone());
    }
    document
}

fn stored(rendered: &Value, digest: &str, now: &Timestamp) -> Value {
    let mut object = rendered.clone();
    object["metadata"]["creationTimestamp"] = json!(now.to_string());
    object["metadata"]["generation"] = json!(1);
    if !object["metadata"]["annotations"].is_object() {
        object["metadata"]["annotations"] = json!({});
    }
    object["metadata"]["annotations"]["digest"] = json!(digest);
    object
}

fn same_object(live: &Value, rendered: &Value) -> bool {
    [
        "/apiVersion",
        "/kind",
        "/metadata/namespace",
        "/metadata/name",
    ]
    .iter()
    .all(|pointer| live.pointer(pointer) == rendered.pointer(pointer))
}

pub(crate) fn observed(object: Value) -> Observed {
    let kind = object["kind"].as_str().unwrap().to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    };
    let qualified = match object["apiVersion"].as_str().unwrap().split_once('/') {
        Some((group, _)) => format!("{plural}.{group}"),
        None => plural,
    };
    let state = object["metadata"]["annotations"]["digest"].as_str();
    Observed {
        qualified_resource: Some(qualified),
        state: state.map(|digest| {
            let state = digest.replace("sha256:", "state-of-");
            state.chars().take(24).collect()
        }),
        sequence: object["metadata"]["annotations"]["sequence"]
            .as_u64()
            .unwrap_or(0),
        digest: object["metadata"]["annotations"]["digest"]
            .as_str()
            .map(str::to_owned),
        version: 1,
        ..Observed::of(object)
    }
}

fn reference(observed: &Observed) -> ObjectRef {
    let text = |pointer: &str| {
        observed
            .object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    ObjectRef {
        api_version: text("/apiVersion"),
        kind: text("/kind"),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name"),
        qualified_resource: observed.qualified_resource.clone(),
        uid: Some(text("/metadata/uid")),
    }
}
