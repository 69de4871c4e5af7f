//! The same of a step that makes a new object for each rendering, and of values that come from a Secret, over the cluster in
//! memory: commits, runs that end well or badly, walks that are cut off after any write, a tenant who changes runs, and whoever
//! deletes them.
//!
//! 1. Nothing that the tenant asked for is deployed or in the status, nor is a text of a Secret.
//! 2. No output is attributed to inputs that did not make it, and no two outputs have one identity.
//! 3. A chain that was good once always has something to deploy, Secrets aside.
//! 4. When runs end and changed ones are deleted, as their condition says, the newest revision is deployed, unless its run failed.
//! 5. No run is made while one of the same rendering is there, or is known to have ended.
//! 6. What was deployed of a newer revision is not taken back.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use api_types::TemplateKind;
use jiff::Timestamp;
use realizer::offline::{Answers as _, Cluster};
use realizer::{
    Ask, AskFeed as _, Beside, Blueprint, Family, Observation, Observed, Owner, Realization,
    StatusKey, Template, TemplateSource, TemplateState, Write,
};
use serde_json::{Value, json};

/// What is done wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A run is taken to be as it was made whatever is in it.
    ValuesNotCompared,
    /// What was good last is not kept.
    LastGoodLost,
    /// What a Secret holds is kept.
    SecretKept,
    /// What made an output is remembered of the first one only.
    ProvenanceOfFormer,
    /// Runs are not shown.
    RunsHidden,
    /// Nobody is taken to have set anything beside ours.
    ForeignNotCompared,
    /// A status is taken to tell all that was handed on, whoever wrote it.
    StatusBelieved,
}

/// What a search came to.
#[derive(Debug, Default)]
pub(crate) struct Explored {
    pub(crate) states: usize,
    pub(crate) deployed: usize,
    pub(crate) runs: usize,
}

/// Which worlds are tried.
#[derive(Clone, Copy, Default)]
pub(crate) struct Runs {
    pub(crate) revisions: u8,
    /// How often the tenant changes a run.
    pub(crate) tampering: u8,
    /// How often he sets a field beside ours, or removes it; runs refuse that.
    pub(crate) foreign: u8,
    /// How often somebody deletes a run.
    pub(crate) deletions: u8,
    /// Walks are cut off after any of their writes, and their status is lost.
    pub(crate) crashes: bool,
    /// The source is read from a Secret.
    pub(crate) is_secret: bool,
    pub(crate) fault: Option<Fault>,
}

#[derive(Clone, Debug)]
struct World {
    cluster: Cluster,
    status: Value,
    revision: u8,
    tampered: u8,
    foreign: u8,
    deleted: u8,
}

/// What a walk came to: the world after each of its writes, the last one with the status.
struct Walked {
    after: Vec<World>,
    made: Vec<World>,
    deploys: bool,
    changed: bool,
}

struct Templates(HashMap<String, Arc<Template>>);

impl TemplateSource for Templates {
    fn template(&self, _: TemplateKind, name: &str) -> TemplateState {
        let found = self.0.get(name);
        found.map_or(TemplateState::Missing, |it| {
            TemplateState::Found(Arc::clone(it))
        })
    }
}

struct Explorer {
    tried: Runs,
    templates: Templates,
    blueprint: Blueprint,
    identities: HashMap<String, String>,
    /// Worlds from which the chain is known to come to its end.
    settled: HashSet<String>,
}

/// The longest way to rest, in walks.
const ROUNDS: usize = 20;

impl Runs {
    /// Visits every state that can be reached.
    ///
    /// # Errors
    ///
    /// The first violation, and the world in which it is.
    pub(crate) fn explore(self) -> Result<Explored, String> {
        let mut explorer = Explorer {
            tried: self,
            templates: templates(self.is_secret),
            blueprint: blueprint(),
            identities: HashMap::new(),
            settled: HashSet::new(),
        };
        let beginning = World {
            cluster: Cluster::default(),
            status: Value::Null,
            revision: 1,
            tampered: 0,
            foreign: 0,
            deleted: 0,
        };
        let mut explored = Explored::default();
        let mut known = HashSet::from([beginning.key()]);
        let mut queue = VecDeque::from([beginning]);
        while let Some(world) = queue.pop_front() {
            explored.states += 1;
            let told = |violation: String| format!("{violation}\nin: {world:?}");
            let next = explorer.successors(&world, &mut explored).map_err(told)?;
            for next in next {
                explorer.check(&next).map_err(told)?;
                if known.insert(next.key()) {
                    explored.deployed += usize::from(next.deployed() != world.deployed());
                    explorer.comes_to_rest(&next).map_err(told)?;
                    queue.push_back(next);
                }
            }
        }
        Ok(explored)
    }
}

impl Explorer {
    fn successors(&mut self, world: &World, explored: &mut Explored) -> Result<Vec<World>, String> {
        let mut next = self.moves(world);
        let walked = self.walk(world);
        if !self.tried.is_secret && world.was_good() && !walked.deploys {
            return Err("the chain was good once, and there is nothing to deploy".to_owned());
        }
        for before in &walked.made {
            explored.runs += 1;
            before.may_make(self.tried)?;
        }
        let last = walked.after.len() - 1;
        let is_newer = |after: &World| after.deployed() < world.deployed();
        if !self.tried.is_secret && walked.after.iter().any(is_newer) {
            return Err("something newer is taken back".to_owned());
        }
        let after = walked.after.into_iter().enumerate();
        let kept = after.filter(|(number, _)| *number == last || self.tried.crashes);
        next.extend(kept.map(|(_, world)| world));
        Ok(next)
    }

    fn moves(&self, world: &World) -> Vec<World> {
        let mut moves = Vec::new();
        let mut add = |change: &dyn Fn(&mut World)| {
            let mut next = world.clone();
            change(&mut next);
            moves.push(next);
        };
        if world.revision < self.tried.revisions {
            add(&|next| next.revision += 1);
        }
        for index in world.runs() {
            if world.cluster.objects[index].object["status"].is_null() {
                add(&|next| next.end(index, true));
                add(&|next| next.end(index, false));
            }
            if world.tampered < self.tried.tampering {
                add(&|next| next.tamper(index));
            }
            if world.foreign < self.tried.foreign {
                add(&|next| next.set_foreign(index));
            }
            if world.deleted < self.tried.deletions {
                add(&|next| next.delete(index));
            }
        }
        moves
    }

    fn walk(&self, before: &World) -> Walked {
        let mut owner = before.owner(self.tried.is_secret);
        if self.tried.fault == Some(Fault::LastGoodLost) {
            lose_last_good(&mut owner["status"]);
        }
        let owner = Owner::parse(Family::SupplyChain, Arc::new(owner)).unwrap();
        let key = StatusKey::new(b"the key of the installation");
        let now = Timestamp::UNIX_EPOCH;
        let mut walk = Realization::new(&owner, &self.blueprint, &self.templates, now, key);
        if self.tried.crashes && self.tried.fault != Some(Fault::StatusBelieved) {
            walk = walk.with_status_behind();
        }
        let (mut world, mut after, mut made) = (before.clone(), Vec::new(), Vec::new());
        let mut deploys = false;
        loop {
            match walk.next() {
                Ask::Look(submission) => {
                    // What is deployed is left so.
                    deploys |= submission.resource == "deploy" && world.deployed().is_some();
                    let looked = world.cluster.looked(&submission);
                    walk.record_looked(looked.map(|found| self.shown(found)));
                }
                Ask::Submit(submission) => {
                    let at = world.clone();
                    let observation = world.cluster.observed(&submission);
                    deploys |= submission.resource == "deploy";
                    if matches!(
                        &observation,
                        Observation::Family {
                            write: Write::Created,
                            ..
                        }
                    ) {
                        made.push(at);
                    }
                    after.push(world.clone());
                    walk.record_observed(self.seen(observation));
                }
                Ask::Done => break,
                Ask::Render(_) | Ask::Read(_) => panic!("nobody asks for that here"),
            }
        }
        let conclusion = walk.conclude(&world.cluster.known());
        for removal in conclusion.removals() {
            world.cluster.delete(&removal.object);
        }
        let outcome = conclusion.report(&[]);
        if outcome.changed {
            let mut status = outcome.status;
            self.spoil(&world.status, &mut status);
            world.status = status;
        }
        after.push(world);
        Walked {
            after,
            made,
            deploys,
            changed: outcome.changed,
        }
    }

    fn shown(&self, found: Vec<Observed>) -> Vec<Observed> {
        let mut found = found;
        if self.tried.fault == Some(Fault::RunsHidden) {
            found.clear();
        }
        for observed in &mut found {
            observed.unchanged |= self.tried.fault == Some(Fault::ValuesNotCompared);
            if self.tried.fault == Some(Fault::ForeignNotCompared) {
                observed.beside = Some(Beside::expected(Vec::new()));
                observed.object["metadata"]["generation"] = json!(1);
            }
        }
        found
    }

    fn seen(&self, observation: Observation) -> Observation {
        match observation {
            Observation::Family {
                submitted,
                members,
                write,
            } => Observation::Family {
                submitted: self
                    .shown(vec![submitted.clone()])
                    .pop()
                    .unwrap_or(submitted),
                members: self.shown(members),
                write,
            },
            other => other,
        }
    }

    /// What is written instead.
    fn spoil(&self, before: &Value, status: &mut Value) {
        let former = entry(before, "build").cloned();
        let secret = json!(SECRET);
        for entry in status["resources"].as_array_mut().into_iter().flatten() {
            let Some(output) = entry
                .pointer_mut("/outputs/0")
                .filter(|it| !it["provenance"].is_null())
            else {
                continue;
            };
            match self.tried.fault {
                Some(Fault::SecretKept) => output["value"] = secret.clone(),
                Some(Fault::ProvenanceOfFormer) => {
                    let former = former
                        .as_ref()
                        .map_or(&Value::Null, |it| &it["outputs"][0]["provenance"]);
                    if entry["name"] == "build" && !former.is_null() {
                        entry["outputs"][0]["provenance"] = former.clone();
                    }
                }
                Some(_) | None => {}
            }
        }
    }

    fn check(&mut self, world: &World) -> Result<(), String> {
        let deployed = world.deployed().unwrap_or_default();
        let status = world.status.to_string();
        if deployed.contains("evil") || status.contains("evil") {
            return Err("what the tenant asked for goes downstream".to_owned());
        }
        if self.tried.is_secret && status.contains(SECRET) {
            return Err("a text of a Secret is told".to_owned());
        }
        for step in ["fetch", "build"] {
            let outputs =
                entry(&world.status, step).map_or(&Value::Null, |entry| &entry["outputs"]);
            let output = outputs.as_array().and_then(|outputs| outputs.last());
            if let Some(output) = output.filter(|output| !output["value"].is_null()) {
                self.attributed(step, output)?;
            }
        }
        Ok(())
    }

    fn attributed(&mut self, step: &str, output: &Value) -> Result<(), String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (value, identity) = (
            text(&output["value"]),
            text(&output["provenance"]["identity"]),
        );
        let known = self
            .identities
            .entry(identity.clone())
            .or_insert_with(|| value.clone());
        if *known != value {
            return Err(format!(
                "two outputs are [{identity}]: [{known}], [{value}]"
            ));
        }
        let input = text(&output["provenance"]["inputs"][0]["identity"]);
        let input = self.identities.get(&input).cloned().unwrap_or_default();
        if step == "build" && value != built(&input) {
            return Err(format!("[{value}] is attributed to [{input}]"));
        }
        Ok(())
    }

    /// Runs end well, changed ones are deleted, and nothing goes wrong any more.
    fn comes_to_rest(&mut self, from: &World) -> Result<(), String> {
        let mut world = from.clone();
        let mut way = Vec::new();
        for _ in 0..ROUNDS {
            let before = world.key();
            if self.settled.contains(&before) {
                self.settled.extend(way);
                return Ok(());
            }
            way.push(before.clone());
            for index in world.runs() {
                let run = &world.cluster.objects[index];
                if !run.unchanged || run.object["metadata"]["generation"] != 1 {
                    world.delete(index);
                } else if world.cluster.objects[index].object["status"].is_null() {
                    world.end(index, true);
                }
            }
            let walked = self.walk(&world);
            for before in &walked.made {
                before.may_make(self.tried)?;
            }
            world.clone_from(&walked.after[walked.after.len() - 1]);
            self.check(&world)?;
            if world.key() == before {
                world.is_at_rest(walked.changed)?;
                self.settled.extend(way);
                return Ok(());
            }
        }
        Err("it does not come to rest".to_owned())
    }
}

fn lose_last_good(status: &mut Value) {
    let entries = status.get_mut("resources").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        let outputs = entry.get_mut("outputs").and_then(Value::as_array_mut);
        for output in outputs.into_iter().flatten() {
            if output["current"] == false {
                output.as_object_mut().unwrap().remove("value");
            }
        }
    }
}

/// In what a Secret holds, and in nothing else.
const SECRET: &str = "s3cret";

fn built(revision: &str) -> String {
    format!("build[{revision}]")
}

impl World {
    fn key(&self) -> String {
        format!("{self:?}")
    }

    fn wanted(&self) -> String {
        format!("r{}", self.revision)
    }

    fn owner(&self, is_secret: bool) -> Value {
        let prefix = if is_secret { SECRET } else { "" };
        json!({
            "apiVersion": "carto.run/v1alpha1", "kind": "Workload",
            "metadata": {"namespace": "dev", "name": "app", "uid": "u", "generation": self.revision},
            "spec": {"image": format!("{prefix}{}", self.wanted())},
            "status": self.status,
        })
    }

    fn runs(&self) -> Vec<usize> {
        let objects = self.cluster.objects.iter().enumerate();
        let runs = objects.filter(|(_, it)| it.object["kind"] == "Run" && !it.is_gone);
        runs.map(|(index, _)| index).collect()
    }

    fn end(&mut self, index: usize, well: bool) {
        let run = &mut self.cluster.objects[index];
        let is_foreign = run.beside.as_ref().is_some_and(|it| !it.values.is_empty());
        let object = &mut run.object;
        let mut revision = object["spec"]["revision"].as_str().unwrap().to_owned();
        if is_foreign {
            revision.insert_str(0, "evil ");
        }
        let ready = if well { "True" } else { "False" };
        object["status"] = json!({"ready": ready, "image": built(&revision)});
    }

    fn tamper(&mut self, index: usize) {
        let run = &mut self.cluster.objects[index];
        run.object["spec"]["revision"] = json!("evil");
        run.unchanged = false;
        self.tampered += 1;
    }

    /// He asks for more than we do, or does so no longer.
    fn set_foreign(&mut self, index: usize) {
        let run = &mut self.cluster.objects[index];
        let generation = run.object["metadata"]["generation"].as_u64().unwrap();
        run.object["metadata"]["generation"] = json!(generation + 1);
        let beside = run.beside.as_mut().unwrap();
        if beside.values.pop().is_none() {
            beside.values.push("foreign".to_owned());
        }
        self.foreign += 1;
    }

    /// What was seen last of it is known, as by a watch.
    fn delete(&mut self, index: usize) {
        let name = self.cluster.objects[index].object["metadata"]["name"].clone();
        self.cluster.depart(name.as_str().unwrap());
        self.deleted += 1;
    }

    fn deployed(&self) -> Option<String> {
        let objects = self.cluster.objects.iter();
        let mut deployed = objects.filter(|it| it.object["metadata"]["name"] == "deploy");
        deployed
            .next()
            .map(|it| it.object["data"]["image"].as_str().unwrap().to_owned())
    }

    fn was_good(&self) -> bool {
        entry(&self.status, "build")
            .is_some_and(|entry| !entry["outputs"][0]["provenance"].is_null())
    }

    /// A run is about to be made.
    fn may_make(&self, tried: Runs) -> Result<(), String> {
        let prefix = if tried.is_secret { SECRET } else { "" };
        let wanted = format!("{prefix}{}", self.wanted());
        let is_same = |run: &&Observed| run.object["spec"]["revision"] == wanted && run.unchanged;
        let same = self
            .runs()
            .into_iter()
            .map(|index| &self.cluster.objects[index])
            .find(is_same);
        match same {
            Some(run) => Err(format!(
                "it is run again beside {}",
                run.object["metadata"]["name"]
            )),
            None => Ok(()),
        }
    }

    fn is_at_rest(&self, changed: bool) -> Result<(), String> {
        if changed {
            return Err("it does not come to rest: the status would change for ever".to_owned());
        }
        let newest = entry(&self.status, "build").map_or(&Value::Null, |entry| &entry["runs"][0]);
        let has_failed = newest["result"] == "Failed";
        let deployed = self.deployed().unwrap_or_default();
        if has_failed || deployed.ends_with(&format!("{}]", self.wanted())) {
            return Ok(());
        }
        Err(format!(
            "no progress: [{deployed}] is deployed, not that of {}",
            self.wanted()
        ))
    }
}

fn entry<'s>(status: &'s Value, step: &str) -> Option<&'s Value> {
    let entries = status["resources"].as_array()?;
    entries.iter().find(|entry| entry["name"] == step)
}

fn templates(is_secret: bool) -> Templates {
    let (kind, data) = if is_secret {
        ("Secret", "stringData")
    } else {
        ("ConfigMap", "data")
    };
    let all = [
        json!({
            "kind": "ClusterSourceTemplate", "metadata": {"name": "fetch"}, "spec": {
                "urlPath": format!(".{data}.url"), "revisionPath": format!(".{data}.revision"), "alwaysSuccessful": true,
                "template": {"apiVersion": "v1", "kind": kind, "metadata": {"name": "fetch"},
                    data: {"url": "u", "revision": "$(workload.spec.image)$"}},
            },
        }),
        json!({
            "kind": "ClusterImageTemplate", "metadata": {"name": "build"}, "spec": {
                "lifecycle": "immutable", "foreignFields": "Refuse", "imagePath": ".status.image",
                "observedCompletion": {
                    "succeeded": {"key": ".status.ready", "value": "True"}, "failed": {"key": ".status.ready", "value": "False"},
                },
                "template": {"apiVersion": "test.run/v1", "kind": "Run", "metadata": {"generateName": "run-"},
                    "spec": {"revision": "$(source.revision)$"}},
            },
        }),
        json!({
            "kind": "ClusterTemplate", "metadata": {"name": "deploy"}, "spec": {
                "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "deploy"},
                    "data": {"image": "$(image)$"}},
            },
        }),
    ];
    let compiled = all.iter().map(|template| {
        let name = template["metadata"]["name"].as_str().unwrap().to_owned();
        (name, Arc::new(Template::compile(template).unwrap()))
    });
    Templates(compiled.collect())
}

fn blueprint() -> Blueprint {
    let chain = json!({"metadata": {"name": "chain"}, "spec": {"selector": {"type": "web"}, "resources": [
        {"name": "fetch", "templateRef": {"kind": "ClusterSourceTemplate", "name": "fetch"}},
        {"name": "build", "templateRef": {"kind": "ClusterImageTemplate", "name": "build"},
         "sources": [{"name": "source", "resource": "fetch"}]},
        {"name": "deploy", "templateRef": {"kind": "ClusterTemplate", "name": "deploy"},
         "images": [{"name": "image", "resource": "build"}]},
    ]}});
    Blueprint::compile(Family::SupplyChain, &chain).unwrap()
}
