//! Counting requests by sender, verb and what they were about.

use std::collections::BTreeMap;

use serde::Serialize;
use test_support::AuditEvent;
use test_support::audit::AuditObject;

/// The User-Agent of the bench's own requests as a user of the platform: owners, templates, and all of the floor.
pub(crate) const CLIENT_AGENT: &str = "bench-client";
/// The User-Agent of the loop that plays the controllers downstream.
pub(crate) const DOWNSTREAM_AGENT: &str = "bench-downstream";
/// The User-Agent of the bench's watches.
pub(crate) const OBSERVER_AGENT: &str = "bench-observer";
/// How the User-Agent of each of the controllers starts; only the one under test runs.
const CONTROLLER_AGENT: &str = "carto-";

/// Who sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Agent {
    /// The controller under test.
    Controller,
    /// The bench as a user, or as the bare client of the floor.
    Client,
    /// The bench as the controllers downstream.
    Downstream,
    /// The bench's watches.
    Observer,
    /// The control plane itself.
    Other,
}

impl Agent {
    /// All there are, in the order of a report.
    pub(crate) const ALL: [Self; 5] = [
        Self::Controller,
        Self::Client,
        Self::Downstream,
        Self::Observer,
        Self::Other,
    ];

    /// By the `User-Agent` header.
    pub(crate) fn of(user_agent: &str) -> Self {
        match user_agent {
            agent if agent.starts_with(CONTROLLER_AGENT) => Self::Controller,
            CLIENT_AGENT => Self::Client,
            DOWNSTREAM_AGENT => Self::Downstream,
            OBSERVER_AGENT => Self::Observer,
            _ => Self::Other,
        }
    }
}

/// What a request was about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// No object: groups, versions, schemas, health.
    Discovery,
    /// An event; counted apart, as events are best effort.
    Event,
    /// The leader's lease.
    Lease,
    /// `<plural>[.<group>][/<subresource>]`.
    Object(String),
}

impl Topic {
    fn name(&self) -> &str {
        match self {
            Self::Discovery => "discovery",
            Self::Event => "events",
            Self::Lease => "leases",
            Self::Object(name) => name,
        }
    }
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Request {
    /// Who sent it.
    pub(crate) agent: Agent,
    /// What it was about.
    pub(crate) topic: Topic,
    /// Kubernetes verb, such as `patch`.
    pub(crate) verb: String,
}

impl Request {
    /// What a record of the audit log stands for. A request with several records is counted once: a watch, which may not end
    /// in this run, when it starts, anything else when it is answered.
    fn of(record: &AuditEvent) -> Option<Self> {
        let counted = match record.verb.as_str() {
            "watch" => "ResponseStarted",
            _ => "ResponseComplete",
        };
        let topic = record.object_ref.as_ref().map_or(Topic::Discovery, topic);
        (record.stage == counted).then(|| Self {
            agent: Agent::of(&record.user_agent),
            topic,
            verb: record.verb.clone(),
        })
    }
}

fn topic(object: &AuditObject) -> Topic {
    let mut name = object.resource.clone();
    for (separator, part) in [(".", &object.api_group), ("/", &object.subresource)] {
        if !part.is_empty() {
            name.push_str(separator);
            name.push_str(part);
        }
    }
    match object.resource.as_str() {
        "events" => Topic::Event,
        "leases" => Topic::Lease,
        _ => Topic::Object(name),
    }
}

/// How many requests of each sort there were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally(BTreeMap<Request, u64>);

/// Requests by sender and verb, events and the lease among them.
pub(crate) type ByAgent = BTreeMap<Agent, BTreeMap<String, u64>>;

/// The requests of one sender, by what they cost. Events and the lease stand apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Requests {
    /// Everything but `get`, `list` and `watch`.
    pub(crate) writes: u64,
    /// `get` of single objects.
    pub(crate) gets: u64,
    /// `list`.
    pub(crate) lists: u64,
    /// Watches started.
    pub(crate) watches: u64,
    /// Discovery and schemas.
    pub(crate) discovery: u64,
    /// Events written.
    pub(crate) events: u64,
    /// Requests for the lease.
    pub(crate) leases: u64,
    /// Number by `<verb> <topic>`.
    pub(crate) by_sort: BTreeMap<String, u64>,
}

impl Requests {
    /// All but events and the lease.
    pub(crate) fn sum(&self) -> u64 {
        self.writes + self.reads() + self.watches
    }

    /// What asks for a state instead of awaiting a change.
    pub(crate) fn reads(&self) -> u64 {
        self.gets + self.lists + self.discovery
    }
}

impl Tally {
    /// The requests that the audit log tells of.
    pub(crate) fn of_records(records: &[AuditEvent]) -> Self {
        let mut tally = Self::default();
        records
            .iter()
            .filter_map(Request::of)
            .for_each(|request| tally.add(request));
        tally
    }

    /// Counts one request.
    fn add(&mut self, request: Request) {
        *self.0.entry(request).or_default() += 1;
    }

    /// Adds all of another tally.
    pub(crate) fn merge(&mut self, other: Self) {
        for (request, count) in other.0 {
            *self.0.entry(request).or_default() += count;
        }
    }

    /// The requests of one sender.
    pub(crate) fn of(&self, agent: Agent) -> Requests {
        let mut requests = Requests::default();
        for (request, &count) in self.0.iter().filter(|(request, _)| request.agent == agent) {
            *slot(&mut requests, request) += count;
            let sort = format!("{} {}", request.verb, request.topic.name());
            *requests.by_sort.entry(sort).or_default() += count;
        }
        requests
    }

    /// All requests: who sent how many of each verb.
    pub(crate) fn by_agent(&self) -> ByAgent {
        let mut agents = ByAgent::new();
        for (request, &count) in &self.0 {
            let verbs = agents.entry(request.agent).or_default();
            *verbs.entry(request.verb.clone()).or_default() += count;
        }
        agents
    }
}

fn slot<'a>(requests: &'a mut Requests, request: &Request) -> &'a mut u64 {
    match (&request.topic, request.verb.as_str()) {
        (Topic::Event, _) => &mut requests.events,
        (Topic::Lease, _) => &mut requests.leases,
        (Topic::Discovery, "get") => &mut requests.discovery,
        (_, "get") => &mut requests.gets,
        (_, "list") => &mut requests.lists,
        (_, "watch") => &mut requests.watches,
        _ => &mut requests.writes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(requests: &[(Agent, &str, Topic)]) -> Tally {
        let mut tally = Tally::default();
        for (agent, verb, topic) in requests {
            tally.add(Request {
                agent: *agent,
                topic: topic.clone(),
                verb: (*verb).to_owned(),
            });
        }
        tally
    }

    fn steps() -> Topic {
        Topic::Object("steps.bench.carto.run".into())
    }

    #[test]
    fn requests_are_sorted_by_cost_and_events_and_lease_stand_apart() {
        let seen = tally(&[
            (Agent::Controller, "patch", steps()),
            (Agent::Controller, "patch", steps()),
            (Agent::Controller, "delete", steps()),
            (Agent::Controller, "get", steps()),
            (Agent::Controller, "list", steps()),
            (Agent::Controller, "watch", steps()),
            (Agent::Controller, "get", Topic::Discovery),
            (Agent::Controller, "create", Topic::Event),
            (Agent::Controller, "update", Topic::Lease),
            (Agent::Controller, "get", Topic::Lease),
            (Agent::Client, "patch", steps()),
        ])
        .of(Agent::Controller);
        let parts = (
            seen.writes,
            seen.gets,
            seen.lists,
            seen.watches,
            seen.discovery,
            seen.events,
            seen.leases,
        );
        assert_eq!(parts, (3, 1, 1, 1, 1, 1, 2));
        assert_eq!((seen.sum(), seen.reads()), (7, 3));
        assert_eq!(seen.by_sort["patch steps.bench.carto.run"], 2);
    }

    #[test]
    fn all_senders_are_counted_by_verb_whatever_they_asked_for() {
        let seen = tally(&[
            (Agent::Controller, "patch", steps()),
            (Agent::Controller, "create", Topic::Event),
            (Agent::Controller, "create", steps()),
            (Agent::Other, "get", Topic::Lease),
        ])
        .by_agent();
        let verbs = |verbs: &[(&str, u64)]| -> BTreeMap<String, u64> {
            let owned = |&(verb, count): &(&str, u64)| (verb.to_owned(), count);
            verbs.iter().map(owned).collect()
        };
        let expected = ByAgent::from([
            (Agent::Controller, verbs(&[("create", 2), ("patch", 1)])),
            (Agent::Other, verbs(&[("get", 1)])),
        ]);
        assert_eq!(seen, expected);
        let json = serde_json::to_value(&seen).unwrap();
        assert_eq!(json["controller"]["create"], 2, "{json}");
    }

    fn record(stage: &str, verb: &str, agent: &str, object: &serde_json::Value) -> AuditEvent {
        let record = serde_json::json!({"auditID": "x", "stage": stage, "requestURI": "/x", "verb": verb,
            "user": {"username": "u"}, "userAgent": agent, "objectRef": object});
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn a_request_is_attributed_to_its_sender_and_object() {
        let object = |resource: &str, group: &str, subresource: &str| serde_json::json!({"resource": resource, "apiGroup": group, "subresource": subresource});
        let named = |name: &str| Topic::Object(name.to_owned());
        let cases = [
            (
                "patch",
                "carto-supplychain/0.1.0",
                object("workloads", "carto.run", "status"),
                Agent::Controller,
                named("workloads.carto.run/status"),
            ),
            (
                "create",
                "bench-client",
                object("serviceaccounts", "", "token"),
                Agent::Client,
                named("serviceaccounts/token"),
            ),
            (
                "create",
                "carto-supplychain",
                object("events", "events.k8s.io", ""),
                Agent::Controller,
                Topic::Event,
            ),
            (
                "update",
                "carto-supplychain",
                object("leases", "coordination.k8s.io", ""),
                Agent::Controller,
                Topic::Lease,
            ),
            (
                "get",
                "kube-apiserver/v1.36",
                serde_json::Value::Null,
                Agent::Other,
                Topic::Discovery,
            ),
        ];
        for (verb, sender, object, agent, topic) in cases {
            let request = Request::of(&record("ResponseComplete", verb, sender, &object));
            let verb = verb.to_owned();
            assert_eq!(request, Some(Request { agent, topic, verb }));
        }
    }

    #[test]
    fn a_watch_counts_when_it_starts_and_a_long_list_when_it_is_answered() {
        let counted = |stage, verb| {
            Request::of(&record(stage, verb, "carto-x", &serde_json::Value::Null)).is_some()
        };
        assert!(counted("ResponseStarted", "watch") && !counted("ResponseComplete", "watch"));
        assert!(!counted("ResponseStarted", "list") && counted("ResponseComplete", "list"));
        assert!(!counted("Panic", "list"));
    }

    #[test]
    fn merging_adds_up() {
        let mut one = tally(&[(Agent::Client, "create", steps())]);
        one.merge(tally(&[
            (Agent::Client, "create", steps()),
            (Agent::Other, "get", steps()),
        ]));
        assert_eq!(
            (one.of(Agent::Client).writes, one.of(Agent::Other).gets),
            (2, 1)
        );
    }
}
