use std::sync::Arc;

use controller_kit::cluster::{Call, Cluster, Identity, RequestError};
use controller_kit::metrics::Metrics;
use controller_kit::tokens::{Account, RefusalKind, TokenCache, TokenSources};
use http::StatusCode;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use test_support::{eventually, shared_control_plane};

use crate::stage::{PATIENCE, clock};

fn cache(client: kube::Client) -> TokenCache {
    let sources = TokenSources {
        clock: clock(),
        jitter: Arc::new(|| 0.0),
    };
    TokenCache::new(client, sources, Arc::new(Metrics::new()))
}

async fn account(client: &kube::Client, namespace: &str) -> Account {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let uid = eventually("the namespace has its account", PATIENCE, async || {
        accounts
            .get_opt("default")
            .await
            .unwrap()
            .and_then(|account| account.metadata.uid)
    })
    .await;
    Account {
        namespace: namespace.into(),
        name: "default".into(),
        uid,
    }
}

/// Who the API server takes us for.
async fn whoami(cluster: &Cluster, token: &str) -> Result<Value, RequestError> {
    let question = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let call = Call::create(reviews, "test", &question);
    cluster
        .send(Identity::Bearer(token), call)
        .await
        .map(|answer| answer.body["status"]["userInfo"]["username"].clone())
}

#[tokio::test]
async fn a_token_is_the_accounts_until_the_account_goes() {
    let plane = shared_control_plane().await.unwrap();
    let client = plane.client().unwrap();
    let namespace = plane.create_namespace("tokens").await.unwrap();
    let account = account(&client, &namespace).await;
    let cluster = Cluster::connect(plane.config().unwrap(), Arc::new(Metrics::new())).unwrap();
    let cache = cache(client.clone());

    let token = cache.token(&account).await.unwrap();
    let name = format!("system:serviceaccount:{namespace}:default");
    assert_eq!(whoami(&cluster, token.expose()).await.unwrap(), name);
    assert!(
        cache.token(&account).await.unwrap() == token,
        "the second time it is the same"
    );

    let accounts: Api<ServiceAccount> = Api::namespaced(client, &namespace);
    accounts
        .delete("default", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the token is refused", PATIENCE, async || {
        whoami(&cluster, token.expose())
            .await
            .is_err_and(|error| error.is(StatusCode::UNAUTHORIZED))
    })
    .await;
    cache.invalidate(&account);
    let error = cache.token(&account).await.unwrap_err();
    assert_eq!(
        (error.to_string(), error.kind()),
        (
            r#"fetch token: serviceaccounts "default" not found"#.into(),
            RefusalKind::NotFound
        )
    );
}

#[tokio::test]
async fn a_controller_without_the_right_is_told_which_one() {
    let plane = shared_control_plane().await.unwrap();
    let namespace = plane.create_namespace("tokens").await.unwrap();
    let account = account(&plane.client().unwrap(), &namespace).await;
    let cache = cache(plane.client_as_user("powerless", &[]).unwrap());
    let error = cache.token(&account).await.unwrap_err();
    assert_eq!(error.kind(), RefusalKind::Forbidden);
    assert_eq!(
        error.to_string(),
        format!(
            r#"fetch token: serviceaccounts "default" is forbidden: User "powerless" cannot create resource "serviceaccounts/token" in API group "" in the namespace "{namespace}""#
        )
    );
}
