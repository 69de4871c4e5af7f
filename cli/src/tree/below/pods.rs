//! What a Job and its Pods say of themselves.

use api_types::status::StampedRef;
use serde_json::Value;

use super::{Below, first_line};
use crate::tree::State;
use crate::tree::advice::names;

impl Below {
    pub(super) fn read_job(&mut self, job: &Value) {
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

    pub(super) fn read_pod(&mut self, pod: &Value) {
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
