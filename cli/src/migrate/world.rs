//! What a rehearsal asks a cluster for: kinds, objects, schemas, and clients with the rights of service accounts. What was
//! asked once is kept; nothing is written.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::config::AuthInfo;
use kube::{Client, Config};
use realizer::{SubmitFailure, SubmitFailureKind};
use serde_json::Value;
use submission::Kind;
use submission::openapi::KindSchema;

use super::patience::Patience;
use crate::cluster::Cluster;

/// So many objects are listed at a time.
const PAGE: u32 = 500;

/// Long enough for one rehearsal of an owner; the shortest that the API server issues.
const TOKEN_SECONDS: i64 = 600;

/// How the API server serves a kind.
#[derive(Debug, Clone)]
pub(super) struct Served {
    pub(super) resource: ApiResource,
    pub(super) namespaced: bool,
}

impl Served {
    pub(super) fn api(&self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        if self.namespaced && !namespace.is_empty() {
            Api::namespaced_with(client.clone(), namespace, &self.resource)
        } else {
            Api::all_with(client.clone(), &self.resource)
        }
    }

    /// `<plural>` of the core group, else `<plural>.<group>`.
    pub(super) fn qualified(&self) -> String {
        let ApiResource { group, plural, .. } = &self.resource;
        if group.is_empty() {
            plural.clone()
        } else {
            format!("{plural}.{group}")
        }
    }
}

/// With whose rights something is tried.
#[derive(Clone)]
pub(super) struct Rights {
    pub(super) client: Client,
    /// Whether these are those of the service account.
    pub(super) of_account: bool,
}

/// All objects of a kind that have a label.
type Listed = Arc<Result<Vec<Value>, SubmitFailure>>;

/// A cluster, and what is known of it.
pub(super) struct World {
    pub(super) client: Client,
    config: Config,
    patience: Patience,
    resources: HashMap<String, Result<Vec<APIResource>, String>>,
    stamped: HashMap<(Kind, &'static str), Listed>,
    schemas: HashMap<Kind, Option<Arc<KindSchema>>>,
    rights: HashMap<(String, String), Result<Rights, String>>,
}

impl World {
    pub(super) fn new(cluster: &Cluster, patience: &Patience) -> Self {
        Self {
            client: cluster.client.clone(),
            config: cluster.config.clone(),
            patience: patience.clone(),
            resources: HashMap::new(),
            stamped: HashMap::new(),
            schemas: HashMap::new(),
            rights: HashMap::new(),
        }
    }

    /// How a kind is served; the error is what the API server says.
    pub(super) async fn served(&mut self, kind: &Kind) -> Result<Served, String> {
        let version = &kind.api_version;
        if !self.resources.contains_key(version) {
            let listed = if version.contains('/') {
                self.client.list_api_group_resources(version).await
            } else {
                self.client.list_core_api_resources(version).await
            };
            let listed = listed.map(|list| list.resources);
            let listed = listed.map_err(|error| in_words(&error));
            self.resources.insert(version.clone(), listed);
        }
        let resources = match self.resources.get(version) {
            Some(Ok(resources)) => resources,
            Some(Err(error)) => return Err(format!("{kind} is not served: {error}")),
            None => return Err(format!("{kind} is not served")),
        };
        let is_it = |it: &&APIResource| it.kind == kind.kind && !it.name.contains('/');
        let found = resources.iter().find(is_it);
        let found = found.ok_or_else(|| format!("{kind} is not served"))?;
        let group = kind.group();
        let short = version.split_once('/').map_or(&**version, |(_, it)| it);
        Ok(Served {
            resource: ApiResource {
                group: group.to_owned(),
                version: short.to_owned(),
                api_version: version.clone(),
                kind: kind.kind.clone(),
                plural: found.name.clone(),
            },
            namespaced: found.namespaced,
        })
    }

    /// All objects of a kind that have a label.
    pub(super) async fn stamped(
        &mut self,
        kind: &Kind,
        served: &Served,
        label: &'static str,
    ) -> Listed {
        let key = (kind.clone(), label);
        if let Some(known) = self.stamped.get(&key) {
            return known.clone();
        }
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &served.resource);
        let params = ListParams::default().labels(label);
        let listed = all_of(&api, params).await.map_err(|error| SubmitFailure {
            kind: SubmitFailureKind::List,
            message: format!("unable to list from api server: {}", in_words(&error)),
        });
        let listed = Arc::new(listed);
        self.stamped.insert(key, listed.clone());
        listed
    }

    /// What the API server publishes of a kind; nothing where it publishes nothing.
    pub(super) async fn schema(&mut self, kind: &Kind) -> Option<Arc<KindSchema>> {
        if let Some(known) = self.schemas.get(kind) {
            return known.clone();
        }
        let schema = self.read_schema(kind).await.map(Arc::new);
        self.schemas.insert(kind.clone(), schema.clone());
        schema
    }

    async fn read_schema(&self, kind: &Kind) -> Option<KindSchema> {
        let (group, version) = match kind.api_version.split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", &*kind.api_version),
        };
        let path = if group.is_empty() {
            format!("/openapi/v3/api/{version}")
        } else {
            format!("/openapi/v3/apis/{group}/{version}")
        };
        let request = http::Request::get(path).body(Vec::new()).ok()?;
        let text = self.client.request_text(request).await.ok()?;
        KindSchema::compile(text.as_bytes(), group, version, &kind.kind).ok()?
    }

    /// The rights of a service account if the user may have them, else his own; the error says why there is no such account.
    pub(super) async fn rights(&mut self, namespace: &str, name: &str) -> Result<Rights, String> {
        let key = (namespace.to_owned(), name.to_owned());
        if let Some(known) = self.rights.get(&key) {
            return known.clone();
        }
        let rights = self.ask_rights(namespace, name).await;
        self.rights.insert(key, rights.clone());
        rights
    }

    async fn ask_rights(&self, namespace: &str, name: &str) -> Result<Rights, String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), namespace);
        let spec = TokenRequestSpec {
            expiration_seconds: Some(TOKEN_SECONDS),
            ..TokenRequestSpec::default()
        };
        let request = TokenRequest {
            spec: Some(spec),
            ..TokenRequest::default()
        };
        let issued = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await;
        match issued {
            Ok(answer) => {
                let token = answer.status.and_then(|status| status.token);
                let token = token.ok_or("the API server issued no token")?;
                let auth_info = AuthInfo {
                    token: Some(token.into()),
                    ..AuthInfo::default()
                };
                self.with(auth_info, true)
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {
                Err(format!("ServiceAccount \"{name}\" not found"))
            }
            Err(kube::Error::Api(status)) if status.code == 403 => {
                if !self.may_impersonate(namespace, name).await {
                    return Ok(Rights {
                        client: self.client.clone(),
                        of_account: false,
                    });
                }
                let mut auth_info = self.config.auth_info.clone();
                let user = format!("system:serviceaccount:{namespace}:{name}");
                auth_info.impersonate = Some(user);
                self.with(auth_info, true)
            }
            Err(error) => Err(in_words(&error)),
        }
    }

    fn with(&self, auth_info: AuthInfo, of_account: bool) -> Result<Rights, String> {
        let mut config = self.config.clone();
        config.auth_info = auth_info;
        let client = self
            .patience
            .client(config)
            .map_err(|error| in_words(&error))?;
        Ok(Rights { client, of_account })
    }

    async fn may_impersonate(&self, namespace: &str, name: &str) -> bool {
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let text = |text: &str| Some(text.to_owned());
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    verb: text("impersonate"),
                    resource: text("serviceaccounts"),
                    namespace: text(namespace),
                    name: text(name),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let answer = reviews.create(&PostParams::default(), &review).await;
        answer.is_ok_and(|answer| answer.status.is_some_and(|status| status.allowed))
    }
}

/// All objects, page by page.
pub(super) async fn all_of(
    api: &Api<DynamicObject>,
    params: ListParams,
) -> Result<Vec<Value>, kube::Error> {
    let mut params = params.limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page = api.list(&params).await?;
        let types = page.types;
        for item in page.items {
            let mut item = serde_json::to_value(item).map_err(kube::Error::SerdeError)?;
            // The items of a list do not say what they are.
            if let (true, kind) = (item["kind"].is_null(), types.kind.strip_suffix("List")) {
                item["kind"] = kind.into();
                item["apiVersion"] = types.api_version.clone().into();
            }
            found.push(item);
        }
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => params.continue_token = Some(next),
            None => return Ok(found),
        }
    }
}

/// What went wrong, without the name of the client's error.
pub(super) fn in_words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}
