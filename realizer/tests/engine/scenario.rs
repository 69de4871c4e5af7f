//! The engine over a cluster in memory in which things go wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_types::TemplateKind;
use jiff::{Span, Timestamp};
use realizer::explanation::{Explanation, Hindrance};
use realizer::offline::{self, Answers, drive};
use realizer::{
    Answer, ArtifactWrite, Blueprint, FailedRemoval, Family, FoundObject, KnownArtifact,
    KnownArtifacts, Looked, Needed, ObjectQuery, ObjectRef, Observation, Observed, Outcome, Owner,
    Realization, Rendered, Selection, StatusKey, Submission, SubmitFailure, Template,
    TemplateSource, TemplateState, Unread, Unrealized, Write, YttCall, blueprint_status,
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
    pub(crate) artifacts: Artifacts,
    /// Whether this process knows that the status tells all that was handed on.
    pub(crate) is_told: bool,
}

/// The Artifacts of the owner.
#[derive(Default)]
pub(crate) struct Artifacts {
    /// By name.
    pub(crate) held: BTreeMap<String, Value>,
    /// Why there are none to be had.
    pub(crate) trouble: Option<String>,
    /// Why one was not written when that was tried last.
    pub(crate) refusal: Option<String>,
    /// Whether none can be written, which is found out by trying.
    pub(crate) unwritable: bool,
    /// Names of those that were written or deleted, in order.
    pub(crate) log: Vec<String>,
}

impl Artifacts {
    /// As the shell knows them.
    fn known(&self, owner: &Owner) -> KnownArtifacts {
        let found = self.held.iter();
        let found =
            found.map(|(name, object)| (name.clone(), Arc::new(KnownArtifact::read(object))));
        let values = owner.artifacts_to_read().filter_map(|name| {
            let values = self.held.get(name)?["spec"]["outputs"].clone();
            Some((name.to_owned(), serde_json::from_value(values).ok()?))
        });
        KnownArtifacts {
            found: found.collect(),
            values: values.collect(),
            trouble: self.trouble.clone().or_else(|| self.refusal.clone()),
            is_unlisted: self.trouble.is_some(),
            is_unwritable: self.trouble.is_some(),
        }
    }

    /// Returns the names of those that are not written.
    fn write(&mut self, writes: &[ArtifactWrite]) -> BTreeSet<String> {
        if self.unwritable {
            return writes.iter().map(|write| write.name.clone()).collect();
        }
        for write in writes {
            self.log.push(format!("+{}", write.name));
            self.held.insert(write.name.clone(), write.object.clone());
        }
        BTreeSet::new()
    }

    fn delete(&mut self, names: &[String]) {
        for name in names {
            self.log.push(format!("-{name}"));
            self.held.remove(name);
        }
    }
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
    pub(crate) held: offline::Cluster,
    /// By step: what every submission of it comes to.
    pub(crate) failing: BTreeMap<String, SubmitFailure>,
    /// By step: what ytt says.
    pub(crate) ytt: BTreeMap<String, Rendered>,
    /// By name of the object: why it cannot be deleted.
    pub(crate) undeletable: BTreeMap<String, SubmitFailure>,
    /// Steps whose objects another writer keeps undoing.
    pub(crate) undone: BTreeSet<String>,
    /// By step: why the objects that its rules read beside the stamped one cannot be read.
    pub(crate) unread: BTreeMap<String, Unread>,
    /// Steps whose other objects nobody watches.
    pub(crate) unwatched: BTreeSet<String>,
    /// Submissions in order, as `<step>: <write>`.
    pub(crate) log: Vec<String>,
    /// By step: what the name of its last submission is derived from in place of the digest.
    pub(crate) seeds: BTreeMap<String, Option<String>>,
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
            artifacts: Artifacts::default(),
            is_told: false,
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

    /// The process is killed after the last write of a walk, before it writes the status.
    pub(crate) fn advance_and_die(&mut self) {
        let status = self.owner["status"].clone();
        let _ = self.reconcile();
        self.owner["status"] = status;
        self.is_told = false;
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
        self.is_told = outcome.tells_all;
        self.artifacts.delete(&outcome.obsolete_artifacts);
        outcome
    }

    fn realize(&mut self, owner: &Owner, blueprint: &Blueprint) -> Outcome {
        let mut realization = Realization::new(
            owner,
            blueprint,
            &self.templates,
            self.now,
            self.key.clone(),
        )
        .with_artifacts(self.artifacts.known(owner));
        if !std::mem::take(&mut self.is_told) {
            realization = realization.with_status_behind();
        }
        self.cluster.held.now = self.now;
        drive(&mut realization, &mut self.cluster);
        let mut conclusion = realization.conclude(&self.cluster.held.known());
        conclusion.shell.unkept = self.artifacts.write(conclusion.artifacts());
        let explained = conclusion.explanation().first.clone();
        let failed: Vec<FailedRemoval> = conclusion
            .removals()
            .iter()
            .filter_map(|removal| {
                Some((removal.clone(), self.cluster.delete(&removal.object).err()?))
            })
            .collect();
        let outcome = conclusion.report(&failed);
        let family = self.family;
        let told = Explanation::of_status(family, &outcome.status, Some(blueprint));
        let place = |first: Hindrance| (first.is_stuck, first.step, first.object, first.reason);
        assert_eq!(told.first.map(place), explained.map(place), "read back");
        outcome
    }

    /// What a walk would tell.
    pub(crate) fn explain(&self, read: impl FnOnce(&Explanation<'_>)) {
        let (owner, blueprints) = (self.parsed_owner(), self.compiled_blueprints());
        let Selection::One(blueprint) = select_blueprint(&owner, &blueprints) else {
            panic!("no blueprint selects it");
        };
        let (now, key) = (self.now, self.key.clone());
        let mut walk = Realization::new(&owner, blueprint, &self.templates, now, key);
        drive(&mut walk, &mut self.cluster.held.clone());
        read(&walk.explain(&blueprints));
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

impl Answers for Cluster {
    fn rendered(&mut self, call: &YttCall) -> Rendered {
        let scripted = self.ytt.get(call.resource.as_str()).cloned();
        scripted.unwrap_or_else(|| self.held.rendered(call))
    }

    fn looked(&mut self, submission: &Submission) -> Looked {
        self.log.push(format!("{}: look", submission.resource));
        self.held.looked(submission)
    }

    fn observed(&mut self, submission: &Submission) -> Observation {
        let step = submission.resource.as_str();
        if let Some(failure) = self.failing.get(step) {
            self.log.push(format!("{step}: failed"));
            return Observation::Failed(failure.clone());
        }
        let seed = submission.name_seed.clone();
        self.seeds.insert(step.to_owned(), seed);
        let mut observation = self.held.observed(submission);
        match &mut observation {
            Observation::Object { write, .. } | Observation::Family { write, .. } => {
                self.log.push(format!("{step}: {write:?}"));
                if self.undone.contains(step) {
                    *write = Write::Undone(Answer::None);
                }
            }
            Observation::Failed(_) => self.log.push(format!("{step}: refused")),
        }
        observation
    }

    fn read(&mut self, query: &ObjectQuery) -> FoundObject {
        match query.needed {
            Needed::Nothing => return self.held.read(query),
            Needed::Version => {
                return FoundObject {
                    object: Err(Unread::Unneeded),
                    version: self.version(query),
                };
            }
            Needed::Value => {}
        }
        let step = query.resource.as_str();
        self.log.push(format!("{step}: read"));
        match self.unread.get(step) {
            Some(why) => Err(why.clone()).into(),
            None => FoundObject {
                version: self.version(query),
                ..self.held.read(query)
            },
        }
    }
}

impl Cluster {
    /// All that an object is stands for its version.
    fn version(&mut self, query: &ObjectQuery) -> Option<String> {
        let query = ObjectQuery {
            needed: Needed::Value,
            ..query.clone()
        };
        let is_watched = !self.unwatched.contains(query.resource.as_str());
        is_watched.then(|| format!("{:?}", self.held.read(&query)))
    }

    fn delete(&mut self, object: &ObjectRef) -> Result<(), SubmitFailure> {
        if let Some(cause) = self.undeletable.get(&object.name) {
            return Err(cause.clone());
        }
        self.held.delete(object);
        Ok(())
    }

    /// Somebody else deletes an object.
    pub(crate) fn prune(&mut self, name: &str) {
        let held = &mut self.held.objects;
        held.retain(|held| held.object["metadata"]["name"] != name);
    }

    /// Somebody else changes an object.
    pub(crate) fn tamper(&mut self, name: &str) {
        let held = &mut self.held.objects;
        let held = held
            .iter_mut()
            .find(|held| held.object["metadata"]["name"] == name);
        let held = held.expect("no such object");
        held.digest = Some("somebody else's".to_owned());
        held.state = held.digest.clone();
        held.values = held.digest.clone();
    }

    /// The object of this name.
    pub(crate) fn object(&mut self, name: &str) -> &mut Value {
        self.held.object(name).expect("no such object")
    }

    /// The names of all objects, in order of creation.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.held.names()
    }

    /// All objects, with the digests of their renderings.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let shown = |held: &Observed| {
            let mut object = held.object.clone();
            object["metadata"]["annotations"]["digest"] = json!(held.digest);
            object
        };
        self.held.objects.iter().map(shown).collect()
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
