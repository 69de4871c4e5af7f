//! What README.md and docs/uninstall.md tell people to type, typed.
//!
//! Left out is what needs a container engine or a node: building images, kind, waiting for the controllers' own Pods and talking
//! to the application's.

use std::fs;

use e2e::binaries::{CONVENTIONS_CONTROLLER, carto, workspace};
use e2e::manifests::documents;
use e2e::{Stack, WebApp, web_app};
use serde_json::{Value, json};
use test_support::{ControlPlane, eventually, free_port};

use crate::LIMIT;
use crate::terminal::{ADAPTATIONS, Terminal, blocks, eventually_prints};

/// The one line of the README that installs and upgrades CRDs.
fn crd_command() -> String {
    let readme = fs::read_to_string(workspace().join("README.md")).unwrap();
    let mut lines: Vec<&str> = readme
        .lines()
        .filter(|line| line.starts_with("kubectl apply ") && line.contains(" deploy/crds"))
        .collect();
    lines.dedup();
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines[0].to_owned()
}

/// Thirteen of `carto.run`, two of conventions, two of pod presets.
const CRDS: usize = 17;

#[tokio::test]
async fn crds_that_somebody_else_installed_are_upgraded_by_the_command_of_the_readme() {
    let control_plane = ControlPlane::start().await.unwrap();
    let terminal = Terminal::new(&control_plane);
    let mut older = [
        documents("deploy/crds"),
        documents("deploy/conventions/crds"),
    ]
    .map(Result::unwrap)
    .concat();
    for crd in &mut older {
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("older");
    }
    assert_eq!(older.len(), CRDS);
    let file = terminal.home.path().join("older.yaml");
    fs::write(&file, test_support::as_yaml(&older)).unwrap();
    terminal.types("kubectl create -f older.yaml");
    let descriptions = "kubectl get crds -o \
        jsonpath='{.items[*].spec.versions[0].schema.openAPIV3Schema.description}'";
    assert_eq!(terminal.types(descriptions).matches("older").count(), CRDS);

    let command = crd_command();
    let refused = terminal.is_refused(&command.replace(" --force-conflicts", ""));
    assert!(
        refused.contains("conflict with \"kubectl-create\""),
        "{refused}"
    );
    assert_eq!(terminal.types(descriptions).matches("older").count(), CRDS);

    terminal.types(&command);
    assert_eq!(terminal.types(descriptions).matches("older").count(), 0);
}

/// The example with what this machine has: a repository, an image, no TLS, no nodes, and no minute to wait.
fn adapted_example(app: &WebApp<'_>, terminal: &Terminal) {
    terminal.has_adapted("examples/web-app/platform", &ADAPTATIONS);
    let image = format!("image: {}", app.image);
    terminal.has_adapted(
        "examples/web-app/developer",
        &[
            (
                "https://github.com/stefanprodan/podinfo",
                app.repository.as_str(),
            ),
            ("branch: master", "branch: main"),
            ("image: stefanprodan/podinfo", &image),
        ],
    );
}

/// What cannot be typed here.
const ELSEWHERE: [&str; 8] = [
    "kind create",
    "kind delete",
    "flux install",
    "cargo install",
    "kubectl create -f deploy/namespace.yaml",
    "helm install",
    "kubectl -n dev port-forward",
    "sleep 2; curl",
];

/// The supply chain and the Workload that the README begins with.
fn first_screen_is_admitted(terminal: &Terminal) {
    let readme = fs::read_to_string(workspace().join("README.md")).unwrap();
    let blocks = readme.split("```yaml\n").skip(1);
    let objects: Vec<&str> = blocks
        .map(|block| block.split("```").next().unwrap())
        .collect();
    assert_eq!(objects.len(), 2, "{objects:#?}");
    for object in objects {
        terminal.types(&format!(
            "kubectl apply --dry-run=server -f - <<'EOF'\n{object}EOF"
        ));
    }
}

#[tokio::test]
async fn the_tutorial_of_the_readme_works_as_it_is_pasted() {
    let stack = Stack::start(|_| {}).await.unwrap();
    let (app, _) = WebApp::sources(&stack).unwrap();
    let terminal = Terminal::new(&stack.control_plane);
    adapted_example(&app, &terminal);
    first_screen_is_admitted(&terminal);
    let mut warned = false;
    let mut broken = false;
    let mut traced = String::new();
    for block in blocks("README.md", "Try it on a cluster") {
        if block.contains("docker build") {
            continue;
        }
        let lines = block
            .lines()
            .filter(|line| !ELSEWHERE.iter().any(|command| line.starts_with(command)));
        let script: Vec<&str> = lines.collect();
        let script = script.join("\n");
        let printed = terminal.types(&script);
        warned |= printed.contains("there is no [worklod]; did you mean [workload]?");
        if script.starts_with("carto trace") {
            traced = printed;
        }
        if script.contains("\"op\":\"remove\"") {
            broken = true;
            eventually("the tree says what is missing", LIMIT, async || {
                let tree = terminal.types("carto tree -n dev web-app");
                let headline: Vec<&str> = tree.lines().take(2).collect();
                anyhow::ensure!(headline[0].contains("deployments.apps"), "{headline:#?}");
                anyhow::ensure!(headline[1].contains("kubectl create role"), "{headline:#?}");
                anyhow::Ok(())
            })
            .await;
        }
    }
    assert!(warned, "no warning about the mistake");
    assert!(broken, "nothing was broken");
    for told in [
        "Workload dev/web-app",
        "deploy",
        " of PodIntent/web-app, generation ",
        " of OCIRepository/web-app, generation 1, accepted ",
        " of GitRepository/web-app, generation 1, accepted ",
        "revision = main@sha1:",
    ] {
        assert!(traced.contains(told), "{told}: {traced}");
    }
    let left = terminal.types("kubectl get clustersupplychains,workloads -A -o name");
    assert!(!left.contains("web-app"), "{left}");
}

/// What is remembered of cargo, whose folders are below the home of who runs the tests. Nothing is fetched.
#[expect(
    clippy::disallowed_methods,
    reason = "a terminal finds what else is installed where this one does"
)]
fn with_cargo(terminal: &mut Terminal) {
    let home = std::env::var("HOME").unwrap();
    let folder =
        |name: &str, below: &str| std::env::var(name).unwrap_or_else(|_| format!("{home}/{below}"));
    // Beside what a test of `carto convention new` has built in the same way.
    let target = carto().unwrap().parent().unwrap().join("..");
    terminal.environment.extend([
        ("CARGO_HOME", folder("CARGO_HOME", ".cargo")),
        ("RUSTUP_HOME", folder("RUSTUP_HOME", ".rustup")),
        ("CARGO_NET_OFFLINE", "true".to_owned()),
        ("CARGO_TARGET_DIR", target.display().to_string()),
        ("CARGO_PROFILE_DEV_DEBUG", "0".to_owned()),
    ]);
}

#[tokio::test]
async fn the_tutorial_on_conventions_works_as_it_is_pasted() {
    let stack = Stack::start(|_| {}).await.unwrap();
    let (app, _) = WebApp::prepare(&stack).await.unwrap();
    app.hand_in().await.unwrap();
    crate::carto::wait_until_ready(&stack.control_plane, web_app::NAMESPACE, web_app::NAME).await;
    let mut terminal = Terminal::new(&stack.control_plane);
    with_cargo(&mut terminal);
    let blocks = blocks("README.md", "Write your own convention");
    let [begin, key_pair, run, tell, see, look, away] = &blocks[..] else {
        panic!("{blocks:#?}");
    };

    let (new, test) = begin.split_once('\n').unwrap();
    terminal.types(new);
    let versions = terminal.home.path().join("time-zone/Cargo.lock");
    fs::copy(workspace().join("Cargo.lock"), versions).unwrap();
    let tested = terminal.types(test);
    assert!(tested.contains("test result: ok. 1 passed"), "{tested}");
    terminal.types(key_pair);
    let port = free_port().unwrap().to_string();
    let log = terminal.home.path().join("run.log");
    let running = terminal.keeps_typing(&run.replace("9443", &port), &log);
    terminal.types(&tell.replace("9443", &port));
    let seen = terminal.types(see);
    assert!(seen.contains("sleeper"), "{seen}");
    let template = "kubectl -n dev get podintent sleeper -o jsonpath='{.status.template}'";
    let has_time_zone = |printed: &str| printed.contains(r#"{"name":"TZ","value":"UTC"}"#);
    eventually_prints(&terminal, template, has_time_zone).await;
    eventually_prints(&terminal, look, has_time_zone).await;
    terminal.types(away);
    eventually_prints(&terminal, look, |printed| !printed.contains("TZ")).await;
    drop(running);
}

#[tokio::test]
async fn the_tutorial_on_presets_works_as_it_is_pasted() {
    let plane = ControlPlane::builder().deployments().audit().start().await;
    let plane = plane.unwrap();
    e2e::stack::install(&plane).await.unwrap();
    let controller = e2e::stack::controller_with_presets(&plane).await.unwrap();
    let terminal = Terminal::new(&plane);
    let blocks = blocks("docs/presets-tutorial.md", "Step by step");
    let [
        preset,
        website,
        explain,
        create,
        look,
        conflict,
        status,
        events,
        cluster,
        explain_again,
        replace,
        restart,
        away,
    ] = &blocks[..]
    else {
        panic!("{blocks:#?}");
    };
    terminal.types(preset);
    terminal.types(website);
    let explained = terminal.types(explain);
    assert!(explained.contains("DB_PORT"), "{explained}");
    // The controller hears of the preset a moment later, as it would hear before anybody types on.
    let probe = "kubectl -n tour run probe --image=nginx -l role=frontend --dry-run=server -o yaml";
    eventually_prints(&terminal, probe, |printed| printed.contains("6379")).await;
    terminal.types(create);
    let marker = "podpreset.admission.kubernetes.io/podpreset-allow-database";
    let variable = r#"{"name":"DB_PORT","value":"6379"}"#;
    eventually_prints(&terminal, look, |printed| {
        printed.contains(variable) && printed.contains(marker)
    })
    .await;
    let warned = terminal.types(conflict);
    let warning =
        "Warning: PodPreset allow-database: Conflict on pod preset. Duplicate env DB_PORT.";
    assert!(warned.contains(warning), "{warned}");
    eventually_prints(&terminal, status, |printed| printed.contains("own-port")).await;
    eventually_prints(&terminal, events, |printed| printed.contains("own-port")).await;
    terminal.types(cluster);
    let explained = terminal.types(explain_again);
    assert!(explained.contains("HTTP_PROXY"), "{explained}");
    terminal.types(replace);
    eventually_prints(&terminal, probe, |printed| {
        printed.contains("6380") && printed.contains("HTTP_PROXY")
    })
    .await;
    terminal.types(restart);
    let all = "kubectl -n tour get pods -l role=frontend -o jsonpath='{.items[*].spec.containers[0].env}'";
    eventually_prints(&terminal, all, |printed| {
        printed.contains(r#"{"name":"DB_PORT","value":"6380"}"#) && printed.contains("HTTP_PROXY")
    })
    .await;
    crate::rights::nothing_was_forbidden(&plane, CONVENTIONS_CONTROLLER);
    drop(controller);
    terminal.types(away);
}

const APPLICATION: &str = "
kubectl create namespace dev
kubectl apply -f - <<'EOF'
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: app, namespace: dev}
spec: {serviceAccountName: app}
EOF
uid=$(kubectl -n dev get workload app -o jsonpath='{.metadata.uid}')
kubectl create -f - <<EOF
apiVersion: v1
kind: ConfigMap
metadata:
  name: app
  namespace: dev
  labels: {carto.run/workload-name: app}
  ownerReferences:
    - {apiVersion: carto.run/v1alpha1, kind: Workload, name: app, uid: $uid, controller: true, blockOwnerDeletion: true}
EOF
";

/// All that is installed, and nothing of what runs.
async fn installed() -> (ControlPlane, Terminal) {
    let control_plane = ControlPlane::builder()
        .controller_manager(true)
        .start()
        .await
        .unwrap();
    let terminal = Terminal::new(&control_plane);
    terminal.types(&crd_command());
    terminal.types("kubectl wait crd --all --for=condition=Established --timeout=2m");
    terminal.types(
        "kubectl apply -f deploy/install.yaml -f deploy/conventions/install.yaml -f deploy/optional -f deploy/policies",
    );
    // Nobody runs the Pods, so this is waited for in vain; the command is understood.
    let waits =
        terminal.is_refused("kubectl -n carto-system rollout status deployment --timeout=1s");
    assert!(waits.contains("timed out"), "{waits}");
    terminal.types(APPLICATION);
    (control_plane, terminal)
}

async fn nothing_is_left(terminal: &Terminal) {
    eventually("carto is gone", LIMIT, async || {
        let left = terminal.types(
            "kubectl get --ignore-not-found -o name -f deploy/install.yaml -f deploy/optional -f deploy/policies \
                -f deploy/crds -f deploy/conventions/install.yaml -f deploy/conventions/crds
            kubectl api-resources --api-group=carto.run -o name
            kubectl api-resources --api-group=conventions.carto.run -o name
            kubectl api-resources --api-group=settings.carto.run -o name",
        );
        anyhow::ensure!(left.is_empty(), "{left}");
        anyhow::Ok(())
    })
    .await;
}

#[tokio::test]
async fn carto_is_uninstalled_and_the_applications_stay() {
    let (_control_plane, terminal) = installed().await;
    for heading in ["Keep the applications", "Then remove carto"] {
        for block in blocks("docs/uninstall.md", heading) {
            terminal.types(&block);
        }
    }
    nothing_is_left(&terminal).await;
    let owners = "kubectl -n dev get configmap app -o jsonpath='{.metadata.ownerReferences}'";
    assert_eq!(terminal.types(owners), "");
    let saved = fs::read_to_string(
        terminal
            .home
            .path()
            .join("clustersupplychains.carto.run.yaml"),
    );
    assert!(saved.unwrap().contains("kind: List"));
}

#[tokio::test]
async fn carto_is_uninstalled_and_the_applications_with_it() {
    let (_control_plane, terminal) = installed().await;
    let delete = blocks("docs/uninstall.md", "Or delete the applications, too");
    eventually("the application is gone", LIMIT, async || {
        let printed = terminal.types(&delete.join("\n"));
        anyhow::ensure!(!printed.contains("configmap/app"), "{printed}");
        anyhow::ensure!(
            printed.matches("No resources found").count() >= 2,
            "{printed}"
        );
        anyhow::Ok(())
    })
    .await;
    for block in blocks("docs/uninstall.md", "Then remove carto") {
        terminal.types(&block);
    }
    nothing_is_left(&terminal).await;
    terminal.is_refused("kubectl -n dev get configmap app");
}

fn of_kind(path: &str, kind: &str) -> Vec<Value> {
    let mut found = documents(path).unwrap();
    found.retain(|object| object["kind"] == kind);
    assert!(!found.is_empty(), "{path} has no {kind}");
    found
}

fn installed_deployments() -> Vec<Value> {
    let found = test_support::MANIFESTS.map(|manifest| of_kind(manifest, "Deployment"));
    found.concat()
}

#[tokio::test]
async fn the_namespace_admits_the_pods_of_the_controllers_and_none_that_asks_for_more() {
    let control_plane = ControlPlane::start().await.unwrap();
    let terminal = Terminal::new(&control_plane);
    e2e::stack::install(&control_plane).await.unwrap();
    let dry_run = |pod: &Value| {
        let file = terminal.home.path().join("pod.yaml");
        fs::write(file, pod.to_string()).unwrap();
        terminal.try_typing("kubectl -n carto-system create --dry-run=server -f pod.yaml")
    };
    let deployments = installed_deployments();
    assert_eq!(deployments.len(), 4);
    for deployment in deployments {
        let template = &deployment["spec"]["template"];
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": template["spec"]});
        let (admitted, said) = dry_run(&pod);
        assert!(admitted, "{said}");
        pod["spec"]["hostNetwork"] = json!(true);
        let (admitted, said) = dry_run(&pod);
        assert!(
            !admitted && said.contains("violates PodSecurity \"restricted"),
            "{said}"
        );
    }
}

/// The ports of a container that a policy names, or those numbers.
fn ports(policy: &Value) -> impl Iterator<Item = &Value> {
    let rules = policy["spec"]["ingress"].as_array().into_iter().flatten();
    rules.flat_map(|rule| {
        rule["ports"]
            .as_array()
            .unwrap()
            .iter()
            .map(|port| &port["port"])
    })
}

#[test]
fn the_network_policies_are_about_our_pods_and_their_ports() {
    let deployments = installed_deployments();
    let mut open = 0;
    for policy in of_kind("deploy/optional/network-policies.yaml", "NetworkPolicy") {
        let selector = &policy["spec"]["podSelector"];
        let name = &selector["matchLabels"]["app.kubernetes.io/name"];
        let named = selector["matchExpressions"][0]["values"].as_array();
        let names: Vec<&Value> = named.map_or_else(|| vec![name], |names| names.iter().collect());
        for name in names {
            let found = deployments
                .iter()
                .find(|deployment| deployment["metadata"]["name"] == *name);
            let pod = &found.unwrap()["spec"]["template"];
            assert_eq!(&pod["metadata"]["labels"]["app.kubernetes.io/name"], name);
            let served = pod["spec"]["containers"][0]["ports"].as_array().unwrap();
            for port in ports(&policy) {
                assert!(
                    served.iter().any(|served| served["name"] == *port),
                    "{name}: {port}"
                );
                open += 1;
            }
        }
    }
    // Probes and metrics of four, and two webhooks.
    assert_eq!(open, 10);
}
