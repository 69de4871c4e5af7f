//! What stands below a step's object: the object of a Runnable or Deliverable, the Pods of a Job, and what each says of itself.
//! No I/O: objects in, lines out; [`crate::descend`] reads them.

use api_types::status::StampedRef;
use realizer::Family;
use serde::Serialize;
use serde_json::Value;

use super::advice::names;
use super::{State, Tree, TreeError};

/// An object below a step, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Below {
    /// `<kind>/<name>`.
    pub object: String,
    /// Namespace of the object.
    pub namespace: String,
    /// How it does; absent when it could not be read or is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// What it says, on one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What to do about it, unless it is as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What stands below it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<Self>,
}

/// The kinds that are looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// A Workload or Deliverable that another owner's template stamps.
    Owner(Family),
    /// A Runnable.
    Runnable,
    /// A Job.
    Job,
    /// A Pod.
    Pod,
}

impl Depth {
    /// Of a reference; absent for a kind that is not looked into.
    pub fn of(object: &StampedRef) -> Option<Self> {
        let kind = object.kind.as_deref()?;
        let families = [Family::SupplyChain, Family::Delivery];
        match object.api_version.as_deref()? {
            api_types::API_VERSION if kind == realizer::runnable::KIND => Some(Self::Runnable),
            api_types::API_VERSION => {
                let mut families = families.into_iter();
                families
                    .find(|family| family.owner_kind() == kind)
                    .map(Self::Owner)
            }
            "batch/v1" if kind == "Job" => Some(Self::Job),
            "v1" if kind == "Pod" => Some(Self::Pod),
            _ => None,
        }
    }

    /// Group, version, kind and plural.
    pub fn resource(self) -> [&'static str; 4] {
        let ours = |kind, plural| [api_types::GROUP, api_types::VERSION, kind, plural];
        match self {
            Self::Owner(family) => ours(family.owner_kind(), family.owner_plural()),
            Self::Runnable => ours(realizer::runnable::KIND, "runnables"),
            Self::Job => ["batch", "v1", "Job", "jobs"],
            Self::Pod => ["", "v1", "Pod", "pods"],
        }
    }
}

/// What was found at a reference.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// The object.
    Object(Value),
    /// There is none.
    Nothing,
    /// It could not be read; why.
    Unread(String),
}

impl Below {
    /// What an object says of itself.
    ///
    /// # Errors
    ///
    /// [`TreeError`] when an object of ours does not have the shape of its kind.
    pub fn read(depth: Depth, reference: &StampedRef, found: &Found) -> Result<Self, TreeError> {
        let mut below = Self::named(reference);
        let object = match found {
            Found::Object(object) => object,
            // No fault by itself: what a run came to is known also when the run is gone.
            Found::Nothing => {
                "is not there any more".clone_into(&mut below.text);
                return Ok(below);
            }
            Found::Unread(why) => {
                below.text = format!("could not be read: {why}");
                return Ok(below);
            }
        };
        match depth {
            Depth::Owner(family) => below.take_headline(Tree::read(family, object, None)?),
            Depth::Runnable => below.take_headline(Tree::read_runnable(object)?),
            Depth::Job => below.read_job(object),
            Depth::Pod => below.read_pod(object),
        }
        Ok(below)
    }

    fn named(reference: &StampedRef) -> Self {
        Self {
            object: format!(
                "{}/{}",
                reference.kind.as_deref().unwrap_or("?"),
                reference.name.as_deref().unwrap_or("?")
            ),
            namespace: reference.namespace.clone().unwrap_or_default(),
            state: None,
            text: String::new(),
            next: None,
            below: Vec::new(),
        }
    }

    fn take_headline(&mut self, tree: Tree) {
        self.state = Some(tree.headline.state);
        self.text = tree.headline.text;
        self.next = tree.headline.next;
    }

    fn say(&mut self, state: State, text: &str) {
        self.state = Some(state);
        self.text = first_line(text);
    }

    fn read_job(&mut self, job: &Value) {
        let status = &job["status"];
        let told = |type_: &str| {
            let conditions = status["conditions"].as_array().into_iter().flatten();
            conditions
                .into_iter()
                .find(|it| it["type"] == type_ && it["status"] == "True")
        };
        if let Some(failed) = told("Failed") {
            self.say(State::Failing, &reason_and_message(failed));
            self.next = Some(self.describe("job"));
        } else if told("Complete").is_some() {
            self.say(State::Ready, "succeeded");
        } else if told("Suspended").is_some() {
            self.say(State::Waiting, "is suspended");
        } else {
            let count = |field: &str| status[field].as_u64().unwrap_or(0);
            let text = format!(
                "{} Pods run, {} have failed",
                count("active"),
                count("failed")
            );
            self.say(State::Waiting, &text);
        }
    }

    fn read_pod(&mut self, pod: &Value) {
        let status = &pod["status"];
        let phase = status["phase"].as_str().unwrap_or("Pending");
        let waits = containers(status).find_map(|it| Some((it, stuck(&it["state"]["waiting"])?)));
        let ended = containers(status).find_map(|it| Some((it, failed(it)?)));
        match (phase, waits, ended) {
            ("Succeeded", _, _) => self.say(State::Ready, "succeeded"),
            (_, Some((container, why)), _) => {
                let name = container_name(container);
                self.say(
                    State::Failing,
                    &format!("container {name} cannot run: {why}"),
                );
                let crashes = container["state"]["waiting"]["reason"] == "CrashLoopBackOff";
                self.next = Some(if crashes {
                    self.logs(name, " --previous")
                } else {
                    self.describe("pod")
                });
            }
            ("Failed", None, Some((container, why))) => {
                let name = container_name(container);
                self.say(State::Failing, &format!("container {name} {why}"));
                self.next = Some(self.logs(name, ""));
            }
            ("Failed", None, None) => {
                self.say(State::Failing, &reason_and_message(status));
                self.next = Some(self.describe("pod"));
            }
            ("Running", None, _) => self.read_running(status),
            _ => self.read_starting(status, phase),
        }
    }

    fn read_running(&mut self, status: &Value) {
        let ready = containers(status)
            .all(|it| it["ready"] == true || it["state"]["terminated"].is_object());
        if ready {
            self.say(State::Ready, "runs");
        } else {
            self.say(State::Waiting, "runs, and is not ready yet");
        }
    }

    fn read_starting(&mut self, status: &Value, phase: &str) {
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let mut unscheduled =
            conditions.filter(|it| it["type"] == "PodScheduled" && it["status"] == "False");
        let text = match unscheduled.next() {
            Some(condition) => format!("has no node yet: {}", reason_and_message(condition)),
            None => format!("is {}", phase.to_lowercase()),
        };
        self.say(State::Waiting, &text);
        self.next = Some(self.describe("pod"));
    }

    fn name(&self) -> &str {
        self.object.split_once('/').map_or("", |(_, name)| name)
    }

    fn describe(&self, resource: &str) -> String {
        let (namespace, name) = (self.namespace.as_str(), self.name());
        names::command(
            "inspect it, with kubectl describe",
            &[namespace, name],
            format!("inspect it: kubectl describe -n {namespace} {resource}/{name}"),
        )
    }

    fn logs(&self, container: &str, flags: &str) -> String {
        let (namespace, name) = (self.namespace.as_str(), self.name());
        names::command(
            "read its log, with kubectl logs",
            &[namespace, name, container],
            format!("read its log: kubectl logs -n {namespace} {name} -c {container}{flags}"),
        )
    }

    /// What it says, with its name unless that is in it.
    pub(super) fn said(&self) -> String {
        if self.text.contains(self.name()) {
            self.text.clone()
        } else {
            format!("{}: {}", self.object, self.text)
        }
    }

    /// The deepest object that explains why this one is not as it should be; one that fails goes before one that waits.
    pub(super) fn cause(&self) -> Option<&Self> {
        let of = |state: State| {
            let mut below = self.below.iter();
            below.find(|it| it.state == Some(state)).or_else(|| {
                // What could not be read, or is well, may stand above what is not.
                self.below.iter().find(|it| it.holds(state))
            })
        };
        let deeper = of(State::Failing).or_else(|| of(State::Waiting));
        match deeper {
            Some(deeper) => deeper.cause().or(Some(deeper)),
            None => (self.state.is_some() && self.state != Some(State::Ready)).then_some(self),
        }
    }

    fn holds(&self, state: State) -> bool {
        self.state == Some(state) || self.below.iter().any(|below| below.holds(state))
    }
}

/// The objects that stand below one of these kinds by its status; the Pods of a Job are found by their controller.
pub fn referenced(depth: Depth, object: &Value) -> Vec<StampedRef> {
    let status = &object["status"];
    let reference = |value: &Value| serde_json::from_value::<StampedRef>(value.clone()).ok();
    match depth {
        Depth::Owner(_) => {
            let entries = status["resources"].as_array().into_iter().flatten();
            entries
                .filter_map(|entry| reference(entry.get("stampedRef")?))
                .filter(|object| Depth::of(object).is_some())
                .collect()
        }
        Depth::Runnable => status
            .get("stampedRef")
            .and_then(reference)
            .into_iter()
            .collect(),
        Depth::Job | Depth::Pod => Vec::new(),
    }
}

/// The Pods among these whose controller has this uid, those that failed first, then the newest.
pub fn pods_of(job: &Value, pods: Vec<Value>) -> Vec<(StampedRef, Value)> {
    let uid = &job["metadata"]["uid"];
    let is_its = |pod: &Value| {
        let owners = pod["metadata"]["ownerReferences"].as_array();
        let mut owners = owners.into_iter().flatten();
        owners.any(|owner| owner["controller"] == true && owner["uid"] == *uid)
    };
    let mut its: Vec<Value> = pods.into_iter().filter(is_its).collect();
    let created = |pod: &Value| {
        let created = pod["metadata"]["creationTimestamp"].as_str();
        created.unwrap_or_default().to_owned()
    };
    its.sort_by_key(|pod| std::cmp::Reverse((pod["status"]["phase"] == "Failed", created(pod))));
    its.into_iter()
        .map(|pod| {
            let text = |field: &str| pod["metadata"][field].as_str().map(str::to_owned);
            let reference = StampedRef {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                namespace: text("namespace"),
                name: text("name"),
                ..StampedRef::default()
            };
            (reference, pod)
        })
        .collect()
}

/// Init containers first: as long as one of them fails, no other one runs.
fn containers(status: &Value) -> impl Iterator<Item = &Value> {
    ["initContainerStatuses", "containerStatuses"]
        .into_iter()
        .flat_map(|field| status[field].as_array().into_iter().flatten())
}

fn container_name(container: &Value) -> &str {
    container["name"].as_str().unwrap_or("?")
}

/// Reasons for which a container waits that do not pass while nobody does anything.
const STUCK: [&str; 7] = [
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
];

fn stuck(waiting: &Value) -> Option<String> {
    let reason = waiting["reason"].as_str()?;
    STUCK.contains(&reason).then(|| reason_and_message(waiting))
}

fn failed(container: &Value) -> Option<String> {
    let ended = &container["state"]["terminated"];
    let code = ended["exitCode"].as_i64().filter(|code| *code != 0)?;
    Some(format!(
        "ended with code {code}: {}",
        reason_and_message(ended)
    ))
}

fn reason_and_message(value: &Value) -> String {
    let text = |field: &str| first_line(value[field].as_str().unwrap_or_default());
    match (text("reason"), text("message")) {
        (reason, message) if message.is_empty() => reason,
        (reason, message) if reason.is_empty() => message,
        (reason, message) => format!("{reason}: {message}"),
    }
}

fn first_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next().unwrap_or_default().to_owned()
}
