//! One walk of the real engine over a world; every state in between is one in which the process may die.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use realizer::{
    Blueprint, Family, Observation, Observed, Owner, Precondition, Realization, Retry, Step,
    Submission, SubmitFailure, SubmitFailureKind, Template, TemplateSource, TemplateState, Write,
};
use serde_json::{Value, json};

use crate::world::{Check, Environment, Move, Phase, Run, Told, World};

/// How the two validations stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    Sequence,
    Parallel,
}

/// Something planted, to see whether it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The engine is not told that the environment has a record when something else is to go in.
    LockIgnored,
    /// Status says of running validations that they ended.
    StatusTooNew,
    /// A run is shown as succeeded as soon as it is there.
    RunsSucceedAtOnce,
    /// Any run is shown as the one that was asked for.
    OldRunsCount,
    /// A held environment is shown with the revision that waits.
    WaitingIsHandedOn,
    /// Nobody walks again when asked to.
    NeverAgain,
}

/// What a walk came to.
pub(crate) struct Walked {
    /// After each action that changed the world, in order; the last one without the status.
    pub(crate) cuts: Vec<World>,
    /// With the status written.
    pub(crate) end: World,
    pub(crate) again: Option<Duration>,
    pub(crate) retries: bool,
}

/// Everything that does not change.
pub(crate) struct Shell {
    blueprint: Blueprint,
    templates: Templates,
    pub(crate) fault: Option<Fault>,
    /// By revision: the digest of the rendering of the environment, as the engine has written it down.
    rendered: RefCell<BTreeMap<u8, String>>,
    /// By step and revision: the digest of what was submitted for it.
    digests: RefCell<BTreeMap<(String, u8), String>>,
}

/// By name.
struct Templates(BTreeMap<&'static str, Arc<Template>>);

impl TemplateSource for Templates {
    fn template(&self, _: &str, name: &str) -> TemplateState {
        let template = self.0.get(name).expect("each step has its template");
        TemplateState::Found(Arc::clone(template))
    }
}

fn templates() -> Templates {
    let mut templates = Templates(BTreeMap::new());
    let mut add =
        |name, kind: &str, api_version: &str, stamped: &str, fields: Value, spec: Value| {
            let mut template =
                json!({"apiVersion": api_version, "kind": stamped, "metadata": {"name": name}});
            merge(&mut template, &fields);
            let mut all = json!({"template": template});
            merge(&mut all, &spec);
            let object = json!({"kind": kind, "metadata": {"name": name}, "spec": all});
            templates
                .0
                .insert(name, Arc::new(Template::compile(&object).unwrap()));
        };
    add(
        "fetch",
        "ClusterSourceTemplate",
        "test.run/v1",
        "Source",
        json!({"spec": {"url": "u", "revision": "$(params.revision)$"}}),
        json!({"urlPath": ".spec.url", "revisionPath": ".spec.revision",
            "params": [{"name": "revision", "default": 0}]}),
    );
    add(
        "deploy",
        "ClusterDeploymentTemplate",
        "test.run/v1",
        "App",
        json!({"spec": {"revision": "$(deployment.revision)$"}}),
        json!({"observedCompletion": {"succeeded": {"key": ".status.phase", "value": "Done"},
            "failed": {"key": ".status.phase", "value": "Failed"}}}),
    );
    // Nothing of the deployment is read: only the tie to the arrival makes a new run.
    add(
        "run",
        "ClusterDeploymentValidationTemplate",
        "test.run/v1",
        "Run",
        json!({}),
        json!({"lifecycle": "tekton"}),
    );
    add(
        "check",
        "ClusterDeploymentValidationTemplate",
        "test.run/v1",
        "Check",
        json!({"spec": {"revision": "$(deployment.revision)$"}}),
        json!({"observedMatches": [{"input": ".spec.revision", "output": ".status.revision"}],
            "failed": {"key": ".status.phase", "value": "Failed"}}),
    );
    add(
        "promote",
        "ClusterTemplate",
        "v1",
        "ConfigMap",
        json!({"data": {"revision": "$(sources.a.revision)$"}}),
        json!({}),
    );
    templates
}

fn merge(into: &mut Value, fields: &Value) {
    for (key, value) in fields.as_object().unwrap() {
        into[key] = value.clone();
    }
}

impl Shell {
    pub(crate) fn new(topology: Topology) -> Self {
        let (check_takes, promote_takes) = match topology {
            Topology::Sequence => ("run", json!([{"name": "a", "resource": "check"}])),
            Topology::Parallel => (
                "deploy",
                json!([{"name": "a", "resource": "check"}, {"name": "b", "resource": "run"}]),
            ),
        };
        let step = |name: &str, kind: &str| json!({"name": name, "templateRef": {"kind": kind, "name": name}});
        let mut resources = [
            step("fetch", "ClusterSourceTemplate"),
            step("deploy", "ClusterDeploymentTemplate"),
            step("run", "ClusterDeploymentValidationTemplate"),
            step("check", "ClusterDeploymentValidationTemplate"),
            step("promote", "ClusterTemplate"),
        ];
        resources[1]["deployment"] = json!({"resource": "fetch"});
        resources[2]["deployment"] = json!({"resource": "deploy"});
        resources[3]["deployment"] = json!({"resource": check_takes});
        resources[4]["sources"] = promote_takes;
        let blueprint = json!({"metadata": {"name": "delivery"}, "spec": {"resources": resources, "selector": {"a": "b"}}});
        Self {
            blueprint: Blueprint::compile(Family::Delivery, &blueprint).unwrap(),
            templates: templates(),
            fault: None,
            rendered: RefCell::default(),
            digests: RefCell::default(),
        }
    }

    /// One walk; with `moved`, that happens before the action of this number.
    pub(crate) fn walk(&self, world: &World, moved: Option<(usize, Move)>) -> Walked {
        let mut world = world.clone();
        let owner = Self::owner(&world);
        let late = world
            .environment
            .as_ref()
            .is_some_and(|environment| environment.late);
        let now = Timestamp::from_second(if late { 7200 } else { 60 }).unwrap();
        let mut realization = Realization::new(&owner, &self.blueprint, &self.templates, now);
        let mut cuts = Vec::new();
        for action in 0.. {
            let step = realization.next_step();
            if let Some((_, next)) = moved.filter(|(before, _)| *before == action) {
                world = world.after(next);
                cuts.push(world.clone());
            }
            match step {
                Step::Render(call) => panic!("nothing here uses ytt: {call:?}"),
                Step::Look(submission) => {
                    let found = self.look(&world, &submission).into_iter().collect();
                    realization.record_looked(Ok(found));
                }
                Step::Submit(submission) => {
                    let before = world.clone();
                    let observation = self.submit(&mut world, &submission);
                    if world != before {
                        cuts.push(world.clone());
                    }
                    realization.record_observed(observation);
                }
                Step::Done => break,
            }
        }
        let conclusion = realization.conclude(&[]);
        assert!(conclusion.removals().is_empty());
        let outcome = conclusion.report(&[]);
        let mut end = world;
        end.told = self.told(&outcome.status, &end);
        Walked {
            cuts,
            end,
            again: outcome
                .again
                .filter(|_| self.fault != Some(Fault::NeverAgain)),
            retries: outcome.retry != Retry::AwaitChange,
        }
    }

    fn owner(world: &World) -> Owner {
        let since = "1970-01-01T00:00:00Z";
        let told = |resource: &str, told: Told| json!({"resource": resource, "verdict": format!("{told:?}"), "arrival": 1, "since": since});
        let environments = world.told.map(|[run, check]| {
            json!([{"resource": "deploy", "validations": [told("run", run), told("check", check)],
                "deployed": {"revision": "any", "url": "u", "arrival": 1, "since": since}}])
        });
        let owner = json!({
            "metadata": {"namespace": "ns", "name": "app", "uid": "u", "labels": {"a": "b"}},
            "spec": {"params": [{"name": "revision", "value": world.pushed}]},
            "status": {"environments": environments, "resources": world.told.map(|_| json!([{"name": "deploy",
                "stampedRef": {"apiVersion": "test.run/v1", "kind": "App", "namespace": "ns", "name": "app"}}]))},
        });
        Owner::parse(Family::Delivery, Arc::new(owner)).unwrap()
    }

    /// What a status says of the arrival that is in the environment: 2 if this walk put it there, else 1.
    fn told(&self, status: &Value, world: &World) -> Option<[Told; 2]> {
        let told = &status["environments"][0];
        let deployed = told["deployed"]["revision"].as_str()?;
        if deployed == "any" {
            // As it was read: nothing was learned about the environment.
            return world.told;
        }
        let live = world.environment.as_ref()?;
        if deployed != live.revision.to_string() && self.fault.is_none() {
            return None;
        }
        let verdict = |name: &str| {
            let validations = told["validations"].as_array().unwrap();
            let told = validations
                .iter()
                .find(|told| told["resource"] == name)
                .unwrap();
            let verdict = match told["verdict"].as_str().unwrap() {
                "Pending" => Told::Pending,
                "Running" => Told::Running,
                "Succeeded" => Told::Succeeded,
                "Failed" => Told::Failed,
                "TimedOut" => Told::TimedOut,
                "Skipped" => Told::Skipped,
                other => panic!("unknown verdict {other}"),
            };
            if self.fault == Some(Fault::StatusTooNew) && !verdict.ends() {
                return Told::Succeeded;
            }
            verdict
        };
        Some([verdict("run"), verdict("check")])
    }

    fn look(&self, world: &World, submission: &Submission) -> Option<Observed> {
        match submission.resource.as_str() {
            "deploy" => world.environment.as_ref().map(|live| {
                let mut observed = self.observed_environment(live);
                let annotations = &mut observed.object["metadata"]["annotations"];
                if self.fault == Some(Fault::LockIgnored) && live.revision != world.pushed {
                    *annotations = json!({});
                }
                if self.fault == Some(Fault::WaitingIsHandedOn) && live.revision != world.pushed {
                    let mut record = self.record(live);
                    record["revision"] = json!(world.pushed);
                    *annotations = json!({"carto.run/environment": record.to_string()});
                }
                observed
            }),
            "run" => self.observed_run(world, submission),
            "check" => Self::observed_check(world, submission),
            other => panic!("{other} is not looked at"),
        }
    }

    fn submit(&self, world: &mut World, submission: &Submission) -> Observation {
        match submission.resource.as_str() {
            "fetch" if world.readable => object(submission, Write::Unchanged),
            "fetch" => Observation::Object {
                observed: observed(
                    json!({"apiVersion": "test.run/v1", "kind": "Source"}),
                    "any",
                    1,
                ),
                write: Write::Unchanged,
            },
            "deploy" => self.submit_environment(world, submission),
            "run" => self.submit_run(world, submission),
            "check" => self.submit_check(world, submission),
            "promote" => {
                world.promoted = number(&submission.object["data"]["revision"]);
                object(submission, Write::Patched)
            }
            other => panic!("unknown step {other}"),
        }
    }

    /// What the environment's object says of itself.
    fn record(&self, live: &Environment) -> Value {
        let rendered = self.rendered.borrow();
        let rendered = rendered
            .get(&live.revision)
            .map_or("unknown", String::as_str);
        json!({"arrival": 1, "revision": live.revision, "url": "u", "rendered": rendered, "started": "1970-01-01T00:01:00Z"})
    }

    fn submit_environment(&self, world: &mut World, submission: &Submission) -> Observation {
        let annotation = &submission.object["metadata"]["annotations"]["carto.run/environment"];
        let record: Value = serde_json::from_str(annotation.as_str().unwrap()).unwrap();
        let revision = number(&submission.object["spec"]["revision"]);
        self.rendered
            .borrow_mut()
            .insert(revision, record["rendered"].as_str().unwrap().to_owned());
        let live = world.environment.as_ref();
        let there = live.map_or(Precondition::Absent, |live| {
            Precondition::Version(version_of(live))
        });
        let write = match live {
            Some(live) if live.revision == revision => {
                assert_eq!(
                    record,
                    self.record(live),
                    "what is there is rendered as it is there"
                );
                Write::Unchanged
            }
            _ if submission.precondition != there && self.fault.is_none() => {
                return Observation::Failed(SubmitFailure {
                    kind: SubmitFailureKind::Stale,
                    message: "patch: the object has been modified".to_owned(),
                });
            }
            Some(_) => Write::Patched,
            None => Write::Created,
        };
        if write != Write::Unchanged {
            let expected = if write == Write::Created { 1 } else { 2 };
            assert!(
                self.fault.is_some() || record["arrival"] == expected,
                "{record}"
            );
            world.deploy(revision);
        }
        let mut observed = self.observed_environment(world.environment.as_ref().unwrap());
        observed.object["metadata"]["annotations"]["carto.run/environment"] = annotation.clone();
        Observation::Object { observed, write }
    }

    fn observed_environment(&self, live: &Environment) -> Observed {
        let phase = format!("{:?}", live.phase);
        let object = json!({
            "apiVersion": "test.run/v1", "kind": "App",
            "metadata": {"namespace": "ns", "name": "app", "uid": "e", "generation": live.revision,
                "annotations": {"carto.run/environment": self.record(live).to_string()}},
            "spec": {"revision": live.revision},
            "status": {"observedGeneration": live.revision, "phase": phase},
        });
        observed(object, "any", version_of(live))
    }

    /// What was submitted for what is in the environment has one digest, and nothing else has it.
    fn digest(&self, world: &World, submission: &Submission) -> String {
        let revision = world.environment.as_ref().unwrap().revision;
        let key = (submission.resource.to_string(), revision);
        let mut digests = self.digests.borrow_mut();
        let others = |(known, digest): (&(String, u8), &String)| {
            *known != key && known.0 == key.0 && *digest == submission.digest
        };
        assert!(!digests.iter().any(others), "two arrivals share a digest");
        digests.insert(key, submission.digest.clone());
        submission.digest.clone()
    }

    fn submit_run(&self, world: &mut World, submission: &Submission) -> Observation {
        self.digest(world, submission);
        let any = self.fault == Some(Fault::OldRunsCount);
        let write = match &world.run {
            Some(run) if run.current || any => Write::Unchanged,
            _ => Write::Created,
        };
        if write == Write::Created {
            world.run = Some(Run {
                current: true,
                phase: Phase::Working,
            });
        }
        let submitted = self.observed_run(world, submission).unwrap();
        Observation::Family {
            members: vec![submitted.clone()],
            submitted,
            write,
        }
    }

    fn observed_run(&self, world: &World, submission: &Submission) -> Option<Observed> {
        let run = world.run.as_ref()?;
        let phase = if self.fault == Some(Fault::RunsSucceedAtOnce) {
            Phase::Done
        } else {
            run.phase
        };
        let status = match phase {
            Phase::Working => "Unknown",
            Phase::Done => "True",
            Phase::Failed => "False",
        };
        let object = json!({
            "apiVersion": "test.run/v1", "kind": "Run",
            "metadata": {"namespace": "ns", "name": "run-1", "uid": "r"},
            "status": {"conditions": [{"type": "Succeeded", "status": status}]},
        });
        let any = self.fault == Some(Fault::OldRunsCount);
        let digest = if run.current || any {
            submission.digest.as_str()
        } else {
            "old"
        };
        Some(observed(object, digest, 1))
    }

    fn submit_check(&self, world: &mut World, submission: &Submission) -> Observation {
        self.digest(world, submission);
        let write = match &world.check {
            Some(check) if check.current => Write::Unchanged,
            Some(_) => Write::Patched,
            None => Write::Created,
        };
        if write != Write::Unchanged {
            world.check = Some(Check {
                current: true,
                seen: false,
                failed: world.check.as_ref().is_some_and(|check| check.failed),
            });
        }
        let observed = Self::observed_check(world, submission).unwrap();
        Observation::Object { observed, write }
    }

    /// Its status may be about an older generation, and about an older failure.
    fn observed_check(world: &World, submission: &Submission) -> Option<Observed> {
        let check = world.check.as_ref()?;
        let revision = if check.current {
            world.environment.as_ref().unwrap().revision
        } else {
            0
        };
        let generation = 1 + u8::from(check.current);
        let seen = generation - u8::from(!check.seen);
        let reached = if check.seen && !check.failed {
            revision
        } else {
            99
        };
        let phase = if check.failed { "Failed" } else { "Fine" };
        let object = json!({
            "apiVersion": "test.run/v1", "kind": "Check",
            "metadata": {"namespace": "ns", "name": "check", "uid": "c", "generation": generation},
            "spec": {"revision": revision},
            "status": {"observedGeneration": seen, "revision": reached, "phase": phase},
        });
        let digest = if check.current {
            submission.digest.as_str()
        } else {
            "old"
        };
        Some(observed(object, digest, 1))
    }
}

fn version_of(live: &Environment) -> u64 {
    u64::from(live.revision) * 10 + live.phase as u64 + 1
}

fn number(value: &Value) -> u8 {
    u8::try_from(value.as_u64().unwrap()).unwrap()
}

fn object(submission: &Submission, write: Write) -> Observation {
    Observation::Object {
        observed: observed(submission.object.clone(), &submission.digest, 1),
        write,
    }
}

fn observed(object: Value, digest: &str, version: u64) -> Observed {
    Observed {
        sequence: 1,
        digest: Some(digest.to_owned()),
        version,
        ..Observed::of(object)
    }
}
