//! One walk of the real engine over the world.

use std::collections::HashMap;
use std::sync::Arc;

use api_types::TemplateKind;
use api_types::labels::{RENDERED_DIGEST, RESOURCE_NAME};
use jiff::Timestamp;
use realizer::{
    Ask, AskFeed as _, Beside, Blueprint, Family, Observation, Observed, Owner, Precondition,
    Realization, StatusKey, Submission, SubmitFailure, SubmitFailureKind, Template, TemplateSource,
    TemplateState, Write,
};
use serde_json::{Value, json};

use crate::world::{EVIL, Ready, Resource, Slot, Status, Text, Work, World};

/// What is done wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An object is taken to be as we left it whatever is in it.
    ValuesNotCompared,
    /// An annotation's word is taken for it that an object is as we left it.
    MarksBelieved,
    /// Whoever rewrites a spec can write the owner's status, too.
    StatusForged,
    /// A status is taken to speak of the present spec.
    GenerationNotCompared,
    /// An object that has an output is taken to be good.
    ConditionNotAsked,
    /// The reply to an apply shows the generation before it.
    ReplyIsOld,
    /// What made an output is remembered of the first one only.
    ProvenanceOfFormer,
    /// The value of one step is kept in the entry of another.
    ValueOfAnotherStep,
    /// What was good last is lost with the process.
    LastGoodLost,
    /// No status is ever written.
    StatusNeverWritten,
    /// The watch shows nothing that was not ours.
    WatchStands,
    /// What waits is not kept.
    WaitingLost,
    /// What waits is applied while something else is under way.
    Overtaken,
    /// What is applied is taken to be made from what came last.
    MadeFromNewest,
    /// Nobody but us is taken to have set anything.
    ForeignNotCompared,
    /// A status is taken to tell all that was handed on, whoever wrote it.
    StatusBelieved,
    /// That an object was changed by others is forgotten once it is changed back.
    DoubtForgotten,
    /// An object is changed back before status says that it was changed.
    DoubtNotWritten,
}

/// Texts by number.
#[derive(Default)]
pub(crate) struct Texts {
    texts: Vec<String>,
    numbers: HashMap<String, Text>,
}

impl Texts {
    pub(crate) fn number(&mut self, text: &str) -> Text {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = Text::try_from(self.texts.len()).unwrap();
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    pub(crate) fn text(&self, number: Text) -> &str {
        &self.texts[usize::from(number)]
    }
}

pub(crate) struct Shell {
    pub(crate) fault: Option<Fault>,
    pub(crate) texts: Texts,
    templates: Templates,
    blueprint: Blueprint,
    /// Whether updates of the two resources wait.
    pub(crate) waits: bool,
    /// Whether they refuse what others set.
    pub(crate) refuses: bool,
    /// By which rule that compares fields they are good, if it is one; then they count no generations.
    pub(crate) compares: Option<Compares>,
}

/// Rules that compare fields with what the resource reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compares {
    Matches,
    Inputs,
}

struct Templates(HashMap<String, Arc<Template>>);

impl TemplateSource for Templates {
    fn template(&self, _: TemplateKind, name: &str) -> TemplateState {
        self.0.get(name).map_or(TemplateState::Missing, |it| {
            TemplateState::Found(Arc::clone(it))
        })
    }
}

/// What a walk came to.
pub(crate) struct Walked {
    /// The world after each of its writes, the last one with the status that it would write.
    pub(crate) after: Vec<World>,
    /// Whether something was submitted to be deployed, or is left deployed.
    pub(crate) deploys: bool,
    /// What was handed on anew although something newer had been handed on.
    pub(crate) taken_back: Option<Text>,
    /// Whether the status is another one.
    pub(crate) changed: bool,
}

impl Shell {
    pub(crate) fn new() -> Self {
        let mut texts = Texts::default();
        assert_eq!(texts.number("evil"), EVIL);
        Self {
            fault: None,
            texts,
            templates: templates(false, false, None),
            blueprint: blueprint(),
            waits: false,
            refuses: false,
            compares: None,
        }
    }

    /// Updates of the two resources wait.
    pub(crate) fn wait(&mut self) {
        self.waits = true;
        self.templates = templates(true, self.refuses, self.compares);
    }

    /// They refuse fields that others set.
    pub(crate) fn refuse(&mut self) {
        self.refuses = true;
        self.templates = templates(self.waits, true, self.compares);
    }

    /// What they report says when they are good.
    pub(crate) fn compare(&mut self, rule: Compares) {
        self.compares = Some(rule);
        self.templates = templates(self.waits, self.refuses, self.compares);
    }

    /// The world before anything was done.
    pub(crate) fn beginning(&mut self) -> World {
        World::new(self.texts.number("null"))
    }

    /// What a resource makes of a spec under a state of the world.
    pub(crate) fn made(&mut self, slot: Slot, work: &Work) -> Text {
        let is_evil = work.has_foreign || work.is_evil;
        let foreign = if is_evil { "evil " } else { "" };
        let text = format!(
            "{}[{foreign}{},{}]",
            slot.name(),
            self.texts.text(work.spec),
            work.world
        );
        self.texts.number(&text)
    }

    pub(crate) fn status(&self, world: &World) -> Value {
        serde_json::from_str(self.texts.text(world.status)).unwrap()
    }

    pub(crate) fn walk(&mut self, before: &World) -> Walked {
        let owner = Owner::parse(Family::SupplyChain, Arc::new(self.owner(before))).unwrap();
        let Self {
            fault,
            texts,
            templates,
            blueprint,
            waits,
            compares,
            ..
        } = self;
        let now = Timestamp::UNIX_EPOCH;
        let mut walk = Realization::new(&owner, blueprint, templates, now, StatusKey::NONE);
        if !before.told && *fault != Some(Fault::StatusBelieved) {
            walk = walk.with_status_behind();
        }
        let mut hand = Hand {
            world: World {
                told: false,
                ..before.clone()
            },
            texts,
            fault: *fault,
            waits: *waits,
            compares: compares.is_some(),
            deploys: false,
            taken_back: None,
        };
        let mut after = Vec::new();
        loop {
            match walk.next() {
                Ask::Submit(submission) => {
                    let written = hand.world.clone();
                    walk.record_observed(hand.submit(&submission));
                    if hand.world != written {
                        after.push(hand.world.clone());
                    }
                }
                Ask::Look(place) => walk.record_looked(Ok(hand.look(&place))),
                Ask::Done => break,
                Ask::Render(_) | Ask::Read(_) => panic!("nobody asks for that here"),
            }
        }
        let (deploys, taken_back) = (hand.deploys, hand.taken_back);
        let mut world = hand.world;
        let outcome = walk.conclude(&[]).report(&[]);
        if outcome.changed && *fault != Some(Fault::StatusNeverWritten) {
            let mut status = outcome.status;
            if let Some(fault) = *fault {
                spoil(
                    fault,
                    before.tampered,
                    &owner_status(texts, before),
                    &mut status,
                );
            }
            world.status = texts.number(&status.to_string());
        }
        world.told = outcome.tells_all;
        after.push(world);
        Walked {
            after,
            deploys,
            taken_back,
            changed: outcome.changed,
        }
    }

    fn owner(&self, world: &World) -> Value {
        let mut status = self.status(world);
        if let Some(entries) = status["resources"].as_array_mut() {
            for entry in entries {
                let outputs = entry.get_mut("outputs").and_then(Value::as_array_mut);
                for output in outputs.into_iter().flatten() {
                    if self.fault == Some(Fault::LastGoodLost) && output["current"] == false {
                        output.as_object_mut().unwrap().remove("value");
                    }
                }
            }
        }
        json!({
            "apiVersion": "carto.run/v1alpha1", "kind": "Workload",
            "metadata": {"namespace": "dev", "name": "app", "uid": "u", "generation": world.revision},
            "spec": {"image": format!("r{}", world.revision)},
            "status": status,
        })
    }
}

fn owner_status(texts: &Texts, world: &World) -> Value {
    serde_json::from_str(texts.text(world.status)).unwrap()
}

/// What is written instead.
fn spoil(fault: Fault, tampered: u8, before: &Value, status: &mut Value) {
    let entry = |status: &Value, name: &str| {
        let entries = status["resources"].as_array().cloned().unwrap_or_default();
        entries.into_iter().find(|it| it["name"] == name)
    };
    if fault == Fault::WaitingLost || fault == Fault::Overtaken || fault == Fault::MadeFromNewest {
        spoil_updates(fault, status);
        return;
    }
    if fault == Fault::DoubtForgotten {
        for told in status["resources"].as_array_mut().into_iter().flatten() {
            let former = entry(before, told["name"].as_str().unwrap_or_default());
            let was_doubted = former.is_some_and(|it| !it["applied"]["doubtful"].is_null());
            if let Some(applied) = told["applied"].as_object_mut().filter(|_| was_doubted) {
                applied.remove("doubtful");
            }
        }
        return;
    }
    let former = entry(before, "build");
    let pack = entry(status, "pack");
    for entry in status["resources"].as_array_mut().into_iter().flatten() {
        if entry["name"] != "build" || entry["outputs"][0]["provenance"].is_null() {
            continue;
        }
        let is_kept = entry["outputs"][0]["current"] == false;
        match (fault, &former, &pack) {
            (Fault::StatusForged, ..) if tampered > 0 && is_kept => {
                entry["outputs"][0]["value"] = json!("evil");
            }
            (Fault::ProvenanceOfFormer, Some(former), _)
                if !former["outputs"][0]["provenance"].is_null() =>
            {
                entry["outputs"][0]["provenance"] = former["outputs"][0]["provenance"].clone();
            }
            (Fault::ValueOfAnotherStep, _, Some(pack))
                if !pack["outputs"][0]["value"].is_null() =>
            {
                entry["outputs"][0]["value"] = pack["outputs"][0]["value"].clone();
            }
            _ => {}
        }
    }
}

fn spoil_updates(fault: Fault, status: &mut Value) {
    for entry in status["resources"].as_array_mut().into_iter().flatten() {
        let waiting = entry.pointer_mut("/updates/waiting");
        let Some(waiting) = waiting.and_then(Value::as_array_mut) else {
            continue;
        };
        match (fault, waiting.pop()) {
            (Fault::Overtaken, Some(newest)) => entry["updates"]["applied"] = newest,
            (Fault::MadeFromNewest, Some(newest)) => {
                waiting.push(newest.clone());
                entry["updates"]["applied"]["madeFrom"] = newest["madeFrom"].clone();
            }
            _ => {}
        }
        let is_empty = waiting_of(entry).is_empty();
        if is_empty && let Some(updates) = entry["updates"].as_object_mut() {
            updates.remove("waiting");
        }
    }
}

fn waiting_of(entry: &Value) -> &[Value] {
    let waiting = entry["updates"]["waiting"].as_array();
    waiting.map_or(&[], Vec::as_slice)
}

/// Does what a walk asks for.
struct Hand<'t> {
    world: World,
    texts: &'t mut Texts,
    fault: Option<Fault>,
    /// An update that waited may be applied when a newer one was.
    waits: bool,
    /// Whether resources count no generations.
    compares: bool,
    deploys: bool,
    taken_back: Option<Text>,
}

impl Hand<'_> {
    /// What is there, as the watch shows it.
    fn look(&mut self, place: &Submission) -> Vec<Observed> {
        let observed = |object: Value, is_rendered: bool| Observed {
            digest: is_rendered.then(|| place.digest.clone()),
            state: place
                .recorded
                .applied
                .as_ref()
                .and_then(|it| it.state.clone()),
            is_known: true,
            ..Observed::of(object)
        };
        let slot = match place.resource.as_str() {
            "build" => Slot::Build,
            "pack" => Slot::Pack,
            _ => {
                let image = place.object["data"]["image"].as_str().unwrap();
                let is_rendered = self.world.deployed == Some(self.texts.number(image));
                self.deploys = self.world.deployed.is_some();
                let found = self.world.deployed.is_some();
                let object = with_uid(place.object.clone());
                return found
                    .then(|| observed(object, is_rendered))
                    .into_iter()
                    .collect();
            }
        };
        // An update that was applied before may be asked for.
        let rendered = self.texts.number(&place.digest);
        let seen = self.world.seen[slot as usize].clone();
        let found = seen.map(|seen| {
            let is_rendered = seen.rendered.1 == rendered && self.is_believed(&seen);
            // A dry run tells whether the values are ours though status does not know it.
            let held = self.world.held[slot as usize].as_ref();
            let is_ours = held.is_some_and(|held| held.rendered.1 == rendered && held.is_ours());
            let is_believed = is_ours || self.fault == Some(Fault::DoubtNotWritten);
            let is_rendered = is_rendered || (place.asks_whose_values && is_believed);
            Observed {
                values: Some(values_of(&seen)),
                version: 1,
                ..observed(self.object(&seen, place), is_rendered)
            }
        });
        found.into_iter().collect()
    }

    fn hand_on(&mut self, maker: Slot, before: Option<Text>, text: Text) {
        if !self.waits {
            let taken_back = self.world.hand_on(maker, before, text);
            self.taken_back = self.taken_back.or(taken_back);
        }
    }

    fn submit(&mut self, submission: &Submission) -> Observation {
        let observed = |object: Value| Observed {
            digest: Some(submission.digest.clone()),
            state: Some(submission.digest.clone()),
            ..Observed::of(object)
        };
        let object = submission.object.clone();
        let submitted = match submission.resource.as_str() {
            // Nobody but us changes these two.
            "fetch" => Ok((observed(with_uid(object)), Write::Unchanged)),
            "deploy" => {
                self.deploys = true;
                let image = self.texts.number(object["data"]["image"].as_str().unwrap());
                self.hand_on(Slot::Pack, self.world.deployed, image);
                self.world.deployed = Some(image);
                Ok((observed(with_uid(object)), Write::Unchanged))
            }
            "build" => self.resource(Slot::Build, submission, observed),
            _ => self.resource(Slot::Pack, submission, observed),
        };
        match submitted {
            Ok((observed, write)) => Observation::Object { observed, write },
            Err(failure) => Observation::Failed(failure),
        }
    }

    /// As the shell does it: what the watch shows decides whether it is applied; the reply shows what is there then.
    fn resource(
        &mut self,
        slot: Slot,
        submission: &Submission,
        observed: impl Fn(Value) -> Observed,
    ) -> Result<(Observed, Write), SubmitFailure> {
        let wanted = submission.object["spec"]["revision"].as_str().unwrap();
        let rendered = (
            self.texts.number(wanted),
            self.texts.number(&submission.digest),
        );
        let index = slot as usize;
        let believes = self.fault == Some(Fault::ValuesNotCompared);
        if let Some(seen) = &self.world.seen[index]
            && seen.rendered == rendered
            && (self.is_believed(seen) || believes)
        {
            let found = observed(self.object(seen, submission));
            return Ok((self.with_beside(found, seen), Write::Unchanged));
        }
        let is_bound = submission.precondition != Precondition::None;
        if is_bound && self.world.seen[index] != self.world.held[index] {
            self.world.seen[index].clone_from(&self.world.held[index]);
            return Err(SubmitFailure {
                kind: SubmitFailureKind::Stale,
                message: "it has changed".to_owned(),
            });
        }
        if slot == Slot::Pack {
            let before = self.world.held[index].as_ref().map(|held| held.rendered.0);
            self.hand_on(Slot::Build, before, rendered.0);
        }
        let held = &mut self.world.held[index];
        let is_new = held.is_none();
        let old = held.as_ref().map(|held| held.generation);
        let resource = held.get_or_insert_with(|| Resource {
            spec: rendered.0,
            rendered,
            has_foreign: false,
            is_evil: false,
            has_forged_marks: false,
            generation: 1,
            status: Status::default(),
            working: None,
        });
        if resource.spec != rendered.0 || resource.is_evil {
            resource.spec = rendered.0;
            resource.is_evil = false;
            resource.generation += 1;
        }
        resource.has_forged_marks = false;
        resource.rendered = rendered;
        let mut reply = resource.clone();
        self.world.seen[index] = Some(reply.clone());
        if self.fault == Some(Fault::ReplyIsOld) {
            reply.generation = old.unwrap_or(reply.generation);
        }
        let object = self.object(&reply, submission);
        let write = if is_new {
            Write::Created
        } else {
            Write::Patched
        };
        Ok((self.with_beside(observed(object), &reply), write))
    }

    /// Whether our values are in it, as far as is looked.
    fn is_believed(&self, resource: &Resource) -> bool {
        let says_so = self.fault == Some(Fault::MarksBelieved) && resource.has_forged_marks;
        resource.is_ours() || says_so
    }

    fn with_beside(&self, observed: Observed, resource: &Resource) -> Observed {
        let is_believed = self.fault == Some(Fault::ForeignNotCompared);
        let is_foreign = resource.has_foreign && !is_believed;
        let nothing = Beside::expected(Vec::new());
        let beside = Beside {
            values: is_foreign
                .then(|| "foreign".to_owned())
                .into_iter()
                .collect(),
            ..nothing
        };
        Observed {
            beside: Some(beside),
            values: Some(values_of(resource)),
            ..observed
        }
    }

    fn object(&self, resource: &Resource, submission: &Submission) -> Value {
        let mut object = with_uid(submission.object.clone());
        object["metadata"]["generation"] = json!(resource.generation);
        object["spec"]["revision"] = json!(self.texts.text(resource.spec));
        if resource.is_evil {
            object["spec"]["builder"] = json!("evil");
        }
        if resource.has_forged_marks {
            object["metadata"]["annotations"] = json!({RENDERED_DIGEST: submission.digest});
            object["metadata"]["labels"] = json!({RESOURCE_NAME: submission.resource});
        }
        let Status {
            mut observed,
            mut ready,
            output,
            made_from,
            ..
        } = resource.status.clone();
        if self.compares {
            (observed, ready) = (None, None);
        }
        if let Some(made_from) = made_from.filter(|_| self.compares) {
            object["status"]["revision"] = json!(self.texts.text(made_from));
        }
        let mut observed = observed.map(u64::from);
        if self.fault == Some(Fault::GenerationNotCompared) && observed.is_some() {
            observed = Some(resource.generation.into());
        }
        if self.fault == Some(Fault::ConditionNotAsked) && output.is_some() {
            ready = Some(Ready::True);
        }
        if let Some(observed) = observed {
            object["status"]["observedGeneration"] = json!(observed);
        }
        if let Some(ready) = ready {
            object["status"]["conditions"] =
                json!([{"type": "Ready", "status": format!("{ready:?}")}]);
        }
        if let Some(output) = output {
            object["status"]["latestGoodOutput"] = json!(self.texts.text(output));
        }
        object
    }
}

/// What is in the fields that are ours.
fn values_of(resource: &Resource) -> String {
    format!("{} {}", resource.spec, resource.is_evil)
}

fn with_uid(mut object: Value) -> Value {
    object["metadata"]["uid"] = object["metadata"]["name"].clone();
    object
}

fn templates(waits: bool, refuses: bool, compares: Option<Compares>) -> Templates {
    let ready = r#".status.conditions[?(@.type=="Ready")].status"#;
    let resource = |name: &str, input: &str| {
        let policy = json!({"whenReconciling": if waits { "Wait" } else { "Apply" }});
        let mut template = json!({
            "kind": "ClusterImageTemplate", "metadata": {"name": name}, "spec": {
                "updatePolicy": policy,
                "foreignFields": if refuses { "Refuse" } else { "Allow" },
                "imagePath": ".status.latestGoodOutput",
                "template": {"apiVersion": "test.run/v1", "kind": "Resource", "metadata": {"name": name},
                    "spec": {"revision": input, "builder": "good"}},
            },
        });
        let spec = &mut template["spec"];
        match compares {
            None => {
                spec["observedCompletion"] = json!({
                    "succeeded": {"key": ready, "value": "True"}, "failed": {"key": ready, "value": "False"},
                });
            }
            Some(Compares::Matches) => {
                spec["observedMatches"] =
                    json!([{"input": ".spec.revision", "output": ".status.revision"}]);
            }
            Some(Compares::Inputs) => {
                let context = input.trim_start_matches("$(").trim_end_matches(")$");
                spec["inputsOnStatus"] =
                    json!([{"templatingContextPath": context, "objectPath": ".status.revision"}]);
            }
        }
        template
    };
    let fetch = json!({
        "kind": "ClusterSourceTemplate", "metadata": {"name": "fetch"}, "spec": {
            "urlPath": ".data.url", "revisionPath": ".data.revision", "alwaysSuccessful": true,
            "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fetch"},
                "data": {"url": "u", "revision": "$(workload.spec.image)$"}},
        },
    });
    let deploy = json!({
        "kind": "ClusterTemplate", "metadata": {"name": "deploy"}, "spec": {
            "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "deploy"},
                "data": {"image": "$(image)$"}},
        },
    });
    let all = [
        fetch,
        resource("build", "$(source.revision)$"),
        resource("pack", "$(image)$"),
        deploy,
    ];
    let compiled = all.iter().map(|template| {
        let name = template["metadata"]["name"].as_str().unwrap().to_owned();
        (name, Arc::new(Template::compile(template).unwrap()))
    });
    Templates(compiled.collect())
}

fn blueprint() -> Blueprint {
    let step =
        |name: &str, kind: &str| json!({"name": name, "templateRef": {"kind": kind, "name": name}});
    let mut steps = [
        step("fetch", "ClusterSourceTemplate"),
        step("build", "ClusterImageTemplate"),
        step("pack", "ClusterImageTemplate"),
        step("deploy", "ClusterTemplate"),
    ];
    steps[1]["sources"] = json!([{"name": "source", "resource": "fetch"}]);
    steps[2]["images"] = json!([{"name": "image", "resource": "build"}]);
    steps[3]["images"] = json!([{"name": "image", "resource": "pack"}]);
    let chain = json!({
        "metadata": {"name": "chain"}, "spec": {"selector": {"type": "web"}, "resources": steps},
    });
    Blueprint::compile(Family::SupplyChain, &chain).unwrap()
}
