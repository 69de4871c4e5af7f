//! Writing the status of objects of one kind, of whatever group: as rarely as it can be, and never over a namesake.
//!
//! While an object is still moving its status is held back for a moment, so that several changes are one write
//! (`docs/adr/0004`). What a controller says in it, and when it looks again, is its own affair.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use api_types::ConditionStatus;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::{Call, Cluster, Identity, RequestError, encode};
use crate::object_key::ObjectKey;
use crate::reflect::Watched;
use crate::share::MayShare;

/// While an object is still moving its status is written at most this often, so that a chain of five
/// steps costs two status writes and not six. That Ready becomes True or False is written at once.
const COALESCE: Duration = Duration::from_millis(250);
/// While many objects move at once each takes longer, and its status would be written at every step again:
/// the time grows by this much for each of them,
const COALESCE_PER_OBJECT: Duration = Duration::from_millis(20);
/// but to no more than this.
const COALESCE_LONGEST: Duration = Duration::from_secs(2);

/// In place of the name of a field: all of them.
pub const WHOLE_STATUS: &str = "";

/// Writes the statuses of one kind.
pub struct StatusWriter {
    cluster: Cluster,
    kind: Watched,
    field_manager: &'static str,
    /// With whom the objects are shared.
    share: MayShare,
    /// Since when an object has a status that is not written yet.
    held_back: Mutex<HashMap<ObjectKey, Instant>>,
}

/// The object whose status is written.
#[derive(Debug, Clone, Copy)]
pub struct Written<'o> {
    /// Its namespace; none if it is cluster-scoped.
    pub namespace: Option<&'o str>,
    /// Its name.
    pub name: &'o str,
    /// Its uid; a namesake created since is left alone.
    pub uid: &'o str,
}

/// What a status says that the stored one does not.
#[derive(Debug, Clone, Copy)]
pub struct News {
    /// Status of `Ready` in the stored one.
    pub present: ConditionStatus,
    /// Status of `Ready` from now on.
    pub ready: ConditionStatus,
    /// Whether it is to be written at once, whatever `Ready` says.
    pub is_urgent: bool,
}

/// When a status is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// It says nothing new.
    Never,
    /// At once.
    Now,
    /// It is held back. After this time the object has to be looked at again.
    After(Duration),
}

/// What follows from a status that could not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwritten {
    /// The object is gone, and its deletion's event ends all; or a namesake has replaced it, whose own event starts that one.
    Gone,
    /// The API server could not, or asks for time. No event tells when it is well again.
    Prevented {
        /// How long it asked to be left alone.
        asked: Duration,
    },
    /// Refused. A 404 that is not of the object is of the path, while the API server starts or a version goes.
    Refused,
}

impl StatusWriter {
    /// Writes as this field manager.
    pub fn new(cluster: &Cluster, kind: Watched, field_manager: &'static str) -> Self {
        Self {
            cluster: cluster.clone(),
            kind,
            field_manager,
            share: MayShare::default(),
            held_back: Mutex::default(),
        }
    }

    /// Of one of the replicas that share the objects. As many move at each of the others, and all ask one API server: each by
    /// itself would take the third of a crowd for the whole, and write the statuses more often.
    #[must_use]
    pub fn of_share(self, share: MayShare) -> Self {
        Self { share, ..self }
    }

    /// When to write what is new; `None` if nothing is.
    pub fn due(&self, key: &ObjectKey, news: Option<News>) -> Due {
        let replicas = self.share.replicas();
        let mut held_back = self.held_back.lock();
        let Some(news) = news else {
            held_back.remove(key);
            return Due::Never;
        };
        let now = Instant::now();
        let since = *held_back.entry(key.clone()).or_insert(now);
        let waited = now.duration_since(since);
        let settles = news.ready != ConditionStatus::Unknown && news.ready != news.present;
        let window = window(held_back.len().saturating_mul(replicas));
        if settles || news.is_urgent || waited >= window {
            held_back.remove(key);
            return Due::Now;
        }
        Due::After(window.saturating_sub(waited))
    }

    /// Whether the object has a status that is not written yet.
    pub fn holds_back(&self, key: &ObjectKey) -> bool {
        self.held_back.lock().contains_key(key)
    }

    /// The object is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.held_back.lock().remove(key);
    }

    /// Replaces the whole status, and returns the object as it is then; a store overlays it.
    ///
    /// One JSON patch: exact like a PUT, but it cannot conflict with a writer of `spec` or metadata. It is refused when a
    /// field of the status, or the [`WHOLE_STATUS`], is not as in the `known` one any more, if one is named.
    ///
    /// # Errors
    /// When the API server refuses or cannot be reached; see [`Unwritten`].
    pub async fn write(
        &self,
        object: Written<'_>,
        status: &Value,
        known: Option<(&str, &Value)>,
    ) -> Result<Value, RequestError> {
        let mut operations =
            vec![json!({"op": "test", "path": "/metadata/uid", "value": object.uid})];
        operations.extend(known.map(|(field, known)| still(field, known)));
        operations.push(json!({"op": "add", "path": "/status", "value": status}));
        let operations = Value::Array(operations);
        let path = format!("{}/status", self.kind.path(object.namespace, object.name));
        let call = Call::json_patch(&path, self.field_manager, &operations);
        let answer = self.cluster.send(Identity::Controller, call).await?;
        Ok(answer.body)
    }
}

impl Unwritten {
    /// What follows from this error.
    pub fn of(error: &RequestError) -> Self {
        if error.is_missing_object() {
            return Self::Gone;
        }
        match error.retry_after() {
            None if !error.passes_by_itself() => Self::Refused,
            asked => Self::Prevented {
                asked: asked.unwrap_or_default(),
            },
        }
    }
}

impl Watched {
    /// `<group>/<version>`, as objects write it; of the core group only the version.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Path of an object's URL.
    pub fn path(&self, namespace: Option<&str>, name: &str) -> String {
        format!("{}/{}", self.collection(namespace), encode(name))
    }

    /// Path of the URL of all objects, or those of a namespace.
    pub fn collection(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        let namespace = namespace.map(encode);
        let namespace = namespace.map_or_else(String::new, |name| format!("namespaces/{name}/"));
        let (version, plural) = (self.api_version(), self.plural);
        format!("/{root}/{version}/{namespace}{plural}")
    }
}

/// Whether two states of an object differ in nothing but what a status write changes.
pub fn is_same_but_for_status(reconciled: &Value, written: &Value) -> bool {
    fn rest<'v>(value: &'v Value, changed: &[&str]) -> BTreeMap<&'v str, &'v Value> {
        value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.as_str(), value))
            .filter(|(key, _)| !changed.contains(key))
            .collect()
    }
    let metadata = |object| rest(object, &["resourceVersion", "managedFields"]);
    rest(reconciled, &["status", "metadata"]) == rest(written, &["status", "metadata"])
        && metadata(&reconciled["metadata"]) == metadata(&written["metadata"])
}

/// That a field of the status is what it is in this one. To compare with null is to ask that there is none.
fn still(field: &str, known: &Value) -> Value {
    if field == WHOLE_STATUS {
        json!({"op": "test", "path": "/status", "value": known})
    } else if known.is_object() {
        json!({"op": "test", "path": format!("/status/{field}"), "value": known[field]})
    } else {
        json!({"op": "test", "path": "/status", "value": null})
    }
}

/// How long a status may wait while this many objects have one that waits.
fn window(moving: usize) -> Duration {
    let others = u32::try_from(moving.saturating_sub(1)).unwrap_or(u32::MAX);
    COALESCE
        .saturating_add(COALESCE_PER_OBJECT.saturating_mul(others))
        .min(COALESCE_LONGEST)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use tower_test::mock;

    use super::*;
    use crate::metrics::Metrics;

    const INTENTS: Watched = Watched {
        group: "conventions.carto.run",
        version: "v1alpha1",
        kind: "PodIntent",
        plural: "podintents",
    };

    fn scene() -> (StatusWriter, mock::Handle<Request<Body>, Response<Body>>) {
        let (service, server) = mock::pair();
        let client = kube::Client::new(service, "default");
        let cluster = Cluster::new(client.clone(), client, Arc::new(Metrics::new()));
        (
            StatusWriter::new(&cluster, INTENTS, "carto-conventions"),
            server,
        )
    }

    fn moves(ready: ConditionStatus) -> News {
        News {
            present: ConditionStatus::Unknown,
            ready,
            is_urgent: false,
        }
    }

    #[tokio::test]
    async fn a_status_of_any_group_is_one_patch_that_asks_for_the_same_object() {
        let (writer, mut server) = scene();
        let object = Written {
            namespace: Some("dev"),
            name: "app",
            uid: "u",
        };
        let (status, known) = (json!({"template": {}}), json!({"observedGeneration": 1}));
        let answering = async {
            let (request, send) = server.next_request().await.unwrap();
            let uri = request.uri().to_string();
            let body = request.into_body().collect_bytes().await.unwrap();
            send.send_response(Response::new(Body::from(
                br#"{"kind": "PodIntent"}"#.to_vec(),
            )));
            (uri, serde_json::from_slice::<Value>(&body).unwrap())
        };
        let writing = writer.write(object, &status, Some(("observedGeneration", &known)));
        let (written, (uri, body)) = tokio::join!(writing, answering);
        assert_eq!(written.unwrap(), json!({"kind": "PodIntent"}));
        assert_eq!(
            uri,
            "/apis/conventions.carto.run/v1alpha1/namespaces/dev/podintents/app/status?fieldManager=carto-conventions"
        );
        assert_eq!(
            body,
            json!([
                {"op": "test", "path": "/metadata/uid", "value": "u"},
                {"op": "test", "path": "/status/observedGeneration", "value": 1},
                {"op": "add", "path": "/status", "value": {"template": {}}},
            ])
        );
    }

    #[test]
    fn an_object_of_the_core_group_and_one_of_the_cluster_have_paths_too() {
        let nodes = Watched {
            group: "",
            version: "v1",
            kind: "Node",
            plural: "nodes",
        };
        assert_eq!(nodes.path(None, "a/b"), "/api/v1/nodes/a%2Fb");
        assert_eq!(nodes.api_version(), "v1");
    }

    #[tokio::test(start_paused = true)]
    async fn what_moves_is_held_back_and_what_settles_is_not() {
        let (writer, _server) = scene();
        let key = ObjectKey::new("dev", "app");
        let unknown = Some(moves(ConditionStatus::Unknown));
        assert_eq!(writer.due(&key, unknown), Due::After(COALESCE));
        assert!(writer.holds_back(&key));
        tokio::time::advance(COALESCE).await;
        assert_eq!(writer.due(&key, unknown), Due::Now);
        assert!(!writer.holds_back(&key));
        assert_eq!(writer.due(&key, unknown), Due::After(COALESCE));
        assert_eq!(
            writer.due(&key, Some(moves(ConditionStatus::True))),
            Due::Now
        );
        assert_eq!(writer.due(&key, unknown), Due::After(COALESCE));
        assert_eq!(writer.due(&key, None), Due::Never);
        assert!(!writer.holds_back(&key));
        let urgent = unknown.map(|news| News {
            is_urgent: true,
            ..news
        });
        assert_eq!(writer.due(&key, urgent), Due::Now);
    }

    #[test]
    fn what_follows_from_a_refusal_depends_on_what_was_refused() {
        let refused = |code: u16, status: Value, retry_after| RequestError::Refused {
            code: StatusCode::from_u16(code).unwrap(),
            status: Box::new(serde_json::from_value(status).unwrap()),
            retry_after,
        };
        let named = json!({"details": {"name": "app"}});
        assert_eq!(Unwritten::of(&refused(404, named, None)), Unwritten::Gone);
        let path = refused(404, json!({}), None);
        assert_eq!(Unwritten::of(&path), Unwritten::Refused);
        let asked = Duration::from_secs(3);
        let throttled = refused(429, json!({}), Some(asked));
        assert_eq!(Unwritten::of(&throttled), Unwritten::Prevented { asked });
        let broken = RequestError::Transport("reset".to_owned());
        let asked = Duration::ZERO;
        assert_eq!(Unwritten::of(&broken), Unwritten::Prevented { asked });
    }

    #[test]
    fn a_status_waits_longer_while_many_owners_move() {
        assert_eq!(window(1), COALESCE);
        assert_eq!(window(11), COALESCE + COALESCE_PER_OBJECT * 10);
        assert_eq!(window(100_000), COALESCE_LONGEST);
    }

    #[test]
    fn a_change_that_arrived_with_the_reply_is_not_taken_for_our_own() {
        let object = |version: &str, managers: u8, label: &str, spec: u8, status: u8| {
            json!({"kind": "Workload", "spec": {"a": spec}, "status": status,
                "metadata": {"name": "w", "labels": {"l": label}, "resourceVersion": version, "managedFields": [managers]}})
        };
        let reconciled = object("1", 1, "x", 1, 1);
        assert!(is_same_but_for_status(
            &reconciled,
            &object("2", 2, "x", 1, 2)
        ));
        assert!(!is_same_but_for_status(
            &reconciled,
            &object("3", 2, "x", 2, 2)
        ));
        assert!(!is_same_but_for_status(
            &reconciled,
            &object("3", 2, "y", 1, 2)
        ));
        // The store leaves the managed fields out.
        let mut stored = reconciled.clone();
        stored["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("managedFields");
        assert!(is_same_but_for_status(&stored, &object("2", 2, "x", 1, 2)));
    }
}
