//! A template as large as fits twice, through five conventions.

use axum::Router;
use axum::routing::post;
use serde_json::{Value, json};
use test_support::takes_about_ten_times_as_long;
use tokio::net::TcpListener;

use super::{Scene, written};

/// Adds a variable in front of all others, so that each stands at another place then.
async fn adds(axum::Json(context): axum::Json<Value>) -> axum::Json<Value> {
    let mut template = context["spec"]["template"].clone();
    let env = template.pointer_mut("/spec/containers/0/env");
    let env = env.and_then(Value::as_array_mut).unwrap();
    let name = format!("ADDED_{}", env.len());
    env.insert(0, json!({"name": name, "value": "x"}));
    axum::Json(json!({"status": {"template": template, "appliedConventions": [name]}}))
}

async fn webhook() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let limit = axum::extract::DefaultBodyLimit::disable();
    let router = Router::new().route("/", post(adds)).layer(limit);
    #[expect(clippy::disallowed_methods, reason = "it ends with the runtime")]
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

fn intent(variables: usize) -> Value {
    let env: Vec<Value> = (0..variables)
        .map(|index| json!({"name": format!("VARIABLE_{index}"), "value": "a value"}))
        .collect();
    let mut intent = super::intent();
    intent["spec"]["template"]["spec"]["containers"][0]["env"] = env.into();
    intent
}

#[test]
fn ten_times_the_variables_take_about_ten_times_as_long_in_a_whole_reconcile() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let url = runtime.block_on(webhook());
    let conventions: Vec<Value> = ["a", "b", "c", "d", "e"]
        .map(|name| {
            json!({"metadata": {"name": name, "uid": name, "generation": 1},
                "spec": {"webhook": {"clientConfig": {"url": url}}}})
        })
        .to_vec();
    takes_about_ten_times_as_long(11_000, |count| {
        let intent = intent(count);
        let (runtime, conventions) = (&runtime, &conventions);
        move || {
            runtime.block_on(async {
                let stored = intent.clone();
                let scene = Scene::new(move |_, _, patch| (200, written(&stored, &patch)));
                scene.shows_account().await;
                Scene::shows(&scene.controller.stores.conventions, conventions).await;
                scene.shows_intent(&intent).await;
                assert_eq!(scene.reconcile().await.outcome(), "settled");
                let status = scene.statuses().pop().unwrap();
                let env = &status["template"]["spec"]["containers"][0]["env"];
                assert_eq!(env.as_array().unwrap().len(), count + 5);
            });
        }
    });
}
