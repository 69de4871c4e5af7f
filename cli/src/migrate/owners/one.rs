//! The rehearsal of one owner.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_types::{ConditionType, Reason};
use jiff::Timestamp;
use realizer::runnable::{Run, Runnable, SelectError, Selected};
use realizer::{
    Blueprint, Conclusion, DEFAULT_SERVICE_ACCOUNT, Family, ObjectChoice, Owner, Realization,
    RemovalReason, Selection, StatusKey, select_blueprint,
};
use serde_json::Value;
use submission::{Kind, OwnerFacts, StepObjects};

use super::{Catalogue, Rehearsed};
use crate::migrate::findings::{Findings, Told};
use crate::migrate::rehearsal::Rehearsal;
use crate::migrate::world::{Rights, World};
use crate::target::TargetKind;

/// The rehearsal of one owner.
pub(super) struct One<'o> {
    pub(super) catalogue: &'o Catalogue,
    pub(super) world: &'o mut World,
    pub(super) rehearsed: &'o mut Rehearsed,
    pub(super) is_live_owner: &'o (dyn Fn(&str, &str, &str) -> bool + Send + Sync),
    pub(super) now: Timestamp,
}

impl One<'_> {
    pub(super) async fn owner(&mut self, family: Family, object: &Value) {
        let owner = match Owner::parse(family, Arc::new(object.clone())) {
            Ok(owner) if owner.is_terminating() => return,
            Ok(owner) => owner,
            Err(error) => return self.unreadable(family.owner_kind(), object, error.to_string()),
        };
        let blueprints = self.catalogue.compiled.get(family.blueprint_kind());
        let blueprints = blueprints.map(Vec::as_slice).unwrap_or_default();
        // Of an owner without a blueprint nothing is sent, by whichever controller.
        let Selection::One(blueprint) = select_blueprint(&owner, blueprints) else {
            return;
        };
        if !blueprint.is_ready() {
            return;
        }
        let (namespace, account) = blueprint.service_account(&owner, DEFAULT_SERVICE_ACCOUNT);
        let facts = OwnerFacts {
            kind: family.owner_kind(),
            namespace: owner.namespace.as_str(),
            name: owner.name.as_str(),
            uid: &owner.uid,
            generation: owner.generation,
            account: (&namespace, &account),
            stamped_for: &owner.stamped_for,
        };
        let Some(rights) = self.rights(facts).await else {
            return;
        };
        let has_step = |step: &str| blueprint.has_resource(step);
        let mut rehearsal = Rehearsal {
            world: self.world,
            owner: facts,
            label: family.owner_name_label(),
            field_manager: field_manager(TargetKind::Owner(family)),
            rights,
            is_live_owner: self.is_live_owner,
            has_step: &has_step,
            steps: StepObjects::of(owner.object()),
            kinds: Vec::new(),
            findings: Findings::default(),
        };
        let templates = self.catalogue;
        let mut realization =
            Realization::new(&owner, blueprint, templates, self.now, StatusKey::NONE);
        rehearsal.drive(&mut realization).await;
        let known = rehearsal.known_objects(owner.previous_refs()).await;
        let (kinds, mut findings) = (rehearsal.kinds, rehearsal.findings);
        let conclusion = realization.conclude(&known);
        conclude(&conclusion, blueprint, facts, &mut findings);
        self.take(facts, kinds, findings);
    }

    pub(super) async fn runnable(&mut self, object: &Value) {
        let runnable = match Runnable::parse(Arc::new(object.clone())) {
            Ok(runnable) if runnable.is_terminating() => return,
            Ok(runnable) => runnable,
            Err(error) => {
                return self.unreadable(realizer::runnable::KIND, object, error.to_string());
            }
        };
        let template = self.catalogue.run_templates.get(&runnable.run_template);
        let Some(Ok(template)) = template else {
            return;
        };
        let facts = OwnerFacts {
            kind: realizer::runnable::KIND,
            namespace: runnable.namespace.as_str(),
            name: runnable.name.as_str(),
            uid: &runnable.uid,
            generation: runnable.generation,
            account: runnable.service_account(DEFAULT_SERVICE_ACCOUNT),
            stamped_for: &runnable.stamped_for,
        };
        let Some(rights) = self.rights(facts).await else {
            return;
        };
        let mut rehearsal = Rehearsal {
            world: self.world,
            owner: facts,
            label: api_types::labels::RUNNABLE_NAME,
            field_manager: field_manager(TargetKind::Runnable),
            rights,
            is_live_owner: self.is_live_owner,
            has_step: &|_| true,
            steps: StepObjects::of(runnable.object()),
            kinds: Vec::new(),
            findings: Findings::default(),
        };
        let selected = select(&mut rehearsal, &runnable).await;
        let mut run = Run::new(&runnable, template, selected, self.now, StatusKey::NONE);
        rehearsal.drive(&mut run).await;
        let (kinds, findings) = (rehearsal.kinds, rehearsal.findings);
        self.take(facts, kinds, findings);
    }

    fn take(&mut self, owner: OwnerFacts<'_>, kinds: Vec<Kind>, findings: Findings) {
        let named = || format!("{} {}/{}", owner.kind, owner.namespace, owner.name);
        for kind in kinds {
            self.rehearsed.kinds.entry(kind).or_insert_with(named);
        }
        self.rehearsed.findings.add(findings);
        self.rehearsed.owners += 1;
    }

    /// `None` where there is no such account: nothing is stamped then, by whichever controller.
    async fn rights(&mut self, owner: OwnerFacts<'_>) -> Option<Rights> {
        let (namespace, name) = owner.account;
        match self.world.rights(namespace, name).await {
            Ok(rights) => {
                self.rehearsed.own_rights |= !rights.of_account;
                Some(rights)
            }
            Err(why) if why.ends_with("not found") => None,
            Err(why) => {
                let told = Told::new(owner, "", format!("its service account: {why}"));
                self.rehearsed.findings.unjudged.push(told);
                None
            }
        }
    }

    fn unreadable(&mut self, kind: &'static str, object: &Value, why: String) {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        self.rehearsed.findings.unjudged.push(Told {
            owner: format!("{kind} {}/{}", text("namespace"), text("name")),
            step: None,
            text: why,
        });
    }
}

/// What would be deleted, and what would wait.
fn conclude(
    conclusion: &Conclusion<'_>,
    blueprint: &Blueprint,
    facts: OwnerFacts<'_>,
    findings: &mut Findings,
) {
    for removal in conclusion.removals() {
        let why = match removal.reason {
            RemovalReason::Orphan => "no step stands for it any more",
            RemovalReason::Retention => "there are more than are to be kept",
            RemovalReason::Replaced => "a run of other inputs takes its place",
        };
        let object = &removal.object;
        let text = format!(
            "{} {}/{}: {why}",
            object.kind, object.namespace, object.name
        );
        let told = Told::new(facts, removal.resource.as_str(), text);
        findings.removals.push(told);
    }
    let steps = &conclusion.explanation().steps;
    let unknown = behind_unjudged(blueprint, findings);
    for step in steps {
        if let Some(source) = unknown.get(step.entry.name.as_str()) {
            let why = format!("it takes what step {source} hands on, which is not judged");
            let told = Told::new(facts, &step.entry.name, why);
            findings.unjudged.push(told);
            continue;
        }
        let submitted = step.condition(ConditionType::ResourceSubmitted);
        let Some(held) = submitted.filter(|it| it.reason == Reason::InputsNotReady.as_str()) else {
            continue;
        };
        // What waits for a run that would start is told with the run.
        let waits_for_run = step.entry.inputs.iter().any(|input| {
            let mut runs = findings.runs.iter();
            runs.any(|run| run.told.step.as_ref() == Some(&input.name))
        });
        if step.entry.stamped_ref.is_some() && !waits_for_run {
            let told = Told::new(facts, &step.entry.name, held.message.clone());
            findings.held.push(told);
        }
    }
}

/// The steps that take, by whatever way, what a step hands on that was not judged, and from which step each takes it.
fn behind_unjudged<'b>(
    blueprint: &'b Blueprint,
    findings: &Findings,
) -> BTreeMap<&'b str, &'b str> {
    let unjudged = findings.unjudged.iter();
    let unjudged: BTreeSet<&str> = unjudged.filter_map(|it| it.step.as_deref()).collect();
    let mut behind = BTreeMap::new();
    // Providers come before who takes from them.
    for name in blueprint.submission_order() {
        let mut providers = blueprint.providers(name.as_str());
        let source = providers.find(|it| unjudged.contains(it) || behind.contains_key(it));
        if let Some(source) = source.filter(|_| !unjudged.contains(name.as_str())) {
            behind.insert(name.as_str(), source);
        }
    }
    behind
}

/// The object that a Runnable selects.
async fn select(rehearsal: &mut Rehearsal<'_>, runnable: &Runnable) -> Selected {
    let Some(selector) = &runnable.selector else {
        return Ok(None);
    };
    let resource = &selector.resource;
    let kind = Kind::new(
        resource.api_version.clone().unwrap_or_default(),
        resource.kind.clone().unwrap_or_default(),
    );
    rehearsal.kinds.push(kind.clone());
    let choice = ObjectChoice::Labels(selector.matching_labels.clone());
    let namespace = runnable.namespace.as_str();
    match rehearsal.select(&kind, namespace, &choice).await {
        Ok(found) => match &found[..] {
            [] => Err(SelectError::None),
            [object] => Ok(Some(Arc::new(object.clone()))),
            _ => Err(SelectError::Many),
        },
        Err(failure) => Err(SelectError::List {
            namespaced: true,
            labels: selector.matching_labels.clone(),
            cause: failure.message,
        }),
    }
}

/// The field manager of the controller that works on a kind.
fn field_manager(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Owner(Family::SupplyChain) => "carto-supplychain",
        TargetKind::Owner(Family::Delivery) => "carto-delivery",
        TargetKind::Runnable => "carto-runnable",
    }
}
