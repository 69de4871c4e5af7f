//! The last step: status, events, and when to look again.

use std::time::Duration;

use api_types::event::EventType;
use api_types::{ConditionStatus, EventReason, NamespaceName, ObjectName, Reason};
use realizer::{Ended, Outcome, Owner, OwnerEvent, Retry};
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::{debug, warn};

use super::dependencies::RIGHTS_SETTLE;
use super::shell::OwnerShell;
use super::{Dependency, Overload, log};
use crate::cluster::{Call, Identity, RequestError, encode};
use crate::events::InvolvedObject;
use crate::process::Reconciled;
use crate::scheduler::Next;
use crate::stamped::ObjectKey;
use crate::status::{Due, News, Unwritten, WHOLE_STATUS, Written, is_same_but_for_status};
use crate::submit::SLOW_READ;

/// What realizing came to.
pub struct Realized {
    /// What follows from it.
    pub outcome: Outcome,
    /// Look again after this time.
    pub again: Option<Duration>,
    /// What the owner waits for.
    pub awaited: Vec<Dependency>,
    /// Events about requests: reason and message.
    pub events: Vec<(EventReason, String)>,
    /// What the API server did not carry out.
    pub overload: Option<Overload>,
}

impl Realized {
    /// Nothing was submitted.
    pub fn unrealized(outcome: Outcome, awaited: Vec<Dependency>) -> Self {
        Self {
            outcome,
            again: None,
            awaited,
            events: Vec::new(),
            overload: None,
        }
    }
}

/// The owner that is reported on.
#[derive(Clone, Copy)]
pub struct Subject<'o> {
    /// Namespace.
    pub namespace: &'o NamespaceName,
    /// Name.
    pub name: &'o ObjectName,
    /// uid.
    pub uid: &'o str,
    /// The object that was reconciled.
    pub object: &'o Value,
    /// Status of `Ready` in it.
    pub ready: ConditionStatus,
}

impl<'o> From<&'o Owner> for Subject<'o> {
    fn from(owner: &'o Owner) -> Self {
        Self {
            namespace: &owner.namespace,
            name: &owner.name,
            uid: &owner.uid,
            object: owner.object(),
            ready: owner.status_ready(),
        }
    }
}

/// What came of a write of a status.
enum Wrote {
    /// It is of the owner as it is.
    Latest,
    /// Somebody changed the owner while it was reconciled.
    Changed,
    /// The API server has dropped some of it: the definition of the kind is older than this controller.
    Pruned,
}

impl OwnerShell {
    /// Writes the status if it changed and is due, sends the events, and says when to look again. `rights_changes` is how
    /// often rights had changed when the reconcile began.
    pub async fn report(
        &self,
        key: &ObjectKey,
        owner: Subject<'_>,
        realized: Realized,
        rights_changes: u64,
    ) -> Reconciled {
        let (end, retry) = (realized.outcome.end, realized.outcome.retry);
        let next = self.conclude(key, owner, realized, rights_changes).await;
        // The API server did not carry out what was asked, or, where the engine asked for no back-off, took no status.
        let is_refused =
            matches!(next, Next::Rest { .. }) || (next == Next::Backoff && retry != Retry::Backoff);
        let end = if is_refused {
            Ended::Infrastructure
        } else {
            end
        };
        let version = owner.object["metadata"]["resourceVersion"].as_str();
        let held_back = self.statuses.holds_back(key);
        debug!(version, held_back, end = end.as_str(), "reconciled");
        Reconciled::new(next, end.as_str())
    }

    async fn conclude(
        &self,
        key: &ObjectKey,
        owner: Subject<'_>,
        realized: Realized,
        rights_changes: u64,
    ) -> Next {
        let Realized {
            outcome,
            again,
            awaited,
            events,
            overload,
        } = realized;
        let missed = self.await_all(key, &awaited, rights_changes);
        self.emit_for_owner(owner, outcome.events.iter().filter(|event| event.immediate));
        self.tell_owner(owner, events);
        if overload.is_none() {
            self.outages.walked(key);
        }
        // When the next walk begins if the API server did not carry out what was asked in this one.
        let rest = overload.map(|overload| self.outages.failed(key, overload, Instant::now()));
        if let Some(rest) = rest
            && overload.is_some_and(|overload| overload.is_borne)
        {
            return rest;
        }
        self.metrics.outcome(self.kind.kind, &outcome.reason);
        if is_refused_anew(owner.ready, &outcome) && self.is_namespace_going(owner.namespace).await
        {
            let reason = &outcome.reason;
            debug!(%reason, "its namespace is being deleted; it is left as it is");
            // That is never taken back, and may last for days where a finalizer holds the namespace.
            return Next::Done;
        }
        let later = match self.write_when_due(key, owner, &outcome, rest).await {
            Ok(later) => later,
            Err(next) => return next,
        };
        if rest.is_none() && later.is_none() {
            self.outages.ended(key);
        }
        let leftover = match later {
            None => {
                self.drop_artifacts(key, owner, &outcome.obsolete_artifacts)
                    .await
            }
            Some(_) => None,
        };
        if later.is_none() || outcome.ready != ConditionStatus::True {
            self.count_time_to_ready(key, owner, outcome.ready);
        }
        let due = [later, again, missed, leftover, outcome.again].into_iter();
        let due = due.flatten().min();
        rest.unwrap_or_else(|| next(outcome.retry, due))
    }

    /// Writes the status if it is due; otherwise says when it will be.
    ///
    /// # Errors
    /// What follows instead of the conclusion of this reconcile.
    async fn write_when_due(
        &self,
        key: &ObjectKey,
        owner: Subject<'_>,
        outcome: &Outcome,
        rest: Option<Next>,
    ) -> Result<Option<Duration>, Next> {
        let news = News {
            present: owner.ready,
            ready: outcome.ready,
            // Before a back-off, or the report of a failure would come as late as its next try.
            is_urgent: outcome.write_now || outcome.retry == Retry::Backoff,
        };
        match self.statuses.due(key, outcome.changed.then_some(news)) {
            Due::Never => {
                self.status_stands(key, owner, outcome);
                Ok(None)
            }
            Due::After(wait) => Ok(Some(wait)),
            Due::Now => match self.write(owner, outcome).await {
                Ok(Wrote::Latest) => {
                    self.status_stands(key, owner, outcome);
                    Ok(None)
                }
                // The store holds the reply now, so the event of that change will wake nobody.
                Ok(Wrote::Changed) => {
                    debug!("changed while it was reconciled");
                    Err(rest.unwrap_or(Next::After(Duration::ZERO)))
                }
                Ok(Wrote::Pruned) => {
                    warn!(
                        "the API server drops fields of the status: apply the CustomResourceDefinitions of this version \
                         (deploy/crds)"
                    );
                    Err(rest.unwrap_or(Next::Backoff))
                }
                Err(error) => Err(self.not_written(key, rest, &error)),
            },
        }
    }

    /// The status is stored as the walk has found it.
    fn status_stands(&self, key: &ObjectKey, owner: Subject<'_>, outcome: &Outcome) {
        if outcome.tells_all {
            self.told.told(key, owner.uid);
        }
    }

    /// Deletes the Artifacts that the status names no more. Returns when to try again, if one could not be.
    async fn drop_artifacts(
        &self,
        key: &ObjectKey,
        owner: Subject<'_>,
        names: &[String],
    ) -> Option<Duration> {
        if names.is_empty() || !self.is_still_ours(key, owner.uid).await {
            return None;
        }
        let dropped = self.artifacts.delete(key, names).await;
        let error = dropped.err()?;
        warn!(error = %error, "an Artifact that nothing needs was not deleted");
        Some(SLOW_READ)
    }

    /// What follows from a status that could not be written; `rest` is when the next walk begins if this one met a trouble, too.
    pub(super) fn not_written(
        &self,
        owner: &ObjectKey,
        rest: Option<Next>,
        error: &RequestError,
    ) -> Next {
        let asked = match Unwritten::of(error) {
            Unwritten::Gone => return Next::Done,
            Unwritten::Refused => {
                warn!(error = %error, "failed to update status");
                return rest.unwrap_or(Next::Backoff);
            }
            Unwritten::Prevented { asked } => asked,
        };
        debug!(error = %error, "status not written; trying again");
        // Nothing wakes the owner when the API server is well again, so no try comes as late as those of a back-off.
        match rest {
            Some(Next::Rest { hold, wait }) => {
                let more = asked.saturating_sub(hold);
                Next::Rest {
                    hold: hold + more,
                    wait: wait + more,
                }
            }
            _ => self.outages.unwritten(owner, asked),
        }
    }

    /// Whether the owner's namespace is being deleted, and the owner with it. Accounts, rights and objects go before it does,
    /// in any order, and what is refused for that says nothing of the owner. Namespaces are not watched: the API server is
    /// asked, by what the controller may do anyway, whether it would create anything there.
    async fn is_namespace_going(&self, namespace: &NamespaceName) -> bool {
        let path = format!(
            "/api/v1/namespaces/{}/serviceaccounts/default/token",
            encode(namespace.as_str())
        );
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"});
        let call = Call::try_create(&path, &request);
        let answer = self.cluster.send(Identity::Controller, call).await;
        answer.is_err_and(|error| error.is_of_a_going_namespace())
    }

    /// Has the owner woken by what it waits for. Returns when to look again if some of it may have come unnoticed.
    fn await_all(
        &self,
        key: &ObjectKey,
        awaited: &[Dependency],
        rights_changes: u64,
    ) -> Option<Duration> {
        self.dependencies.set(key, awaited);
        let waits_for_rights = awaited
            .iter()
            .any(|what| matches!(what, Dependency::Rights(_)));
        // The binding may have come between the refusal and this moment, when nobody waited for it.
        let missed =
            || (self.dependencies.rights_changes() != rights_changes).then_some(RIGHTS_SETTLE);
        let late = || self.dependencies.rights_may_be_late(key);
        waits_for_rights.then(|| missed().or_else(late)).flatten()
    }

    fn tell_owner(&self, owner: Subject<'_>, events: Vec<(EventReason, String)>) {
        for (reason, message) in events {
            let event = OwnerEvent {
                warning: reason.event_type() == EventType::Warning,
                reason: reason.as_str().to_owned(),
                message,
                immediate: true,
            };
            self.emit_for_owner(owner, [&event]);
        }
    }

    fn count_time_to_ready(&self, key: &ObjectKey, owner: Subject<'_>, ready: ConditionStatus) {
        let now = (self.clock)();
        if let Some(term) = self.metrics.term() {
            self.settling.begin_term(term);
        }
        let took = self.settling.reconciled(key, owner.object, ready, now);
        if let Some(seconds) = took {
            self.metrics.time_to_ready(self.kind.kind, seconds);
        }
    }

    async fn write(&self, owner: Subject<'_>, outcome: &Outcome) -> Result<Wrote, RequestError> {
        let object = Written {
            namespace: Some(owner.namespace.as_str()),
            name: owner.name.as_str(),
            uid: owner.uid,
        };
        let known = &owner.object["status"];
        let known = if self.shard.share.0.is_some() {
            // What another replica has written since stays, however late this one is.
            Some((WHOLE_STATUS, known))
        } else {
            outcome.unless_changed.map(|field| (field, known))
        };
        let written = self.statuses.write(object, &outcome.status, known).await?;
        // Where the next walk begins at once it goes on from what this one wrote, and would do so for ever.
        let is_pruned = outcome.again == Some(Duration::ZERO)
            && written["status"].as_object().is_some()
            && written["status"] != outcome.status;
        let wrote = match is_same_but_for_status(owner.object, &written) {
            _ if is_pruned => Wrote::Pruned,
            true => Wrote::Latest,
            false => Wrote::Changed,
        };
        self.owners.overlay(written);
        log::tell(&owner.object["status"], outcome);
        self.emit_for_owner(
            owner,
            outcome.events.iter().filter(|event| !event.immediate),
        );
        Ok(wrote)
    }

    fn emit_for_owner<'e>(
        &self,
        owner: Subject<'_>,
        events: impl IntoIterator<Item = &'e OwnerEvent>,
    ) {
        let (namespace, name) = (owner.namespace.as_str(), owner.name.as_str());
        let involved = InvolvedObject::of(self.kind.watched(), namespace, name, owner.uid);
        self.emit(&involved, events);
    }
}

/// Whether status is to say for the first time that something is missing or refused, as happens where a namespace goes.
fn is_refused_anew(present: ConditionStatus, outcome: &Outcome) -> bool {
    let refusals = [
        Reason::ServiceAccountError,
        Reason::ServiceAccountTokenError,
        Reason::TemplateRejectedByAPIServer,
        Reason::FailedToListCreatedObjects,
        Reason::StampedObjectRejectedByAPIServer,
    ];
    let is_refusal = || {
        let mut reasons = refusals.iter().map(Reason::as_str);
        reasons.any(|reason| outcome.reason == reason)
    };
    let is_news = outcome.ready == ConditionStatus::False && present != ConditionStatus::False;
    outcome.changed && is_news && is_refusal()
}

/// When to look again, by how and when at the latest.
pub(super) fn next(retry: Retry, again: Option<Duration>) -> Next {
    match (retry, again) {
        (Retry::Backoff, None) => Next::Backoff,
        (Retry::Backoff, Some(after)) => Next::BackoffWithin(after),
        (Retry::Slow | Retry::AwaitChange, Some(after)) => Next::After(after),
        (Retry::Slow, None) => Next::Slow,
        (Retry::AwaitChange, None) => Next::Done,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use tower_test::mock;

    use super::*;
    use crate::args::{AccountArgs, ConcurrencyFlag, LimitArgs};
    use crate::cluster::Cluster;
    use crate::metrics::Metrics;
    use crate::owner::{Settings, Shard, shell};
    use crate::process::{Process, Program};
    use crate::shutdown::Tasks;
    use crate::status_key::StatusKeys;

    /// What is to be written of a reconcile that came to this.
    fn outcome(ready: ConditionStatus, reason: &Reason) -> Outcome {
        Outcome {
            status: json!({"observedGeneration": 1}),
            changed: true,
            events: Vec::new(),
            retry: Retry::AwaitChange,
            removals: Vec::new(),
            again: None,
            write_now: true,
            unless_changed: None,
            obsolete_artifacts: Vec::new(),
            tells_all: false,
            ready,
            reason: reason.as_str().into_owned(),
            end: Ended::Settled,
        }
    }

    const PROGRAM: Program = Program {
        name: "supplychain-controller",
        about: "",
        version: "",
        user_agent: "",
        field_manager: "carto-supplychain",
        concurrency: ConcurrencyFlag::new("at-once", "Objects"),
    };

    /// A controller whose API server is scripted.
    struct Scene {
        shell: Arc<OwnerShell>,
        server: mock::Handle<Request<Body>, Response<Body>>,
    }

    impl Scene {
        fn set() -> Self {
            let (service, server) = mock::pair::<Request<Body>, Response<Body>>();
            let client = kube::Client::new(service, "default");
            let (metrics, tasks) = (Arc::new(Metrics::new()), Tasks::new());
            let settings = Settings {
                kind: realizer::Family::SupplyChain.into(),
                status_keys: StatusKeys::none(),
                accounts: AccountArgs::default(),
                limits: LimitArgs::default(),
                shard: Shard::default(),
            };
            let cluster = Cluster::new(client.clone(), client, metrics.clone());
            let shell = shell(settings, &Process::new(PROGRAM, cluster, metrics, tasks));
            Self { shell, server }
        }

        /// What follows from a walk whose status is to be written, where the API server answers so, or not at all.
        async fn after(
            &mut self,
            overload: Option<Overload>,
            answer: Option<(StatusCode, &str)>,
        ) -> Reconciled {
            let settled = outcome(ConditionStatus::True, &Reason::Ready);
            let realized = Realized {
                overload,
                ..Realized::unrealized(settled, Vec::new())
            };
            self.report(realized, http::Method::PATCH, answer).await
        }

        /// What follows where the API server is asked by one request of this method, and answers so.
        async fn report(
            &mut self,
            realized: Realized,
            method: http::Method,
            answer: Option<(StatusCode, &str)>,
        ) -> Reconciled {
            let Self { shell, server } = self;
            let (namespace, name) = (
                NamespaceName::try_from("dev").unwrap(),
                ObjectName::try_from("app").unwrap(),
            );
            let owner = Subject {
                namespace: &namespace,
                name: &name,
                uid: "u",
                object: &serde_json::from_str(OWNER).unwrap(),
                ready: ConditionStatus::Unknown,
            };
            let key = ObjectKey::new("dev", "app");
            let answering = async {
                let (request, send) = server.next_request().await.unwrap();
                assert_eq!(request.method(), method);
                match answer {
                    Some((code, answer)) => {
                        let body = Body::from(answer.as_bytes().to_vec());
                        send.send_response(Response::builder().status(code).body(body).unwrap());
                    }
                    None => send.send_error("connection refused"),
                }
            };
            tokio::join!(shell.report(&key, owner, realized, 0), answering).0
        }
    }

    const OWNER: &str = r#"{"metadata": {"namespace": "dev", "name": "app", "uid": "u"}}"#;

    /// Of the first walk of a controller.
    async fn after_answer(code: StatusCode, answer: &str) -> Reconciled {
        Scene::set().after(None, Some((code, answer))).await
    }

    /// How long nothing is asked, and when it is tried again.
    fn rest(reconciled: &Reconciled) -> (Duration, Duration) {
        assert_eq!(reconciled.outcome, "infrastructure");
        match reconciled.next {
            Next::Rest { hold, wait } => (hold, wait),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_status_is_written_again_unless_its_object_is_gone() {
        let gone = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound",
            "message": "workloads.carto.run \"app\" not found", "details": {"name": "app", "group": "carto.run", "kind": "workloads"}}"#;
        assert_eq!(
            after_answer(StatusCode::NOT_FOUND, gone).await,
            Reconciled::new(Next::Done, "settled")
        );
        let withdrawn = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound",
            "message": "the server could not find the requested resource", "details": {}}"#;
        for of_the_path in ["404 page not found\n", withdrawn] {
            let reconciled = after_answer(StatusCode::NOT_FOUND, of_the_path).await;
            let unwritten = Reconciled::new(Next::Backoff, "infrastructure");
            assert_eq!(reconciled, unwritten, "{of_the_path}");
        }
    }

    /// The walk after it would find what this one found, and begin at once as well.
    #[tokio::test]
    async fn where_fields_of_a_status_are_dropped_nothing_is_written_over_and_over() {
        let owner_with = |status: Value| {
            let mut owner: Value = serde_json::from_str(OWNER).unwrap();
            owner["status"] = status;
            owner.to_string()
        };
        let kept = json!({"observedGeneration": 1});
        for (stored, expected) in [
            (kept, Next::After(Duration::ZERO)),
            (json!({}), Next::Backoff),
        ] {
            let urgent = Outcome {
                again: Some(Duration::ZERO),
                ..outcome(ConditionStatus::True, &Reason::Ready)
            };
            let realized = Realized::unrealized(urgent, Vec::new());
            let answer = owner_with(stored);
            let answer = Some((StatusCode::OK, answer.as_str()));
            let reconciled = Scene::set()
                .report(realized, http::Method::PATCH, answer)
                .await;
            assert_eq!(reconciled.next, expected);
        }
    }

    /// There is nothing to wait for: nothing is written, and nobody asks again.
    #[tokio::test]
    async fn an_owner_whose_namespace_is_going_is_not_looked_at_again_by_itself() {
        let going = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
            "message": "forbidden", "details": {"causes": [{"reason": "NamespaceTerminating", "message": "it is being terminated",
            "field": "metadata.namespace"}]}}"#;
        let refused = outcome(ConditionStatus::False, &Reason::TemplateRejectedByAPIServer);
        let realized = Realized::unrealized(refused, Vec::new());
        let answer = Some((StatusCode::FORBIDDEN, going));
        let reconciled = Scene::set()
            .report(realized, http::Method::POST, answer)
            .await;
        assert_eq!(reconciled.next, Next::Done);
    }

    const THROTTLED: &str = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429, "reason": "TooManyRequests",
        "message": "not now", "details": {"retryAfterSeconds": 3}}"#;
    const ASKED: Duration = Duration::from_secs(3);
    /// No try comes later than this after the API server is well again.
    const SOON: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_status_that_is_throttled_is_written_no_earlier_than_asked_and_ever_less_often() {
        let mut scene = Scene::set();
        let mut waits = Vec::new();
        for _ in 0..10 {
            let answer = Some((StatusCode::TOO_MANY_REQUESTS, THROTTLED));
            let (hold, wait) = rest(&scene.after(None, answer).await);
            assert!(hold >= ASKED && wait >= hold, "{hold:?} {wait:?}");
            waits.push(wait);
        }
        assert!(waits[0] <= ASKED * 2, "{waits:?}");
        assert!(waits[9] >= ASKED + SOON / 2, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= ASKED + SOON), "{waits:?}");
        let next = scene.after(None, Some((StatusCode::OK, OWNER))).await;
        assert_eq!(next, Reconciled::new(Next::Done, "settled"));
        let answer = Some((StatusCode::TOO_MANY_REQUESTS, THROTTLED));
        let (_, wait) = rest(&scene.after(None, answer).await);
        assert!(wait <= ASKED * 2, "it begins anew: {wait:?}");
    }

    #[tokio::test]
    async fn after_an_outage_of_any_length_a_status_is_written_soon() {
        let told = Some(Overload {
            asked: Duration::ZERO,
            is_borne: false,
            is_failure: true,
        });
        let unable = Some((StatusCode::SERVICE_UNAVAILABLE, "not now"));
        // The walk met it, too, or nothing but the status did.
        for (overload, answer) in [(told, None), (told, unable), (None, None), (None, unable)] {
            let mut scene = Scene::set();
            for _ in 0..12 {
                let (_, wait) = rest(&scene.after(overload, answer).await);
                assert!(wait <= SOON, "{wait:?}");
            }
        }
    }

    #[tokio::test]
    async fn what_the_write_of_the_status_is_asked_to_wait_is_waited_after_a_walk_in_trouble() {
        let overload = Some(Overload {
            asked: Duration::from_secs(1),
            is_borne: false,
            is_failure: true,
        });
        let answer = Some((StatusCode::TOO_MANY_REQUESTS, THROTTLED));
        let (hold, wait) = rest(&Scene::set().after(overload, answer).await);
        assert!(hold >= ASKED && wait > hold, "{hold:?} {wait:?}");
    }

    #[test]
    fn a_look_that_is_due_does_not_wait_for_a_back_off() {
        assert_eq!(next(Retry::Backoff, None), Next::Backoff);
        assert_eq!(
            next(Retry::Backoff, Some(Duration::from_secs(1))),
            Next::BackoffWithin(Duration::from_secs(1))
        );
        assert_eq!(
            next(Retry::Slow, Some(Duration::from_secs(1))),
            Next::After(Duration::from_secs(1))
        );
        assert_eq!(next(Retry::Slow, None), Next::Slow);
        assert_eq!(next(Retry::AwaitChange, None), Next::Done);
    }
}
