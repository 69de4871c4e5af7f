//! Golden tests: an owner as the engine leaves it, and the lines in `golden/*.txt`. `UPDATE_GOLDEN=1` writes them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail, and has no command line of its own"
)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "fixtures are written where they are used"
)]

#[path = "tree/plays.rs"]
mod plays;
#[path = "../../realizer/tests/engine/scenario.rs"]
#[expect(dead_code, reason = "the engine's own tests ask for more")]
mod scenario;
#[path = "../../realizer/tests/runnable/stage.rs"]
#[expect(dead_code, reason = "the engine's own tests ask for more")]
mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use api_types::status::StampedRef;
use cli::descend::{Objects, descend};
use cli::tree::{Colors, Depth, Found, State, Tree, render};
use realizer::Family;
use serde_json::{Value, json};

use cli::trace::{Ancestor, Past, Trace, in_toto};
use plays::{PLAYS, Scene};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// What can be read below the objects of a scene.
struct Shelf<'s>(&'s [Value]);

impl Objects for Shelf<'_> {
    async fn get(&self, depth: Depth, reference: &StampedRef) -> Found {
        let [_, _, kind, _] = depth.resource();
        let denied = |object: &&Value| object["unreadable"] == kind;
        if self.0.iter().any(|object| denied(&object)) {
            return Found::Unread("jobs.batch is forbidden".to_owned());
        }
        let its = |object: &&Value| {
            object["kind"] == kind
                && object["metadata"]["name"].as_str() == reference.name.as_deref()
        };
        let found = self.0.iter().find(its);
        found.map_or(Found::Nothing, |object| Found::Object(object.clone()))
    }

    async fn pods(&self, _: &str, job: &str) -> Vec<Value> {
        let labels =
            |pod: &&Value| pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == job;
        self.0.iter().filter(labels).cloned().collect()
    }
}

fn tree(scene: &Scene) -> Tree {
    let mut tree = status_tree(scene);
    if !scene.cluster.is_empty() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(descend(&Shelf(&scene.cluster), &mut tree));
    }
    tree
}

/// What the owner and its blueprint say.
fn status_tree(scene: &Scene) -> Tree {
    let owner = &scene.owner;
    let family = match owner["kind"].as_str().unwrap() {
        "Runnable" => return Tree::read_runnable(owner).unwrap(),
        "Deliverable" => Family::Delivery,
        _ => Family::SupplyChain,
    };
    Tree::read(family, owner, scene.blueprint.as_ref()).unwrap()
}

fn named(name: &str) -> Tree {
    let (_, play) = PLAYS.iter().find(|(known, _)| *known == name).unwrap();
    tree(&play())
}

#[test]
fn every_golden_file_is_of_a_play() {
    let played: BTreeSet<String> = PLAYS
        .iter()
        .map(|(name, _)| format!("{name}.txt"))
        .collect();
    let files = fs::read_dir(golden()).unwrap();
    let kept: BTreeSet<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(kept, played);
}

#[test]
fn every_tree_is_as_in_its_golden_file() {
    let update = std::env::var("UPDATE_GOLDEN").is_ok_and(|update| update == "1");
    for (name, play) in PLAYS {
        let lines = render(&tree(&play()), Colors::Off).join("\n") + "\n";
        let expected = golden().join(name).with_extension("txt");
        if update {
            fs::write(&expected, &lines).unwrap();
        }
        let expected = fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(lines, expected, "{name}: UPDATE_GOLDEN=1 writes it anew");
    }
}

#[test]
fn no_secret_value_is_in_lines_or_json() {
    let tree = named("secret-values-are-never-shown");
    let shown = render(&tree, Colors::On).join("\n") + &serde_json::to_string(&tree).unwrap();
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("<redacted>"), "{shown}");
}

#[test]
fn colours_are_all_that_differs_on_a_terminal() {
    for (name, play) in PLAYS {
        let tree = tree(&play());
        let colored = render(&tree, Colors::On).join("\n");
        assert!(colored.contains("\u{1b}["), "{name}");
        let mut plain = colored;
        for code in ["32", "31", "33", "2", "1", "0"] {
            plain = plain.replace(&format!("\u{1b}[{code}m"), "");
        }
        let trimmed = |text: &str| {
            text.lines()
                .map(|line| line.trim_end().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            trimmed(&plain),
            trimmed(&render(&tree, Colors::Off).join("\n")),
            "{name}"
        );
    }
}

#[test]
fn scripts_get_the_root_cause_as_fields() {
    let tree = serde_json::to_value(named("root-cause-is-the-first-step-with-its-inputs")).unwrap();
    assert_eq!(tree["ready"], false);
    assert_eq!(tree["headline"]["state"], "failing");
    assert_eq!(tree["headline"]["step"], "source");
    assert_eq!(tree["headline"]["reason"], "ReadyCondition");
    assert_eq!(
        tree["steps"][3]["inputs"][1],
        serde_json::json!({"name": "settings", "slot": "config", "from": "config"})
    );
    assert_eq!(tree["steps"][1]["object"]["name"], "web-app");
}

#[test]
fn ready_means_ready_for_the_present_generation() {
    let stale = named("latest-change-not-looked-at");
    assert!(!stale.ready);
    assert_eq!(stale.headline.state, State::Waiting);
    assert!(named("everything-is-ready").ready);
}

#[test]
fn an_object_of_another_shape_is_an_error_and_no_panic() {
    for owner in [
        serde_json::json!({}),
        serde_json::json!({"metadata": {"name": 1}}),
        serde_json::json!([]),
        serde_json::json!({"metadata": {"name": "app"}, "status": {"resources": [{"name": 5}]}}),
        serde_json::json!({"metadata": {"name": "app"}, "status": {"summary": {"state": "Odd"}}}),
    ] {
        assert!(
            Tree::read(Family::SupplyChain, &owner, None).is_err(),
            "{owner}"
        );
    }
}

#[test]
fn what_waits_is_not_ticked_and_a_failed_validation_is_not_waited_for() {
    let lines = render(&named("environment-update-is-held"), Colors::Off);
    let held = lines.iter().find(|line| line.contains("UpdateHeld"));
    assert!(held.unwrap().contains("… UpdateHeld"), "{held:?}");
    let next = |name: &str| named(name).headline.next.unwrap();
    assert!(next("environment-validation-runs").starts_with("wait: "));
    let failed = next("environment-validation-failed");
    assert!(failed.starts_with("push a new commit"), "{failed}");
    for name in [
        "environment-validation-failed",
        "environment-validation-timed-out",
    ] {
        let next = next(name);
        assert!(!next.contains("tried again by itself"), "{next}");
        assert!(
            next.contains("kubectl describe -n dev taskruns.tekton.dev/smoke-test-"),
            "{next}"
        );
    }
}

#[test]
fn scripts_get_environments_as_they_are_in_the_status() {
    let tree = serde_json::to_value(named("environment-update-is-held")).unwrap();
    let environment = &tree["environments"][0];
    assert_eq!(environment["resource"], "staging");
    assert_eq!(environment["deployed"]["revision"], "first");
    assert_eq!(environment["waiting"]["revision"], "second");
    assert_eq!(environment["validations"][0]["verdict"], "Running");
}

#[test]
fn a_failed_job_under_a_runnable_is_the_cause_and_its_log_the_next_thing_to_read() {
    let tree = named("below-a-failed-job-under-a-runnable");
    assert_eq!(
        tree.because.as_deref(),
        Some("Pod/run-1-x7k2p: container test ended with code 2: Error: 2 of 7 tests failed")
    );
    assert_eq!(
        tree.headline.next.as_deref(),
        Some("read its log: kubectl logs -n dev run-1-x7k2p -c test")
    );
    let shown = render(&tree, Colors::Off).join("\n");
    assert!(shown.contains("BackoffLimitExceeded"), "{shown}");
    assert!(!shown.contains("copies-the-label"), "{shown}");
}

/// Plays in which the engine knows more than its conditions say, with what these say: that a blueprint or template may still
/// come, and that steps which wait for one another never go on.
const ENGINE_KNOWS_MORE: [(&str, Option<&str>, State); 3] = [
    ("no-supply-chain-keeps-old-steps", None, State::Failing),
    ("template-missing", None, State::Failing),
    ("steps-in-a-round", Some("one"), State::Waiting),
];

#[test]
fn the_headline_is_what_the_summary_says_and_what_the_conditions_of_a_status_without_one_say() {
    let (mut compared, mut differ) = (0, Vec::new());
    for (name, play) in PLAYS {
        let mut scene = play();
        let said = status_tree(&scene).headline;
        let status = scene.owner["status"].as_object_mut();
        let Some(summary) = status.and_then(|status| status.remove("summary")) else {
            continue;
        };
        if said.reason.is_none() {
            // The status speaks of an earlier generation.
            continue;
        }
        let state = serde_json::to_value(said.state).unwrap();
        let state = state.as_str().unwrap();
        assert_eq!(
            summary["state"].as_str().unwrap().to_lowercase(),
            state,
            "{name}"
        );
        assert_eq!(summary["step"].as_str(), said.step.as_deref(), "{name}");
        assert_eq!(summary["reason"].as_str(), said.reason.as_deref(), "{name}");
        // Without an object there may be nothing to look at.
        let has_advice = summary["next"].is_string();
        assert!(
            has_advice || summary["object"].is_null(),
            "{name}: {summary}"
        );
        let read = status_tree(&scene).headline;
        if read != said {
            differ.push((*name, read.step, read.state));
        }
        compared += 1;
    }
    assert!(compared > 15, "{compared}");
    let differ: Vec<_> = differ
        .iter()
        .map(|(name, step, state)| (*name, step.as_deref(), *state))
        .collect();
    assert_eq!(differ, ENGINE_KNOWS_MORE);
}

fn traced(scene: &Scene) -> Trace {
    Trace::of(&status_tree(scene))
}

/// Identities are digests, which change with the templates of the scene.
fn without_identities(line: &str) -> String {
    let is_identity = |word: &str| {
        let hex = word.chars().all(|c| c.is_ascii_hexdigit());
        hex && word.len() == 8 && word.chars().any(|c| c.is_ascii_digit())
    };
    let words = line.split(' ');
    let words = words.map(|word| {
        if is_identity(word) {
            "<identity>"
        } else {
            word
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn what_made_what_runs_is_told_up_to_the_commit() {
    let lines = cli::trace::render(&traced(&plays::traceable()));
    let lines: Vec<String> = lines.iter().map(|line| without_identities(line)).collect();
    let digest = "ab".repeat(32);
    assert_eq!(
        lines,
        [
            "Workload ns/app".to_owned(),
            "└─ deploy".to_owned(),
            "   │  ConfigMap/app".to_owned(),
            format!("   └─ image  image = registry/app@sha256:{digest}"),
            "      │  <identity> of Build/app, generation 1, accepted 2024-05-01T10:03:00Z"
                .to_owned(),
            "      └─ source  url = https://git.example.com/app, revision = main@sha1:4711"
                .to_owned(),
            "            <identity> of Repository/app, generation 1, accepted 2024-05-01T10:02:00Z"
                .to_owned(),
        ]
    );
}

#[test]
fn an_output_that_no_step_has_any_more_is_told_as_such() {
    let scene = (PLAYS
        .iter()
        .find(|(name, _)| *name == "last-good-output-is-handed-on"))
    .unwrap()
    .1();
    let lines = cli::trace::render(&traced(&scene));
    let made = lines.iter().find(|line| line.contains("of Build/app"));
    assert!(
        made.unwrap()
            .ends_with("the last good one, not of what goes in now"),
        "{lines:?}"
    );
    let gone = lines.last().unwrap();
    assert!(
        gone.contains("source  an output that it has no more: "),
        "{gone}"
    );
}

/// What the owner's status and these Artifacts tell.
fn traced_back(scene: &Scene, artifacts: &BTreeMap<String, Value>) -> Trace {
    let (tree, mut past) = (status_tree(scene), Past::default());
    let trace = Trace::with(&tree, &past);
    for (step, identity) in trace.gone(&past) {
        let found = artifacts.get(&trace.artifact_of(&step, &identity));
        past.put(&step, &identity, found);
    }
    let trace = Trace::with(&tree, &past);
    assert_eq!(trace.gone(&past), [], "each is asked for once");
    trace
}

#[test]
fn an_output_that_no_step_has_any_more_is_told_by_its_artifact() {
    let (scene, artifacts) = plays::kept();
    let trace = traced_back(&scene, &artifacts);
    let lines = cli::trace::render(&trace);
    let lines: Vec<String> = lines.iter().map(|line| without_identities(line)).collect();
    let [.., source, from] = &lines[..] else {
        panic!("{lines:?}")
    };
    assert_eq!(
        source.trim_start(),
        "└─ source  url = https://git.example.com/app, revision = main@sha1:4711"
    );
    assert!(
        from.contains("<identity> from Artifact workload-app-source-")
            && from.ends_with(", generation 1, accepted 2024-05-01T10:02:00Z"),
        "{from}"
    );
    let json = serde_json::to_value(&trace).unwrap();
    let image = &json["ends"][0]["inputs"][0];
    let artifact = image["inputs"][0]["artifact"].as_str().unwrap();
    assert!(artifacts.contains_key(artifact));
    let statements = in_toto(&trace);
    let source = &statements[1]["predicate"]["buildDefinition"];
    assert_eq!(source["internalParameters"]["artifact"], artifact);
    assert_eq!(
        statements[1]["subject"][1]["annotations"]["value"],
        "main@sha1:4711"
    );
}

#[test]
fn nothing_is_told_of_an_artifact_that_does_not_fit_its_identity() {
    let (scene, artifacts) = plays::kept();
    for (place, value, told) in [
        (
            "/spec/outputs/1/value",
            json!("main@sha1:evil"),
            "; its Artifact was tampered with",
        ),
        (
            "/spec/provenance/inputs",
            json!([{"name": "x", "identity": "x"}]),
            "; its Artifact was tampered with",
        ),
        (
            "/spec/step",
            json!("image"),
            "; its Artifact was tampered with",
        ),
        ("/spec", json!({}), "; its Artifact was tampered with"),
        (
            "/spec/rendering",
            Value::Null,
            "; its Artifact cannot be checked: the identity is one under the key of the installation",
        ),
    ] {
        let mut forged = artifacts.clone();
        for artifact in forged.values_mut() {
            match artifact.pointer_mut(place) {
                Some(part) => *part = value.clone(),
                None => artifact["spec"]["provenance"]["inputs"] = value.clone(),
            }
        }
        let lines = cli::trace::render(&traced_back(&scene, &forged));
        let last = lines.last().unwrap();
        assert!(
            last.contains("source  an output that it has no more: "),
            "{last}"
        );
        assert!(last.ends_with(told), "{place}: {last}");
    }
}

#[test]
fn a_trace_is_an_in_toto_statement_for_each_step_that_knows_its_making() {
    let statements = in_toto(&traced(&plays::traceable()));
    assert_eq!(statements.len(), 2);
    for statement in &statements {
        assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
        assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
        let digest = statement["subject"][0]["digest"]["sha256"]
            .as_str()
            .unwrap();
        assert_eq!(digest.len(), 64, "{statement}");
    }
    let image = &statements[0];
    assert_eq!(image["subject"][0]["digest"]["sha256"], "ab".repeat(32));
    let build = &image["predicate"]["buildDefinition"];
    assert_eq!(build["externalParameters"]["step"], "image");
    let sources: Vec<&Value> = build["resolvedDependencies"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(sources.len(), 2);
    assert_eq!(sources[1]["annotations"]["value"], "main@sha1:4711");
    assert_eq!(sources[1]["digest"], statements[1]["subject"][1]["digest"]);
}

/// What the specifications of Statements (in-toto v1) and of their predicate (SLSA v1) ask for.
fn assert_is_statement(statement: &Value) {
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let is_uri = |value: &Value| is_text(value) && value.as_str().unwrap().contains("://");
    let has_digest = |it: &Value| {
        let digests = it["digest"].as_object();
        digests.is_some_and(|it| !it.is_empty() && it.values().all(is_text))
    };
    let all =
        |list: &Value, is_it: &dyn Fn(&Value) -> bool| list.as_array().unwrap().iter().all(is_it);
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
    let subjects = statement["subject"].as_array().unwrap();
    assert!(
        !subjects.is_empty() && subjects.iter().all(has_digest),
        "{statement}"
    );
    let build = &statement["predicate"]["buildDefinition"];
    assert!(is_uri(&build["buildType"]) && build["externalParameters"].is_object());
    assert!(
        all(&build["resolvedDependencies"], &has_digest),
        "{statement}"
    );
    let run = &statement["predicate"]["runDetails"];
    assert!(is_uri(&run["builder"]["id"]));
    let finished = run["metadata"]["finishedOn"].as_str().unwrap();
    assert!(finished.parse::<jiff::Timestamp>().is_ok(), "{finished}");
}

#[test]
fn statements_are_what_their_specifications_ask_for_whatever_is_known_of_a_step() {
    let mut trace = traced(&plays::traceable());
    let mut made = trace.ends[0].clone();
    // A step without values, and one of a Secret.
    made.outputs.clear();
    trace.ends.push(made);
    let Ancestor::Known(mut secret) = trace.ends[0].inputs[0].clone() else {
        panic!("nothing went in");
    };
    secret.making = trace.ends[0].making.clone().or(secret.making);
    for output in &mut secret.outputs {
        output.value = "<redacted>".to_owned();
        output.digest = "hmac-sha256:0".to_owned();
    }
    "secret".clone_into(&mut secret.step);
    trace.ends.push(*secret);
    trace.ends[0].inputs.push(Ancestor::Gone {
        step: "gone".to_owned(),
        gone: "ab".repeat(16),
        doubt: None,
    });
    let statements = in_toto(&trace);
    assert!(statements.len() >= 3, "{statements:?}");
    statements.iter().for_each(assert_is_statement);
    let told = serde_json::to_string(&statements).unwrap();
    assert!(
        told.contains("cartoIdentity") && !told.contains("redacted"),
        "{told}"
    );
}

#[test]
fn the_schema_of_a_trace_is_the_one_in_the_documentation() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/behaviour/trace.schema.json");
    let schema = serde_json::to_string_pretty(&cli::trace::json_schema()).unwrap() + "\n";
    if std::env::var("UPDATE_GOLDEN").is_ok_and(|update| update == "1") {
        fs::write(&file, &schema).unwrap();
    }
    let documented = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(schema, documented, "UPDATE_GOLDEN=1 writes it anew");
}

#[test]
fn a_trace_of_a_status_that_goes_round_in_circles_ends() {
    let provenance = |from: &str, identity: &str| {
        serde_json::json!([{
            "name": "image", "preview": "x", "digest": "sha256:0", "lastTransitionTime": "2026-01-02T03:04:05Z",
            "provenance": {"identity": identity, "accepted": "2026-01-02T03:04:05Z", "object": {"uid": "u"},
                "template": "", "readFrom": "", "params": "", "inputs": [{"name": from, "identity": from}]},
        }])
    };
    let owner = serde_json::json!({"metadata": {"name": "app"}, "status": {"resources": [
        {"name": "a", "outputs": provenance("b", "a")},
        {"name": "b", "outputs": provenance("a", "b")},
    ]}});
    let tree = Tree::read(Family::SupplyChain, &owner, None).unwrap();
    let trace = Trace::of(&tree);
    assert!(cli::trace::render(&trace).len() < 20);
    assert_eq!(in_toto(&trace).len(), 2);
}
