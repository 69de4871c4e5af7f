//! Counting requests by sender, verb and what they were about.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use test_support::AuditEvent;

/// The User-Agent of the bench's own requests as a user of the platform: owners, templates, and all of the floor.
pub(crate) const CLIENT_AGENT: &str = "bench-client";
/// The User-Agent of the loop that plays the controllers downstream.
pub(crate) const DOWNSTREAM_AGENT: &str = "bench-downstream";
/// The User-Agent of the bench's watches.
pub(crate) const OBSERVER_AGENT: &str = "bench-observer";
/// How the User-Agent of each of the controllers starts; only the one under test runs.
const CONTROLLER_AGENT: &str = "carto-";

/// Who sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// All there are, in the order of a report, with what it calls them.
    pub(crate) const ALL: [(Self, &str); 5] = [
        (Self::Controller, "carto-*"),
        (Self::Client, CLIENT_AGENT),
        (Self::Downstream, DOWNSTREAM_AGENT),
        (Self::Observer, OBSERVER_AGENT),
        (Self::Other, "others"),
    ];

    /// By the `User-Agent` header.
    fn of(user_agent: &str) -> Self {
        if user_agent.starts_with(CONTROLLER_AGENT) {
            return Self::Controller;
        }
        let mut all = Self::ALL.into_iter();
        let found = all.find(|(_, name)| *name == user_agent);
        found.map_or(Self::Other, |(agent, _)| agent)
    }
}

/// No object: groups, versions, schemas, health.
const DISCOVERY: &str = "discovery";
/// Counted apart, as events are best effort.
const EVENTS: &str = "events";
/// The leader's lease.
const LEASES: &str = "leases";

/// Requests by sender and verb, events and the lease among them.
pub(crate) type ByAgent = BTreeMap<Agent, BTreeMap<String, u64>>;

/// The requests of one sender, by what they cost. Events and the lease stand apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
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

    /// All but the lease.
    pub(crate) fn all(&self) -> u64 {
        self.sum() + self.events
    }

    /// What asks for a state instead of awaiting a change.
    pub(crate) fn reads(&self) -> u64 {
        self.gets + self.lists + self.discovery
    }

    fn add(&mut self, verb: &str, topic: &str) {
        *match (topic, verb) {
            (EVENTS, _) => &mut self.events,
            (LEASES, _) => &mut self.leases,
            (DISCOVERY, "get") => &mut self.discovery,
            (_, "get") => &mut self.gets,
            (_, "list") => &mut self.lists,
            (_, "watch") => &mut self.watches,
            _ => &mut self.writes,
        } += 1;
        *self.by_sort.entry(format!("{verb} {topic}")).or_default() += 1;
    }
}

/// The requests of each sender.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally(BTreeMap<Agent, Requests>);

impl Tally {
    /// Adds the request that a record of the audit log stands for. One with several records is
    /// counted once: a watch, which may not end in this run, when it starts, anything else when it
    /// is answered.
    pub(crate) fn add(&mut self, record: &AuditEvent) {
        let counted = match record.verb.as_str() {
            "watch" => "ResponseStarted",
            _ => "ResponseComplete",
        };
        if record.stage != counted {
            return;
        }
        let topic = match &record.object_ref {
            None => DISCOVERY.to_owned(),
            Some(object) if [EVENTS, LEASES].contains(&&*object.resource) => {
                object.resource.clone()
            }
            Some(object) => object.kind(),
        };
        let of_sender = self.0.entry(Agent::of(&record.user_agent));
        of_sender.or_default().add(&record.verb, &topic);
    }

    /// The requests of one sender.
    pub(crate) fn of(&self, agent: Agent) -> Requests {
        self.0.get(&agent).cloned().unwrap_or_default()
    }

    /// All requests: who sent how many of each verb.
    pub(crate) fn by_agent(&self) -> ByAgent {
        let mut agents = ByAgent::new();
        for (&agent, requests) in &self.0 {
            let verbs = agents.entry(agent).or_default();
            for (sort, count) in &requests.by_sort {
                let verb = sort.split(' ').next().unwrap_or_default();
                *verbs.entry(verb.to_owned()).or_default() += count;
            }
        }
        agents
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CONTROLLER: &str = "carto-supplychain/0.1.0";

    /// Of a request for an object, written as `<plural> <group> <subresource>`, or for none.
    fn record(stage: &str, verb: &str, agent: &str, object: &str) -> AuditEvent {
        let mut parts = object.split(' ');
        let mut part = || parts.next().unwrap_or_default();
        let object = json!({"resource": part(), "apiGroup": part(), "subresource": part()});
        let object = (object["resource"] != "").then_some(object);
        let record = json!({"auditID": "x", "stage": stage, "requestURI": "/x", "verb": verb,
            "user": {"username": "u"}, "userAgent": agent, "objectRef": object});
        serde_json::from_value(record).unwrap()
    }

    fn answered(agent: &str, verb: &str, object: &str) -> AuditEvent {
        let is_watch = verb == "watch";
        let stage = ["ResponseComplete", "ResponseStarted"][usize::from(is_watch)];
        record(stage, verb, agent, object)
    }

    fn tally<'a>(records: impl IntoIterator<Item = &'a AuditEvent>) -> Tally {
        let mut tally = Tally::default();
        records.into_iter().for_each(|record| tally.add(record));
        tally
    }

    #[test]
    fn requests_are_sorted_by_cost_and_events_and_lease_stand_apart() {
        let of_steps = ["patch", "patch", "delete", "get", "list", "watch"];
        let of_steps = of_steps.map(|verb| answered(CONTROLLER, verb, "steps bench.carto.run"));
        let others = [
            answered(CONTROLLER, "get", ""),
            answered(CONTROLLER, "create", "events"),
            answered(CONTROLLER, "update", "leases"),
            answered(CONTROLLER, "get", "leases"),
            answered(CLIENT_AGENT, "patch", "steps bench.carto.run"),
        ];
        let tally = tally(of_steps.iter().chain(&others));
        let seen = tally.of(Agent::Controller);
        let expected = Requests {
            writes: 3,
            gets: 1,
            lists: 1,
            watches: 1,
            discovery: 1,
            events: 1,
            leases: 2,
            by_sort: seen.by_sort.clone(),
        };
        assert_eq!(seen, expected);
        assert_eq!((seen.sum(), seen.all(), seen.reads()), (7, 8, 3));
        assert_eq!(seen.by_sort["patch steps.bench.carto.run"], 2);
        assert_eq!(seen.by_sort["create events"], 1);
        assert_eq!(tally.of(Agent::Client).writes, 1);
        let by_agent = serde_json::to_value(tally.by_agent()).unwrap();
        assert_eq!(by_agent["client"], json!({"patch": 1}));
        assert_eq!(by_agent["controller"]["get"], 3);
    }

    #[test]
    fn a_request_is_attributed_to_its_sender_and_object() {
        let cases = [
            (
                CONTROLLER,
                "workloads carto.run status",
                "workloads.carto.run/status",
            ),
            (
                CLIENT_AGENT,
                "serviceaccounts  token",
                "serviceaccounts/token",
            ),
            (DOWNSTREAM_AGENT, "steps x.run", "steps.x.run"),
            (OBSERVER_AGENT, "events events.k8s.io", EVENTS),
            ("carto", "leases coordination.k8s.io", LEASES),
        ];
        for ((sender, object, topic), (agent, _)) in cases.into_iter().zip(Agent::ALL) {
            let sort = format!("create {topic}");
            let seen = tally([&answered(sender, "create", object)]).of(agent);
            assert_eq!(seen.by_sort, [(sort, 1)].into(), "{sender}");
        }
        let others = tally([&answered("kube-apiserver/v1.36", "get", "")]);
        assert_eq!(others.of(Agent::Other).discovery, 1);
    }

    #[test]
    fn a_watch_counts_when_it_starts_and_a_long_list_when_it_is_answered() {
        let counted = |stage, verb| !tally([&record(stage, verb, "carto-x", "")]).0.is_empty();
        assert!(counted("ResponseStarted", "watch") && !counted("ResponseComplete", "watch"));
        assert!(!counted("ResponseStarted", "list") && counted("ResponseComplete", "list"));
        assert!(!counted("Panic", "list"));
    }
}
