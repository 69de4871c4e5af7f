//! Conventions with a webhook: what is applied, in which order, how often it is asked, and what its
//! failures do.

use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::{NOTHING, PATIENCE, condition};

use crate::stage::{
    INTENT, applied, env, fails, intent, open, open_with, open_with_env, receipts, restart, set,
    start,
};
use crate::webhook::{Does, Webhook};

#[tokio::test]
async fn a_convention_is_asked_once_and_not_again_after_a_restart() {
    let (mut stage, webhook) = open_with_env().await;
    stage.apply(INTENT).await;
    let intent = applied(&stage, "app").await;
    assert_eq!(env(&intent), ["A=b"]);
    assert_eq!(receipts(&intent), "add-env/add-A");
    assert_eq!(
        intent["status"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"],
        "0.5"
    );
    let told = &intent["status"]["conventions"][0];
    assert_eq!(
        (&told["name"], &told["matched"], &told["receipts"]),
        (&json!("add-env"), &json!(true), &json!(["add-A"]))
    );
    assert!(told["durationMillis"].is_i64());
    assert_eq!(
        webhook.last()["spec"]["template"]["metadata"]["labels"]["app"],
        "web"
    );
    assert_eq!(webhook.last()["spec"]["imageConfig"], json!([]));

    stage.idle().await;
    assert_eq!(stage.traffic_of_reconciles("app", 3).await, NOTHING);
    restart(&mut stage, &[]);
    stage.reconcile("app").await;
    assert_eq!(webhook.asked(), ["app-add-env"]);
}

#[tokio::test]
async fn conventions_are_selected_by_either_target_and_applied_by_priority_and_name() {
    let mut stage = set().await;
    let webhook = |name| Webhook::start(Does::AddsEnv(name, "x"));
    let (late, normal, early) = (webhook("L").await, webhook("N").await, webhook("E").await);
    let (other, by_none) = (webhook("O").await, webhook("X").await);
    let of_intent = json!({"selectorTarget": "PodIntent", "priority": "Early", "selectors": [{"matchLabels": {"of": "intent"}}]});
    let of_template = json!({"selectors": [{"matchLabels": {"app": "none"}}, {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}]});
    let not_there =
        json!({"selectors": [{"matchExpressions": [{"key": "of", "operator": "Exists"}]}]});
    for convention in [
        late.convention("a-late", json!({"priority": "Late"}), json!({})),
        normal.convention("b-normal", of_template, json!({})),
        early.convention("c-early", of_intent, json!({})),
        other.convention("a-normal", json!({"selectors": [{"matchExpressions": [{"key": "of", "operator": "DoesNotExist"}]}]}), json!({})),
        by_none.convention("not-there", not_there, json!({})),
    ] {
        stage.apply(&convention).await;
    }
    start(&mut stage, &[]);
    stage.apply(INTENT).await;
    let intent = applied(&stage, "app").await;
    assert_eq!(
        receipts(&intent),
        "c-early/add-E\na-normal/add-O\nb-normal/add-N\na-late/add-L"
    );
    assert_eq!(env(&intent), ["E=x", "O=x", "N=x", "L=x"]);
    let conventions = intent["status"]["conventions"].as_array().unwrap();
    let told: Vec<Value> = conventions
        .iter()
        .map(|it| json!([it["name"], it["matched"], it["selector"]]))
        .collect();
    assert_eq!(
        told,
        [
            json!(["c-early", true, 0]),
            json!(["a-normal", true, 0]),
            json!(["b-normal", true, 1]),
            json!(["a-late", true, null]),
            json!(["not-there", false, null]),
        ]
    );
    assert_eq!(by_none.asked(), NOTHING);
}

#[tokio::test]
async fn an_answer_that_cannot_be_stored_is_told_and_the_last_good_template_stays() {
    let stage = open().await;
    applied(&stage, "app").await;
    let garbage = json!({"status": {"template": {"spec": {"containers": null}}}}).to_string();
    let webhook = Webhook::start(Does::Answers(200, garbage)).await;
    stage
        .apply(&webhook.convention("garbage", json!({}), json!({})))
        .await;
    let message = "convention garbage answered with a template that cannot be stored: spec.containers: Required value";
    let intent = fails(&stage, "app", "TemplateNotStorable", message).await;
    assert_eq!(intent["status"]["template"], intent["spec"]["template"]);
    assert_eq!(intent["status"]["observedGeneration"], 1);
    assert_eq!(intent["status"]["conventions"][0]["error"], message);

    webhook.does(Does::Answers(500, "it is broken".to_owned()));
    let broken = |intent: &Value| {
        let ready = condition(&intent["status"], "Ready");
        let message = ready["message"].as_str().unwrap_or_default().to_owned();
        ready["reason"] == "ConventionsApplied"
            && message.starts_with("failed to apply convention with name garbage: ")
            && message.contains("it is broken")
    };
    stage
        .until("app", "what the webhook said is told", broken)
        .await;
    webhook.does(Does::AddsEnv("A", "b"));
    let intent = applied(&stage, "app").await;
    assert_eq!(env(&intent), ["A=b"]);
}

#[tokio::test]
async fn a_change_of_a_convention_is_a_call_for_those_it_is_for_and_for_nobody_else() {
    let mut stage = set().await;
    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    let of_a = json!({"selectors": [{"matchLabels": {"app": "a"}}]});
    stage
        .apply(&webhook.convention("add-env", of_a, json!({})))
        .await;
    start(&mut stage, &[]);
    for (name, app) in [("a1", "a"), ("a2", "a"), ("b1", "b")] {
        stage.apply(&intent(name, app)).await;
        applied(&stage, name).await;
    }
    stage.idle().await;
    let mut asked = webhook.asked();
    asked.sort();
    assert_eq!(asked, ["a1-add-env", "a2-add-env"]);
    let place = stage.place_in_the_log();

    let of_both = json!({"selectors": [{"matchLabels": {"app": "b"}}]});
    stage
        .apply(&webhook.convention("add-env", of_both, json!({})))
        .await;
    stage
        .until("b1", "it is decorated", |intent| env(intent) == ["A=b"])
        .await;
    for name in ["a1", "a2"] {
        stage
            .until(name, "it is no longer decorated", |intent| {
                env(intent).is_empty()
            })
            .await;
    }
    stage.idle().await;
    assert_eq!(webhook.asked()[2..], ["b1-add-env"]);
    for name in ["a1", "a2", "b1"] {
        assert_eq!(stage.runs_since(place, name).len(), 1, "{name}");
    }
    let again = json!({"metadata": {"annotations": {"conventions.carto.run/revision": "2"}}});
    stage.edit_convention("add-env", again).await;
    eventually("b1 is asked for again", PATIENCE, async || {
        let asked = webhook.asked();
        if asked.len() == 4 { Ok(()) } else { Err(asked) }
    })
    .await;
    stage.idle().await;
    assert_eq!(webhook.asked()[3..], ["b1-add-env"]);
}

#[tokio::test]
async fn a_convention_that_never_settles_is_named() {
    let (stage, _webhook) = open_with("random", Does::Random, &["--resync-seconds=1"]).await;
    stage.apply(INTENT).await;
    let intent = stage
        .until("app", "it does not settle", |intent| {
            condition(&intent["status"], "ConventionsSettled")["status"] == "False"
        })
        .await;
    let told = condition(&intent["status"], "ConventionsSettled");
    assert_eq!(
        told["message"],
        "these conventions make another template each time, of the same inputs: random"
    );
    assert_eq!(condition(&intent["status"], "Ready")["status"], "True");
}

#[tokio::test]
async fn selectors_that_cannot_be_read_are_told_by_all_until_they_are_corrected() {
    let stage = open().await;
    applied(&stage, "app").await;
    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    let near = json!({"selectors": [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]});
    stage
        .apply(&webhook.convention("wrong", near, json!({})))
        .await;
    let message = r#"filtering conventions failed: unable to convert label selector for ClusterPodConvention "wrong": "Near" is not a valid pod selector operator"#;
    fails(&stage, "app", "LabelSelector", message).await;
    stage
        .apply(&webhook.convention("wrong", json!({"selectors": []}), json!({})))
        .await;
    assert_eq!(env(&applied(&stage, "app").await), ["A=b"]);
}

#[tokio::test]
async fn so_many_webhooks_are_asked_at_a_time_as_there_is_room_for_their_answers() {
    let mut stage = set().await;
    let webhook = Webhook::start(Does::Hangs).await;
    let convention = webhook.convention("add-env", json!({}), json!({}));
    stage.apply(&convention).await;
    start(&mut stage, &["--webhook-answers-memory=16"]);
    let names: Vec<String> = (0..5).map(|index| format!("app{index}")).collect();
    for name in &names {
        stage.apply(&intent(name, "web")).await;
    }
    eventually("all five are under way", PATIENCE, async || {
        let running = stage.metric("carto_queue_running", &[]).await;
        if running == Some(5.0) {
            Ok(())
        } else {
            Err(running)
        }
    })
    .await;
    eventually("two are asked about", PATIENCE, async || {
        webhook.asked().len() == 2
    })
    .await;
    webhook.does(Does::AddsEnv("A", "b"));
    for name in &names {
        applied(&stage, name).await;
    }
    assert_eq!(webhook.asked().len(), 5);
}

#[tokio::test]
async fn what_is_edited_while_its_webhook_is_asked_is_decorated_at_once_as_it_is_then() {
    let (stage, webhook) = open_with("add-env", Does::Hangs, &[]).await;
    stage.apply(&intent("app", "early")).await;
    eventually("the webhook is asked", PATIENCE, async || {
        webhook.asked().len() == 1
    })
    .await;
    let late = json!({"spec": {"template": {"metadata": {"labels": {"app": "late"}}}}});
    stage.edit_owner("app", late).await;
    webhook.does(Does::AddsEnv("A", "b"));
    let what = "it is decorated as it is now";
    let app = stage
        .until("app", what, |it| {
            it["status"]["template"]["metadata"]["labels"]["app"] == "late"
        })
        .await;
    assert_eq!(env(&app), ["A=b"]);
    assert_eq!(app["status"]["observedGeneration"], 2);
    assert_eq!(webhook.asked().len(), 2);
}
