//! What developers, authors of templates and other controllers may write: nearly all of it has what it takes to come to a
//! submission, and everything else in it is as strange as can be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::SignedDuration;
use proptest::prelude::*;
use proptest::sample::select;
use realizer::runnable::{Run, RunTemplate, Runnable};
use realizer::{
    Ask, AskFeed, Blueprint, FailedRemoval, Family, FoundObject, KnownObject, ObjectRef,
    Observation, Observed, Owner, Realization, Submission, SubmitFailure, SubmitFailureKind,
    Template, TemplateState, Unread, Write,
};
use serde_json::{Value, json};

use crate::scenario::{Scenario, Templates};

/// More questions than any walk over four steps asks.
const MOST_ASKED: usize = 200;

/// A text that is no tag.
fn text() -> BoxedStrategy<String> {
    let known = vec![
        "",
        "True",
        "False",
        "Unknown",
        "Ready",
        "Succeeded",
        "v1",
        "Secret",
        "a",
        "b",
        "2024-05-01T10:00:00Z",
        "9999-12-31T23:59:59Z",
        "-9999-01-01T00:00:00Z",
        "é€😀\u{0}\u{2028}",
        "18446744073709551616",
    ];
    prop_oneof![
        2 => "[a-z.(){}@?'\"\\[\\] -]{0,24}",
        1 => select(known).prop_map(str::to_owned),
    ]
    .boxed()
}

fn text_or_tag() -> BoxedStrategy<String> {
    prop_oneof![
        2 => text(),
        1 => "[a-z.$(){}@?'\"\\[\\] -]{0,24}",
        1 => "\\$\\((workload|params|sources|labels|deployment)[a-z.\\[\\]*'-]{0,16}\\)\\$",
    ]
    .boxed()
}

fn key() -> BoxedStrategy<String> {
    let known = vec![
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "namespace",
        "labels",
        "annotations",
        "generateName",
        "generation",
        "observedGeneration",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "lastTransitionTime",
        "spec",
        "status",
        "conditions",
        "reason",
        "message",
        "resources",
        "stampedRef",
        "applied",
        "runs",
        "sequence",
        "environments",
        "validations",
        "revision",
        "params",
        "value",
        "type",
        "inputs",
        "outputs",
        "ownerReferences",
    ];
    prop_oneof![select(known).prop_map(str::to_owned), "[a-z]{1,4}"].boxed()
}

fn json_of(texts: BoxedStrategy<String>) -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => prop_oneof![any::<i64>(), select(vec![0, 1, i64::MIN, i64::MAX])].prop_map(Value::from),
        1 => prop_oneof![any::<u64>(), Just(u64::MAX)].prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        3 => texts.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
    .boxed()
}

/// Anything, with tags in it.
pub(crate) fn any_json() -> BoxedStrategy<Value> {
    json_of(text_or_tag())
}

/// Where a template reads: often a place that is there.
fn path() -> BoxedStrategy<String> {
    let sensible = vec![
        ".metadata.name",
        ".status.conditions[?(@.type==\"Ready\")].status",
        "$..*",
        "$.status[?@.a > 1]",
        ".spec",
        "{.status.*}",
        ".",
        "",
    ];
    prop_oneof![
        4 => Just(".metadata.name".to_owned()),
        2 => select(sensible).prop_map(str::to_owned),
        1 => text(),
    ]
    .boxed()
}

fn health_rule() -> BoxedStrategy<Value> {
    let operator = select(vec!["In", "NotIn", "Exists", "DoesNotExist", "strange"]);
    let field = (path(), operator, prop::option::of(path()), text()).prop_map(|(key, operator, message, value)| {
        json!({"key": key, "operator": operator, "values": [value], "messagePath": message})
    });
    let side = (prop::collection::vec(field, 0..3), text(), text()).prop_map(|(fields, type_, status)| {
        json!({"matchFields": fields, "matchConditions": [{"type": type_, "status": status}]})
    });
    prop_oneof![
        Just(Value::Null),
        any_json().prop_map(|content| json!({"alwaysHealthy": content})),
        text().prop_map(|type_| json!({"singleConditionType": type_})),
        (side.clone(), side).prop_map(|(healthy, unhealthy)| {
            json!({"multiMatch": {"healthy": healthy, "unhealthy": unhealthy}})
        }),
    ]
    .boxed()
}

/// What a template renders: an object with kind and name, or, now and then, anything.
fn rendering(content: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let object = (content.clone(), content.clone(), any::<bool>()).prop_map(|(spec, status, is_secret)| {
        let (api_version, kind) = if is_secret { ("v1", "Secret") } else { ("test.run/v1", "Test") };
        let name = json!({"name": "x", "generateName": "x-"});
        json!({"apiVersion": api_version, "kind": kind, "metadata": name, "spec": spec, "data": status, "status": status})
    });
    prop_oneof![9 => object, 1 => content].boxed()
}

/// A template and what ytt makes of it, if it is one of ytt's.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    kind: &'static str,
    spec: Value,
    rendered: Value,
}

fn stamp(kinds: &'static [&'static str]) -> BoxedStrategy<Stamp> {
    let body = prop_oneof![
        3 => rendering(json_of(text())).prop_map(|object| json!({"template": object})),
        1 => rendering(any_json()).prop_map(|object| json!({"template": object})),
        4 => Just(json!({"ytt": "x"})),
    ];
    let lifecycle = select(vec!["mutable", "immutable", "tekton"]);
    let other = (text_or_tag(), text_or_tag(), any::<bool>()).prop_map(|(text, other, by_name)| {
        let choice = if by_name {
            json!({"name": other})
        } else {
            json!({"matchLabels": {text.clone(): other}})
        };
        let mut object = json!({"apiVersion": "v1", "kind": text});
        object
            .as_object_mut()
            .unwrap()
            .extend(choice.as_object().unwrap().clone());
        object
    });
    let other = prop_oneof![
        4 => Just(json!({"apiVersion": "v1", "kind": "Secret", "name": "$(workload.metadata.name)$"})),
        1 => other,
    ];
    let other = prop_oneof![3 => Just(None), 1 => other.prop_map(Some)];
    let value = (path(), text(), other).prop_map(|(key, value, object)| match object {
        Some(object) => json!({"key": key, "value": value, "object": object}),
        None => json!({"key": key, "value": value}),
    });
    let composed = value.clone().prop_recursive(6, 12, 3, |part| {
        let parts = prop::collection::vec(part.clone(), 0..3);
        prop_oneof![
            parts.clone().prop_map(|parts| json!({"allOf": parts})),
            parts.clone().prop_map(|parts| json!({"anyOf": parts})),
            part.prop_map(|part| json!({"not": part})),
        ]
    });
    let completion = prop_oneof![
        3 => value.clone(),
        1 => composed,
        1 => prop::collection::vec(value, 0..3).prop_map(|parts| json!(parts)),
    ];
    let matched = || prop_oneof![3 => Just(".metadata.name".to_owned()), 1 => path()];
    let done = prop_oneof![
        (matched(), matched()).prop_map(
            |(input, output)| json!({"observedMatches": [{"input": input, "output": output}]})
        ),
        (completion.clone(), prop::option::of(completion.clone())).prop_map(
            |(succeeded, failed)| {
                json!({"observedCompletion": {"succeeded": succeeded, "failed": failed}})
            }
        ),
        Just(json!({"alwaysSuccessful": true})),
        (path(), matched(), prop::option::of(completion.clone())).prop_map(
            |(context, object, failed)| json!({
                "inputsOnStatus": [{"templatingContextPath": context, "objectPath": object}], "failed": failed,
            })
        ),
    ];
    let keeps = (any::<i64>(), any::<i64>())
        .prop_map(|(failed, good)| json!({"maxFailedRuns": failed, "maxSuccessfulRuns": good}));
    (
        (select(kinds), body, lifecycle, health_rule()),
        (
            path(),
            path(),
            done,
            prop::option::of(completion),
            text(),
            prop::option::of(keeps),
        ),
        rendering(json_of(text())),
    )
        .prop_map(|(common, own, rendered)| {
            let (kind, mut spec, lifecycle, health) = common;
            let (one, other, done, failed, timeout, keeps) = own;
            spec["lifecycle"] = json!(lifecycle);
            for (field, value) in [("healthRule", health), ("retentionPolicy", json!(keeps))] {
                if !value.is_null() {
                    spec[field] = value;
                }
            }
            match kind {
                "ClusterSourceTemplate" => {
                    (spec["urlPath"], spec["revisionPath"]) = (json!(one), json!(other));
                }
                "ClusterImageTemplate" => spec["imagePath"] = json!(one),
                "ClusterConfigTemplate" => spec["configPath"] = json!(one),
                "ClusterDeploymentTemplate" | "ClusterDeploymentValidationTemplate" => {
                    let done = done.as_object().unwrap().clone();
                    spec.as_object_mut().unwrap().extend(done);
                }
                _ => {}
            }
            // The other kinds may have a rule.
            if kind != "ClusterDeploymentTemplate" && timeout.len() % 2 == 1 {
                spec.as_object_mut()
                    .unwrap()
                    .extend(done.as_object().unwrap().clone());
            }
            if kind == "ClusterDeploymentValidationTemplate" {
                (spec["failed"], spec["timeout"]) = (json!(failed), json!(timeout));
            }
            Stamp {
                kind,
                spec,
                rendered,
            }
        })
        .boxed()
}

/// What the cluster answers.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    failure: Option<(SubmitFailureKind, String)>,
    status: Value,
    /// What stands where.
    planted: Vec<(Vec<usize>, Value)>,
    sequence: u64,
    digest: u8,
    members: usize,
    write: Write,
    flags: [bool; 3],
}

fn live() -> BoxedStrategy<Live> {
    let kinds = select(vec![
        SubmitFailureKind::Forbidden,
        SubmitFailureKind::Rejected,
        SubmitFailureKind::List,
        SubmitFailureKind::Contested,
        SubmitFailureKind::Stale,
        SubmitFailureKind::Unavailable,
        SubmitFailureKind::TooLarge,
        SubmitFailureKind::TooOften,
        SubmitFailureKind::AnswerTooLarge,
    ]);
    let condition = (text(), text(), text(), any_json()).prop_map(|(type_, status, time, message)| {
        json!({"type": type_, "status": status, "lastTransitionTime": time, "message": message})
    });
    let says = (prop::collection::vec(condition, 0..3), any_json()).prop_map(|(conditions, generation)| {
        json!({"conditions": conditions, "observedGeneration": generation})
    });
    let often = |share| prop::bool::weighted(share);
    (
        prop::option::weighted(0.1, (kinds, text_or_tag())),
        prop_oneof![any_json(), says],
        prop::collection::vec(
            (prop::collection::vec(any::<usize>(), 1..4), any_json()),
            0..3,
        ),
        select(vec![0, 1, 2, u64::MAX]),
        0..3_u8,
        0..4_usize,
        select(vec![Write::Unchanged, Write::Created, Write::Patched]),
        [often(0.9), often(0.1), often(0.1)],
    )
        .prop_map(
            |(failure, status, planted, sequence, digest, members, write, flags)| Live {
                failure,
                status,
                planted,
                sequence,
                digest,
                members,
                write,
                flags,
            },
        )
        .boxed()
}

impl Live {
    /// An object that a rule reads beside the stamped one.
    fn found(&self) -> FoundObject {
        let object = match &self.failure {
            Some((SubmitFailureKind::Forbidden, message)) => Err(Unread::Refused(message.clone())),
            Some((SubmitFailureKind::Unavailable, message)) => {
                Err(Unread::Unavailable(message.clone()))
            }
            Some((SubmitFailureKind::Rejected, message)) => Err(Unread::Unserved(message.clone())),
            Some((SubmitFailureKind::List, message)) => {
                Err(Unread::Several(vec![message.clone(); 5]))
            }
            Some(_) => Err(Unread::Missing),
            None => Ok(Arc::new(
                json!({"kind": "Secret", "metadata": {"name": "x"}, "status": self.status}),
            )),
        };
        FoundObject {
            object,
            version: self.flags[0].then(|| self.sequence.to_string()),
        }
    }

    fn observed(&self, submission: &Submission, number: usize) -> Observed {
        let mut object = submission.object.clone();
        object["metadata"]["name"] = json!(format!("x-{number}"));
        object["metadata"]["uid"] = json!(format!("uid-{number}"));
        object["metadata"]["creationTimestamp"] = json!("2024-05-01T10:00:00Z");
        object["metadata"]["generation"] = json!(1);
        object["status"] = self.status.clone();
        for (at, strange) in &self.planted {
            plant(&mut object, at, strange);
        }
        let [is_known, terminating, is_gone] = self.flags;
        let digest = ["strange".to_owned(), submission.digest.clone()];
        Observed {
            sequence: self.sequence,
            is_known,
            digest: digest.get(usize::from(self.digest)).cloned(),
            state: Some(submission.digest.chars().take(32).collect()),
            version: self.sequence,
            terminating,
            is_gone,
            ..Observed::of(object)
        }
    }

    /// In the order in which the shell hands them over.
    fn family(&self, submission: &Submission) -> Vec<Observed> {
        let one = |number| self.observed(submission, number);
        let mut family: Vec<Observed> = (0..self.members).map(one).collect();
        family.sort_by(|a, b| a.order_key().cmp(&b.order_key()));
        family
    }

    fn observation(&self, submission: &Submission) -> Observation {
        if let Some((kind, message)) = &self.failure {
            let (kind, message) = (*kind, message.clone());
            return Observation::Failed(SubmitFailure { kind, message });
        }
        let (observed, write) = (self.observed(submission, 0), self.write);
        if submission.lifecycle.is_immutable() {
            let mut members = self.family(submission);
            if members.is_empty() {
                members.push(observed.clone());
            }
            Observation::Family {
                submitted: observed,
                members,
                write,
            }
        } else {
            Observation::Object { observed, write }
        }
    }
}

/// Puts something where the numbers lead to; they count round.
fn plant(value: &mut Value, at: &[usize], strange: &Value) {
    let Some((first, rest)) = at.split_first() else {
        *value = strange.clone();
        return;
    };
    let inner = match value {
        Value::Object(fields) if !fields.is_empty() => {
            let place = first % fields.len();
            fields.values_mut().nth(place)
        }
        Value::Array(items) if !items.is_empty() => {
            let place = first % items.len();
            items.get_mut(place)
        }
        _ => None,
    };
    match inner {
        Some(inner) => plant(inner, rest, strange),
        None => *value = strange.clone(),
    }
}

/// Everything that one walk after another is made from.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    spec: Value,
    status: Value,
    /// Of the blueprint, in order.
    stamps: Vec<Stamp>,
    /// One answer after the other, from the start again.
    lives: Vec<Live>,
    /// What somebody writes into the status of the last walk but one.
    edit: (Vec<usize>, Value),
}

fn case(stamps: BoxedStrategy<Vec<Stamp>>) -> BoxedStrategy<Case> {
    let params = prop::collection::vec((text(), any_json()), 0..3).prop_map(|params| {
        let param = |(name, value)| json!({"name": name, "value": value});
        Value::from(params.into_iter().map(param).collect::<Vec<_>>())
    });
    let spec = (params, any_json(), any_json()).prop_map(
        |(params, source, env)| json!({"params": params, "source": source, "env": env, "inputs": {"a": source}}),
    );
    let spec = prop_oneof![19 => spec, 1 => any_json()];
    let edit = (prop::collection::vec(any::<usize>(), 1..6), any_json());
    (
        spec,
        any_json(),
        stamps,
        prop::collection::vec(live(), 1..6),
        edit,
    )
        .prop_map(|(spec, status, stamps, lives, edit)| Case {
            spec,
            status,
            stamps,
            lives,
            edit,
        })
        .boxed()
}

pub(crate) fn supply_chain() -> BoxedStrategy<Case> {
    const KINDS: &[&str] = &[
        "ClusterSourceTemplate",
        "ClusterImageTemplate",
        "ClusterConfigTemplate",
        "ClusterTemplate",
    ];
    case(prop::collection::vec(stamp(KINDS), 3).boxed())
}

pub(crate) fn delivery() -> BoxedStrategy<Case> {
    let stamps = (
        stamp(&["ClusterSourceTemplate"]),
        stamp(&["ClusterDeploymentTemplate"]),
        stamp(&["ClusterDeploymentValidationTemplate"]),
        stamp(&["ClusterTemplate", "ClusterSourceTemplate"]),
    );
    case(stamps.prop_map(|(a, b, c, d)| vec![a, b, c, d]).boxed())
}

pub(crate) fn runnable() -> BoxedStrategy<Case> {
    case(prop::collection::vec(stamp(&["ClusterRunTemplate"]), 2).boxed())
}

/// What the walks asked the cluster to hold, by the kind of template.
pub(crate) type Submitted = BTreeSet<&'static str>;

impl Case {
    /// Of a step; a Runnable's has a name of its own.
    fn stamp(&self, step: &str) -> &Stamp {
        let index = NAMES.iter().position(|name| *name == step).unwrap_or(0);
        &self.stamps[index]
    }

    fn live(&self, answered: usize) -> &Live {
        &self.lives[answered % self.lives.len()]
    }

    /// Answers every question of one walk; what was submitted.
    fn answer(&self, walk: &mut dyn AskFeed, answered: &mut usize) -> Vec<Submission> {
        let mut submitted = Vec::new();
        for _ in 0..MOST_ASKED {
            *answered += 1;
            let live = self.live(*answered);
            match walk.next() {
                Ask::Render(call) => {
                    walk.record_rendered(Ok(self.stamp(call.resource.as_str()).rendered.clone()));
                }
                Ask::Look(submission) => walk.record_looked(match &live.failure {
                    Some((kind, message)) => Err(SubmitFailure {
                        kind: *kind,
                        message: message.clone(),
                    }),
                    None => Ok(live.family(&submission)),
                }),
                Ask::Submit(submission) => {
                    assert!(submission.object["metadata"]["namespace"] == "ns");
                    walk.record_observed(live.observation(&submission));
                    submitted.push(submission);
                }
                Ask::Read(query) => {
                    assert_eq!(query.namespace, "ns");
                    walk.record_read(live.found());
                }
                Ask::Done => return submitted,
            }
        }
        panic!("a walk over four steps asks {MOST_ASKED} times");
    }

    /// The status that each walk finds: first any, then what the walk before has said, in the end that with a change.
    fn statuses(&self, walk: impl FnMut(&Value, usize) -> Option<Value>) {
        const WALKS: usize = 5;
        let (mut walk, mut status) = (walk, self.status.clone());
        for number in 0..WALKS {
            if number == WALKS - 1 {
                plant(&mut status, &self.edit.0, &self.edit.1);
            }
            match walk(&status, number) {
                Some(said) => status = said,
                None => return,
            }
        }
    }

    /// Walks over a supply chain or a delivery.
    pub(crate) fn walk(&self, family: Family) -> Submitted {
        let scenario = Scenario::new("{kind: Workload, metadata: {name: app}}");
        let (templates, blueprint) = (self.templates(), self.blueprint(family));
        let (mut submitted, mut answered) = (Submitted::new(), 0);
        self.statuses(|status, number| {
            let owner = self.owner(family.owner_kind(), status);
            let owner = Owner::parse(family, Arc::new(owner)).ok()?;
            let now = scenario.now + SignedDuration::from_mins(i64::try_from(number).unwrap());
            let mut walk =
                Realization::new(&owner, &blueprint, &templates, now, scenario.key.clone());
            let submissions = self.answer(&mut walk, &mut answered);
            let kind = |one: &Submission| self.stamp(one.resource.as_str()).kind;
            submitted.extend(submissions.iter().map(kind));
            let conclusion = walk.conclude(&self.known(&submissions));
            let kind = [SubmitFailureKind::Forbidden, SubmitFailureKind::Unavailable][number % 2];
            let failure = SubmitFailure {
                kind,
                message: "stays".to_owned(),
            };
            let stay: Vec<FailedRemoval> = conclusion
                .removals()
                .iter()
                .map(|it| (it.clone(), failure.clone()))
                .collect();
            let outcome = conclusion.report(&stay);
            let conditions = outcome.status["conditions"].as_array();
            assert!(conditions.is_some_and(|conditions| conditions.len() >= 4));
            Some(outcome.status)
        });
        submitted
    }

    /// Walks over a Runnable, whose template is another one from the third walk on.
    pub(crate) fn run(&self) -> Submitted {
        let scenario = Scenario::new("{kind: Workload, metadata: {name: app}}");
        let (mut submitted, mut answered) = (Submitted::new(), 0);
        self.statuses(|status, number| {
            let stamp = &self.stamps[usize::from(number > 1)];
            let template = self.run_template(stamp);
            let mut runnable = self.owner("Runnable", status);
            runnable["spec"]["runTemplateRef"] = json!({"name": "runs"});
            let runnable = Runnable::parse(Arc::new(runnable)).ok()?;
            let now = scenario.now + SignedDuration::from_mins(i64::try_from(number).unwrap());
            let selected = Ok(Some(self.live(number).status.clone()));
            let mut run = Run::new(
                &runnable,
                &template,
                selected.map(|found| found.map(std::sync::Arc::new)),
                now,
                scenario.key.clone(),
            );
            if !self.answer(&mut run, &mut answered).is_empty() {
                submitted.insert(stamp.kind);
            }
            let outcome = run.conclude().report(&[]);
            assert!(outcome.status["conditions"].is_array());
            Some(outcome.status)
        });
        submitted
    }

    fn run_template(&self, stamp: &Stamp) -> RunTemplate {
        let mut template = json!({"apiVersion": "carto.run/v1alpha1", "kind": stamp.kind,
            "metadata": {"name": "runs"}, "spec": stamp.spec});
        let other = self.edit.1.as_str().unwrap_or(".status");
        template["spec"]["outputs"] = json!({"one": ".metadata.name", "other": other});
        RunTemplate::compile(&template).unwrap()
    }

    fn owner(&self, kind: &str, status: &Value) -> Value {
        let mut owner = json!({
            "apiVersion": "carto.run/v1alpha1", "kind": kind, "spec": self.spec, "status": status,
            "metadata": {"namespace": "ns", "name": "app", "uid": "u", "generation": 1, "labels": {"type": "web"}},
        });
        if !owner["spec"].is_object() {
            owner["spec"] = json!({});
        }
        owner
    }

    fn templates(&self) -> Templates {
        let compiled = self.stamps.iter().zip(NAMES).map(|(stamp, name)| {
            let object = json!({"apiVersion": "carto.run/v1alpha1", "kind": stamp.kind, "metadata": {"name": name},
                "spec": stamp.spec});
            let state = match Template::compile(&object) {
                Ok(template) => TemplateState::Found(Arc::new(template)),
                Err(error) => TemplateState::Unreadable(error.to_string()),
            };
            ((stamp.kind.to_owned(), name.to_owned()), state)
        });
        Templates(compiled.collect())
    }

    /// The first step gives to the second, which, if it deploys, gives to the third; the last one stands alone.
    fn blueprint(&self, family: Family) -> Blueprint {
        let mut resources: Vec<Value> = self
            .stamps
            .iter()
            .zip(NAMES)
            .map(|(stamp, name)| json!({"name": name, "templateRef": {"kind": stamp.kind, "name": name}}))
            .collect();
        for (giver, taker) in [(0, 1), (1, 2)] {
            let inputs = match (self.stamps[giver].kind, self.stamps[taker].kind) {
                (_, "ClusterDeploymentTemplate" | "ClusterDeploymentValidationTemplate") => {
                    "deployment"
                }
                _ if taker == 2 => continue,
                ("ClusterSourceTemplate", _) => "sources",
                ("ClusterImageTemplate", _) => "images",
                ("ClusterConfigTemplate", _) => "configs",
                _ => continue,
            };
            resources[taker][inputs] = match inputs {
                "deployment" => json!({"resource": NAMES[giver]}),
                _ => json!([{"name": "in", "resource": NAMES[giver]}]),
            };
        }
        let blueprint = json!({"apiVersion": "carto.run/v1alpha1", "kind": family.blueprint_kind(),
            "metadata": {"name": "chain", "generation": 1}, "spec": {"selector": {"type": "web"}, "resources": resources}});
        Blueprint::compile(family, &blueprint).unwrap()
    }

    /// What the shell's caches hold: what was submitted, and the same of a step that is no more.
    fn known(&self, submissions: &[Submission]) -> Vec<KnownObject> {
        let known = submissions
            .iter()
            .enumerate()
            .flat_map(|(number, submission)| {
                let observed = self.live(number).observed(submission, number);
                let text = |at: &str| {
                    observed
                        .object
                        .pointer(at)
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_owned()
                };
                let object = ObjectRef {
                    api_version: text("/apiVersion"),
                    kind: text("/kind"),
                    namespace: text("/metadata/namespace"),
                    name: text("/metadata/name"),
                    qualified_resource: None,
                    uid: Some(text("/metadata/uid")),
                };
                let labels = &submission.object["metadata"]["labels"];
                let mut labels: BTreeMap<String, String> =
                    serde_json::from_value(labels.clone()).unwrap_or_default();
                let known = KnownObject {
                    object,
                    labels: labels.clone(),
                    terminating: observed.terminating,
                };
                labels.insert("carto.run/resource-name".to_owned(), "gone".to_owned());
                [known.clone(), KnownObject { labels, ..known }]
            });
        known.collect()
    }
}

/// Of the steps.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
