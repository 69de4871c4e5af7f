//! From kind to resource: which path serves a kind, and whether it is namespaced.
//!
//! Discovery is read per group version on first use and kept. A kind that is not served is asked for
//! again when a CustomResourceDefinition changes, or after a pause: a definition that is installed
//! late heals by itself.

mod any_version;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;
use serde_json::Value;
use thiserror::Error;
use tokio::time::Instant;

pub use submission::Kind;

use crate::cluster::{Call, Cluster, Identity, RequestError, encode};

/// A negative answer is believed this long; what the server says of itself may be as much behind.
pub(crate) const ABSENT_FOR: Duration = Duration::from_secs(2);

/// A question is asked this often if definitions change under the answers; whoever wanted to know is retried.
const QUESTIONS: u32 = 4;

/// How the API server serves a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The kind.
    pub kind: Kind,
    /// Plural name in paths.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether `status` is a subresource, which an apply to the object itself does not change.
    pub status_subresource: bool,
}

impl Served {
    /// `<plural>` in the core group, else `<plural>.<group>`.
    pub fn qualified(&self) -> String {
        match self.kind.group() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// As kube's clients name it.
    pub(crate) fn resource(&self) -> kube::api::ApiResource {
        let api_version = &self.kind.api_version;
        let version = api_version.split_once('/').map(|(_, version)| version);
        kube::api::ApiResource {
            group: self.kind.group().to_owned(),
            version: version.unwrap_or(api_version).to_owned(),
            api_version: api_version.clone(),
            kind: self.kind.kind.clone(),
            plural: self.plural.clone(),
        }
    }

    /// Path of the collection, in a namespace if the kind is namespaced and one is given.
    pub fn collection(&self, namespace: Option<&str>) -> String {
        let root = root(&self.kind.api_version);
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/namespaces/{}/{}", encode(namespace), self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }

    /// Path of one object.
    pub fn object(&self, namespace: &str, name: &str) -> String {
        format!("{}/{}", self.collection(Some(namespace)), encode(name))
    }
}

fn root(api_version: &str) -> String {
    if api_version.contains('/') {
        format!("/apis/{api_version}")
    } else {
        format!("/api/{api_version}")
    }
}

/// Why a kind has no mapping.
#[derive(Debug, Error)]
pub enum MapError {
    /// The API server does not serve it (yet).
    #[error("no matches for kind \"{}\" in version \"{}\"", .kind.kind, .kind.api_version)]
    NotServed {
        /// What was asked for.
        kind: Kind,
        /// Whether any kind is served in this version of its group.
        has_version: bool,
    },
    /// Discovery could not be read.
    #[error("failed to read discovery of [{api_version}]: {error}")]
    Discovery {
        /// Whose kinds were asked for.
        api_version: String,
        /// Why there is no answer.
        #[source]
        error: RequestError,
    },
}

#[derive(Default)]
struct Known {
    served: HashMap<Kind, Arc<Served>>,
    absent: HashMap<Kind, Absent>,
    /// First and last time that a kind was found in no version of its group.
    missing: HashMap<Kind, (Instant, Instant)>,
    /// How often anything was forgotten. An answer to a question asked before may be out of date.
    forgotten: u64,
}

/// That a kind is not served is believed for a while.
#[derive(Clone, Copy)]
struct Absent {
    until: Instant,
    has_version: bool,
}

impl Known {
    /// The answer to a question about `kind`.
    fn keep(&mut self, kind: &Kind, found: Option<Vec<Arc<Served>>>) {
        let has_version = found.is_some();
        for served in found.into_iter().flatten() {
            self.served.insert(served.kind.clone(), served);
        }
        if !self.served.contains_key(kind) {
            // Kinds may be named by owners: what is not believed any more is not kept either.
            let now = Instant::now();
            self.absent.retain(|_, absent| now < absent.until);
            let until = now + ABSENT_FOR;
            self.absent
                .insert(kind.clone(), Absent { until, has_version });
        }
    }
}

/// The mapping, shared by all owners.
pub struct Mapper {
    cluster: Cluster,
    known: Mutex<Known>,
}

impl Mapper {
    /// An empty mapping over `cluster`.
    pub fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            known: Mutex::default(),
        }
    }

    /// How `kind` is served.
    ///
    /// # Errors
    /// [`MapError::NotServed`] when the kind does not exist (the user installs it or corrects the
    /// template), [`MapError::Discovery`] when the server could not be asked.
    pub async fn served(&self, kind: &Kind) -> Result<Arc<Served>, MapError> {
        if let Some(served) = self.lookup(kind)? {
            return Ok(served);
        }
        let (mut answer, mut has_version) = (None, false);
        for _ in 0..QUESTIONS {
            let asked = self.known.lock().forgotten;
            let found =
                self.discover(&kind.api_version)
                    .await
                    .map_err(|error| MapError::Discovery {
                        api_version: kind.api_version.clone(),
                        error,
                    })?;
            has_version = found.is_some();
            let mut all = found.iter().flatten();
            answer = all.find(|served| served.kind == *kind).cloned();
            let mut known = self.known.lock();
            // Otherwise a definition changed while the question was under way, and the answer may be of before.
            if known.forgotten == asked {
                known.keep(kind, found);
                break;
            }
        }
        let kind = kind.clone();
        answer.ok_or(MapError::NotServed { kind, has_version })
    }

    #[cfg(test)]
    fn known(&self, kind: &Kind) -> Option<Arc<Served>> {
        self.known.lock().served.get(kind).cloned()
    }

    /// Forgets a group: one of its definitions changed. Returns whether anything was known or missed.
    pub(crate) fn forget_group(&self, group: &str) -> bool {
        let mut known = self.known.lock();
        known.forgotten += 1;
        let before = known.served.len() + known.absent.len();
        known.served.retain(|kind, _| kind.group() != group);
        known.absent.retain(|kind, _| kind.group() != group);
        known.missing.retain(|kind, _| kind.group() != group);
        before != known.served.len() + known.absent.len()
    }

    /// Forgets everything: definitions may have changed unseen.
    pub(crate) fn forget_all(&self) {
        let mut known = self.known.lock();
        *known = Known {
            forgotten: known.forgotten + 1,
            ..Known::default()
        };
    }

    fn lookup(&self, kind: &Kind) -> Result<Option<Arc<Served>>, MapError> {
        let mut known = self.known.lock();
        if let Some(served) = known.served.get(kind) {
            return Ok(Some(served.clone()));
        }
        match known.absent.get(kind).copied() {
            Some(Absent { until, has_version }) if Instant::now() < until => {
                let kind = kind.clone();
                Err(MapError::NotServed { kind, has_version })
            }
            Some(_) => {
                known.absent.remove(kind);
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// The kinds in a version of a group, if there is such a version.
    async fn discover(&self, api_version: &str) -> Result<Option<Vec<Arc<Served>>>, RequestError> {
        let uri = match api_version.split_once('/') {
            Some((group, version)) => format!("/apis/{}/{}", encode(group), encode(version)),
            None => format!("/api/{}", encode(api_version)),
        };
        let list = self.read(uri).await?;
        let served = list.map(|list| parse(api_version, &list).into_iter());
        Ok(served.map(|served| served.map(Arc::new).collect()))
    }

    /// A document of discovery, if there is one.
    async fn read(&self, uri: String) -> Result<Option<Value>, RequestError> {
        let call = Call::get(uri);
        match self.cluster.send(Identity::Controller, call).await {
            Ok(answer) => Ok(Some(answer.body)),
            Err(error) if error.is(StatusCode::NOT_FOUND) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn parse(api_version: &str, list: &Value) -> Vec<Served> {
    let resources = || list["resources"].as_array().into_iter().flatten();
    let names = resources().filter_map(|resource| resource["name"].as_str());
    let with_status: Vec<&str> = names
        .filter_map(|name| name.strip_suffix("/status"))
        .collect();
    resources()
        .filter_map(|resource| {
            let plural = resource["name"].as_str()?;
            let kind = resource["kind"].as_str()?;
            let served = || Served {
                kind: Kind::new(api_version, kind),
                namespaced: resource["namespaced"].as_bool().unwrap_or_default(),
                status_subresource: with_status.contains(&plural),
                plural: plural.to_owned(),
            };
            (!plural.contains('/')).then(served)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn discovery_tells_scope_plural_and_status_subresource() {
        let list = json!({"resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": true},
            {"name": "deployments/status", "kind": "Deployment", "namespaced": true},
            {"name": "deployments/scale", "kind": "Scale", "namespaced": true},
            {"name": "things", "kind": "Thing", "namespaced": false},
        ]});
        let served = parse("apps/v1", &list);
        assert_eq!(served.len(), 2);
        assert_eq!(served[0].qualified(), "deployments.apps");
        assert!(served[0].status_subresource && served[0].namespaced);
        assert!(!served[1].status_subresource && !served[1].namespaced);
    }

    type Request = http::Request<kube::client::Body>;
    type Response = http::Response<kube::client::Body>;

    fn answer(resources: &Value) -> Response {
        let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "g/v1", "resources": resources});
        http::Response::new(kube::client::Body::from(list.to_string().into_bytes()))
    }

    /// Asks while the first of the two answers is overtaken by a change of definitions.
    async fn overtaken(
        mapper: &Mapper,
        server: &mut tower_test::mock::Handle<Request, Response>,
        forget: impl Fn(&Mapper),
        answers: [Value; 2],
    ) -> Result<Arc<Served>, MapError> {
        let [before, after] = answers;
        let kind = Kind::new("g/v1", "Thing");
        let both = async {
            tokio::join!(mapper.served(&kind), async {
                let (_, first) = server.next_request().await.unwrap();
                forget(mapper);
                first.send_response(answer(&before));
                let (_, second) = server.next_request().await.unwrap();
                second.send_response(answer(&after));
            })
        };
        let (served, ()) = tokio::time::timeout(Duration::from_mins(1), both)
            .await
            .expect("it is asked twice");
        served
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_from_before_a_definition_changed_is_not_believed() {
        let (service, mut server) = tower_test::mock::pair::<Request, Response>();
        let client = kube::Client::new(service, "default");
        let metrics = Arc::new(crate::metrics::Metrics::new());
        let mapper = Mapper::new(Cluster::new(client.clone(), client, metrics));
        let (nothing, things) = (
            json!([]),
            json!([{"name": "things", "kind": "Thing", "namespaced": true}]),
        );

        let comes = [nothing.clone(), things.clone()];
        let forget_group = |mapper: &Mapper| {
            mapper.forget_group("g");
        };
        let served = overtaken(&mapper, &mut server, forget_group, comes).await;
        let served = served.unwrap();
        assert_eq!(mapper.known(&served.kind), Some(served.clone()));

        mapper.forget_all();
        let goes = [things, nothing];
        let refused = overtaken(&mapper, &mut server, Mapper::forget_all, goes).await;
        assert!(matches!(refused, Err(MapError::NotServed { .. })));
        assert_eq!(mapper.known(&served.kind), None);
    }

    #[test]
    fn paths_follow_group_and_scope() {
        let served = |api_version: &str, namespaced| Served {
            kind: Kind::new(api_version, "X"),
            plural: "xs".into(),
            namespaced,
            status_subresource: false,
        };
        assert_eq!(
            served("v1", true).object("ns", "a"),
            "/api/v1/namespaces/ns/xs/a"
        );
        assert_eq!(served("g/v1", true).collection(None), "/apis/g/v1/xs");
        assert_eq!(served("g/v1", false).object("ns", "a"), "/apis/g/v1/xs/a");
        assert_eq!(served("v1", true).qualified(), "xs");
    }
}
