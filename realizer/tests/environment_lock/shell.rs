//! One walk of the real engine over a world; every state in between is one in which the process may die.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_types::TemplateKind;
use jiff::Timestamp;
use realizer::{
    Ask, AskFeed, Blueprint, Family, Observation, Observed, Outcome, Owner, Precondition,
    Realization, Retry, StatusKey, Submission, SubmitFailure, SubmitFailureKind, Template,
    TemplateSource, TemplateState, Write,
};
use serde_json::{Value, json};

use crate::world::{Check, Deployed, EVIL, Environment, Move, Phase, Run, Status, Told, World};

/// How the two validations stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    Sequence,
    Parallel,
}

/// Something planted, to see whether it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Status calls every environment free.
    LockIgnored,
    /// Status says of running validations that they ended.
    StatusTooNew,
    /// A run is shown as succeeded as soon as it is there.
    RunsSucceedAtOnce,
    /// Any run is shown as the one that was asked for.
    OldRunsCount,
    /// Status says of a held environment that the revision that waits is in it.
    WaitingIsHandedOn,
    /// What the object says of itself is taken for what status says.
    ForgeryBelieved,
    /// What status announces is taken for deployed as soon as the object says so.
    AnnouncedIsDeployed,
    /// An object that says nothing of itself is taken for free, whatever status says.
    MissingIsFree,
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

/// What a walk came to, in the engine's words.
struct Ran {
    cuts: Vec<World>,
    end: World,
    /// What the environment's object said of itself.
    found: Option<u8>,
    outcome: Outcome,
    status: Value,
}

/// What is to be known in a walk.
struct During {
    /// What is in the environment by this walk, so that validations are tied to it.
    tied: Option<u8>,
    found: Option<u8>,
}

/// Everything that does not change.
pub(crate) struct Shell {
    blueprint: Blueprint,
    templates: Templates,
    pub(crate) fault: Option<Fault>,
    /// By revision: the digest of the rendering of the environment, as the engine writes it down.
    rendered: BTreeMap<u8, String>,
    /// By what an object says: the digest of that in status.
    disregarded: BTreeMap<u8, String>,
    /// By step and revision: the digest of what was submitted for it.
    digests: RefCell<BTreeMap<(String, u8), String>>,
}

/// By name.
struct Templates(BTreeMap<&'static str, Arc<Template>>);

impl TemplateSource for Templates {
    fn template(&self, _: TemplateKind, name: &str) -> TemplateState {
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
        let mut shell = Self {
            blueprint: Blueprint::compile(Family::Delivery, &blueprint).unwrap(),
            templates: templates(),
            fault: None,
            rendered: BTreeMap::new(),
            disregarded: BTreeMap::new(),
            digests: RefCell::default(),
        };
        for pushed in 1..10 {
            let new = World {
                pushed,
                ..World::NEW
            };
            let status = shell.run(&new, None).status;
            let announced = &status["environments"][0]["arriving"]["record"];
            let announced: Value = serde_json::from_str(announced.as_str().unwrap()).unwrap();
            let rendered = announced["rendered"].as_str().unwrap();
            shell.rendered.insert(pushed, rendered.to_owned());
        }
        for said in (0..10).chain([EVIL]) {
            let digest = shell.disregard(said);
            shell.disregarded.insert(said, digest);
        }
        shell
    }

    /// One walk; with `moved`, that happens before the action of this number.
    pub(crate) fn walk(&self, world: &World, moved: Option<(usize, Move)>) -> Walked {
        let Ran {
            cuts,
            mut end,
            found,
            outcome,
            status,
        } = self.run(world, moved);
        end.status = self.told(&status, world, found);
        Walked {
            cuts,
            end,
            again: outcome
                .again
                .filter(|_| self.fault != Some(Fault::NeverAgain)),
            retries: outcome.retry != Retry::AwaitChange,
        }
    }

    fn run(&self, world: &World, moved: Option<(usize, Move)>) -> Ran {
        let mut world = world.clone();
        let owner = self.owner(&world);
        let late = (world.status.deployed.as_ref()).is_some_and(|deployed| deployed.late);
        let now = Timestamp::from_second(if late { 7200 } else { 60 }).unwrap();
        let mut realization = Realization::new(
            &owner,
            &self.blueprint,
            &self.templates,
            now,
            StatusKey::NONE,
        );
        let mut cuts = Vec::new();
        let mut walk = During {
            tied: (self.as_told(&world).deployed).map(|deployed| deployed.revision),
            found: None,
        };
        for action in 0.. {
            let step = realization.next();
            if let Some((_, next)) = moved.filter(|(before, _)| *before == action) {
                world = world.after(next);
                cuts.push(world.clone());
            }
            match step {
                Ask::Render(call) => panic!("nothing here uses ytt: {call:?}"),
                Ask::Read(query) => panic!("nothing here reads other objects: {query:?}"),
                Ask::Look(submission) => {
                    let found = self.look(&world, &submission, &mut walk);
                    realization.record_looked(Ok(found.into_iter().collect()));
                }
                Ask::Submit(submission) => {
                    let before = world.clone();
                    let observation = self.submit(&mut world, &submission, &mut walk);
                    if world != before {
                        cuts.push(world.clone());
                    }
                    realization.record_observed(observation);
                }
                Ask::Done => break,
            }
        }
        let conclusion = realization.conclude(&[]);
        assert!(conclusion.removals().is_empty());
        let outcome = conclusion.report(&[]);
        Ran {
            cuts,
            end: world,
            found: walk.found,
            status: outcome.status.clone(),
            outcome,
        }
    }

    /// What the object of an environment says if it holds this.
    fn text(&self, revision: u8) -> String {
        let rendered = self
            .rendered
            .get(&revision)
            .map_or("forged", String::as_str);
        format!(
            r#"{{"arrival":{},"revision":{revision},"url":"u","rendered":"{rendered}","started":"{SINCE}"}}"#,
            arrival(revision)
        )
    }

    fn owner(&self, world: &World) -> Owner {
        let Status {
            deployed,
            arriving,
            disregarded,
        } = self.as_told(world);
        let revision = |revision: u8| {
            json!({"revision": revision.to_string(), "url": "u", "arrival": arrival(revision), "since": SINCE,
                "record": self.text(revision)})
        };
        let environments = (deployed.is_some() || arriving.is_some()).then(|| {
            let validations = deployed.iter().flat_map(|deployed| {
                let told = ["run", "check"].into_iter().zip(deployed.told);
                told.map(|(resource, told)| {
                    let told = match self.fault {
                        Some(Fault::LockIgnored) => Told::Succeeded,
                        _ => told,
                    };
                    json!({"resource": resource, "verdict": format!("{told:?}"), "since": SINCE,
                        "arrival": arrival(deployed.revision)})
                })
            });
            let mut told = deployed.as_ref().map(|deployed| revision(deployed.revision));
            if let Some(told) = told.as_mut().filter(|_| self.fault == Some(Fault::WaitingIsHandedOn)) {
                let record = told["record"].as_str().unwrap();
                let mut record: Value = serde_json::from_str(record).unwrap();
                record["revision"] = json!(world.pushed);
                told["record"] = json!(record.to_string());
            }
            json!([{"resource": "deploy", "validations": validations.collect::<Vec<_>>(), "deployed": told,
                "arriving": arriving.map(revision),
                "disregarded": disregarded.map(|said| &self.disregarded[&said])}])
        });
        let owner = json!({
            "metadata": {"namespace": "ns", "name": "app", "uid": "u", "labels": {"a": "b"}},
            "spec": {"params": [{"name": "revision", "value": world.pushed}]},
            "status": {"environments": environments, "resources": deployed.map(|_| json!([{"name": "deploy",
                "stampedRef": {"apiVersion": "test.run/v1", "kind": "App", "namespace": "ns", "name": "app"}}]))},
        });
        Owner::parse(Family::Delivery, Arc::new(owner)).unwrap()
    }

    /// The status that the engine reads.
    fn as_told(&self, world: &World) -> Status {
        let mut status = world.status.clone();
        let Some(environment) = &world.environment else {
            return status;
        };
        match (self.fault, environment.said) {
            (Some(Fault::ForgeryBelieved), said) if said != 0 => {
                if let Some(deployed) = &mut status.deployed {
                    deployed.revision = said;
                }
            }
            (Some(Fault::AnnouncedIsDeployed), said) if status.arriving == Some(said) => {
                status.deployed = status.arriving.take().map(|revision| Deployed {
                    revision,
                    late: false,
                    told: [Told::Pending; 2],
                });
            }
            (Some(Fault::MissingIsFree), 0) => {
                status = World::NEW.status;
            }
            _ => {}
        }
        status
    }

    /// The digest of what an object says, by an engine that is shown it.
    fn disregard(&self, said: u8) -> String {
        let world = World {
            status: Status {
                deployed: Some(Deployed {
                    revision: 50,
                    late: false,
                    told: [Told::Pending; 2],
                }),
                ..World::NEW.status
            },
            environment: Some(Environment {
                revision: 51,
                phase: Phase::Working,
                said,
                drifted: false,
            }),
            ..World::NEW
        };
        let digest = self.run(&world, None).status["environments"][0]["disregarded"].clone();
        digest.as_str().unwrap().to_owned()
    }

    /// What a status says.
    fn told(&self, status: &Value, before: &World, found: Option<u8>) -> Status {
        let told = &status["environments"][0];
        let revision = |told: &Value| {
            let record: Value = serde_json::from_str(told["record"].as_str()?).unwrap();
            Some(number(&record["revision"]))
        };
        let deployed = revision(&told["deployed"]).map(|revision| {
            let is_it = |known: &Deployed| told["deployed"]["arrival"] == arrival(known.revision);
            let known = self.as_told(before).deployed.filter(is_it);
            Deployed {
                revision: known.as_ref().map_or(revision, |known| known.revision),
                late: known.is_some_and(|known| known.late),
                told: ["run", "check"].map(|name| self.verdict(told, name)),
            }
        });
        let disregarded = told["disregarded"].as_str().map(|digest| {
            let known = before.status.disregarded;
            let known = known.filter(|known| self.disregarded[known] == digest);
            known.unwrap_or_else(|| {
                let found = found.unwrap();
                assert_eq!(self.disregarded[&found], digest);
                found
            })
        });
        Status {
            deployed,
            arriving: revision(&told["arriving"]),
            disregarded,
        }
    }

    fn verdict(&self, told: &Value, name: &str) -> Told {
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
    }

    fn look(&self, world: &World, submission: &Submission, walk: &mut During) -> Option<Observed> {
        match submission.resource.as_str() {
            "deploy" => world.environment.as_ref().map(|live| {
                walk.found = Some(live.said);
                self.observed_environment(live)
            }),
            "run" => self.observed_run(world, submission, walk),
            "check" => Self::observed_check(world, submission, walk),
            other => panic!("{other} is not looked at"),
        }
    }

    fn submit(&self, world: &mut World, submission: &Submission, walk: &mut During) -> Observation {
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
            "deploy" => self.submit_environment(world, submission, walk),
            "run" => self.submit_run(world, submission, walk),
            "check" => self.submit_check(world, submission, walk),
            "promote" => {
                world.promoted = number(&submission.object["data"]["revision"]);
                object(submission, Write::Patched)
            }
            other => panic!("unknown step {other}"),
        }
    }

    fn submit_environment(
        &self,
        world: &mut World,
        submission: &Submission,
        walk: &mut During,
    ) -> Observation {
        let annotation = &submission.object["metadata"]["annotations"]["carto.run/environment"];
        let revision = number(&submission.object["spec"]["revision"]);
        assert!(
            self.fault.is_some() || *annotation == self.text(revision),
            "{annotation} is not what status says of {revision}"
        );
        let live = world.environment.as_ref();
        let there = live.map_or(Precondition::Absent, |live| {
            Precondition::Version(version_of(live))
        });
        let write = match live {
            Some(live) if live.revision == revision && live.said == revision && !live.drifted => {
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
            world.deploy(revision);
        }
        walk.tied = Some(revision);
        let observed = self.observed_environment(world.environment.as_ref().unwrap());
        Observation::Object { observed, write }
    }

    fn observed_environment(&self, live: &Environment) -> Observed {
        let phase = format!("{:?}", live.phase);
        let said = (live.said != 0).then(|| self.text(live.said));
        let object = json!({
            "apiVersion": "test.run/v1", "kind": "App",
            "metadata": {"namespace": "ns", "name": "app", "uid": "e", "generation": live.revision,
                "annotations": {"carto.run/environment": said}},
            "spec": {"revision": live.revision},
            "status": {"observedGeneration": live.revision, "phase": phase},
        });
        observed(object, "any", version_of(live))
    }

    /// What was submitted for one arrival has one digest, whatever the object said meanwhile, and nothing else has it.
    fn digest(&self, submission: &Submission, walk: &During) -> String {
        let key = (submission.resource.to_string(), walk.tied.unwrap());
        let mut digests = self.digests.borrow_mut();
        let differs = |(known, digest): (&(String, u8), &String)| {
            known.0 == key.0 && (*known == key) != (*digest == submission.digest)
        };
        assert!(
            self.fault.is_some() || !digests.iter().any(differs),
            "the digest of a validation is not that of its arrival"
        );
        digests.insert(key, submission.digest.clone());
        submission.digest.clone()
    }

    fn submit_run(&self, world: &mut World, submission: &Submission, walk: &During) -> Observation {
        self.digest(submission, walk);
        let tied = walk.tied.unwrap();
        let any = self.fault == Some(Fault::OldRunsCount);
        let write = match &world.run {
            Some(run) if run.of == tied || any => Write::Unchanged,
            _ => Write::Created,
        };
        if write == Write::Created {
            world.run = Some(Run {
                of: tied,
                phase: Phase::Working,
            });
        }
        let submitted = self.observed_run(world, submission, walk).unwrap();
        Observation::Family {
            members: vec![submitted.clone()],
            submitted,
            write,
        }
    }

    fn observed_run(
        &self,
        world: &World,
        submission: &Submission,
        walk: &During,
    ) -> Option<Observed> {
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
        let digest = if Some(run.of) == walk.tied || any {
            submission.digest.as_str()
        } else {
            "old"
        };
        Some(observed(object, digest, 1))
    }

    fn submit_check(
        &self,
        world: &mut World,
        submission: &Submission,
        walk: &During,
    ) -> Observation {
        self.digest(submission, walk);
        let tied = walk.tied.unwrap();
        let write = match &world.check {
            Some(check) if check.of == tied => Write::Unchanged,
            Some(_) => Write::Patched,
            None => Write::Created,
        };
        if write != Write::Unchanged {
            world.check = Some(Check {
                of: tied,
                seen: false,
                failed: world.check.as_ref().is_some_and(|check| check.failed),
            });
        }
        let observed = Self::observed_check(world, submission, walk).unwrap();
        Observation::Object { observed, write }
    }

    /// Its status may be about an older generation, and about an older failure.
    fn observed_check(world: &World, submission: &Submission, walk: &During) -> Option<Observed> {
        let check = world.check.as_ref()?;
        let is_current = Some(check.of) == walk.tied;
        let revision = if is_current { check.of } else { 0 };
        let generation = 1 + u8::from(is_current);
        let seen = generation - u8::from(!check.seen);
        let reached = if check.seen && !check.failed {
            revision
        } else {
            98
        };
        let phase = if check.failed { "Failed" } else { "Fine" };
        let object = json!({
            "apiVersion": "test.run/v1", "kind": "Check",
            "metadata": {"namespace": "ns", "name": "check", "uid": "c", "generation": generation},
            "spec": {"revision": revision},
            "status": {"observedGeneration": seen, "revision": reached, "phase": phase},
        });
        let digest = if is_current {
            submission.digest.as_str()
        } else {
            "old"
        };
        Some(observed(object, digest, 1))
    }
}

/// Of all that status says of arrivals.
const SINCE: &str = "1970-01-01T00:00:00Z";

/// Numbers ascend, and that is all that counts of them.
fn arrival(revision: u8) -> u32 {
    if revision == EVIL {
        1
    } else {
        u32::from(revision) * 10
    }
}

fn version_of(live: &Environment) -> u64 {
    let said = u64::from(live.said);
    ((u64::from(live.revision) * 10 + live.phase as u64) * 1000 + said) * 10
        + u64::from(live.drifted)
        + 1
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
