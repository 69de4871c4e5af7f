//! The launcher itself, against the real binaries.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::core::DynamicObject;
use kube::{Api, ResourceExt};
use serde_json::json;
use test_support::control_plane::Lent;
use test_support::{
    Change, ControlPlane, Scratch, eventually, objects_in, observe, service_account,
    shared_control_plane,
};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use tokio::task::JoinSet;

const LIMIT: Duration = Duration::from_mins(3);

const WIDGETS: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.carto.run}
spec:
  group: test.carto.run
  names: {kind: Widget, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

#[tokio::test]
async fn a_token_request_gives_a_token_with_the_rights_of_the_service_account() -> anyhow::Result<()>
{
    let control_plane = shared_control_plane().await?;
    let namespace = control_plane.create_namespace("tokens").await?;
    control_plane
        .apply_yaml_in(
            &namespace,
            &role_for("ServiceAccount", "default", &namespace),
        )
        .await?;
    let user = service_account(&namespace, "default");
    let list = format!("list configmaps in {namespace}");
    control_plane.until_it_may(&user, &list).await;
    let client = control_plane
        .client_as_service_account(&namespace, "default")
        .await?;
    Api::<ConfigMap>::namespaced(client.clone(), &namespace)
        .list(&ListParams::default())
        .await?;
    let elsewhere = Api::<ConfigMap>::namespaced(client, "default")
        .list(&ListParams::default())
        .await
        .unwrap_err();
    assert!(
        elsewhere
            .to_string()
            .contains(&format!("system:serviceaccount:{namespace}:default")),
        "{elsewhere}"
    );
    Ok(())
}

#[tokio::test]
async fn a_user_has_the_rights_of_name_and_groups_only() -> anyhow::Result<()> {
    let control_plane = shared_control_plane().await?;
    let namespace = control_plane.create_namespace("users").await?;
    control_plane
        .apply_yaml_in(&namespace, &role_for("Group", "second", ""))
        .await?;
    let api = async |groups: &[&str]| -> anyhow::Result<Api<ConfigMap>> {
        Ok(Api::namespaced(
            control_plane.client_as_user("jane", groups)?,
            &namespace,
        ))
    };
    let member = api(&["first", "second"]).await?;
    eventually("the right is in force", LIMIT, async || {
        member.list(&ListParams::default()).await.map(drop)
    })
    .await;
    let refused = api(&["first"])
        .await?
        .list(&ListParams::default())
        .await
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains(r#"User "jane" cannot list resource "configmaps""#),
        "{refused}"
    );
    Ok(())
}

fn role_for(kind: &str, name: &str, subject_namespace: &str) -> String {
    let group = if kind == "ServiceAccount" {
        ""
    } else {
        "rbac.authorization.k8s.io"
    };
    let subject_namespace = if subject_namespace.is_empty() {
        String::new()
    } else {
        format!(", namespace: {subject_namespace}")
    };
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: reader}}\n\
         rules: [{{apiGroups: [''], resources: [configmaps], verbs: [list]}}]\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: reader}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}}\n\
         subjects: [{{apiGroup: '{group}', kind: {kind}, name: {name}{subject_namespace}}}]\n"
    )
}

#[tokio::test]
async fn a_restarted_api_server_has_the_same_address_and_objects() -> anyhow::Result<()> {
    let control_plane = ControlPlane::start().await?;
    let url = control_plane.server_url();
    let api: Api<ConfigMap> = Api::default_namespaced(control_plane.client()?);
    api.create(&PostParams::default(), &config_map("kept"))
        .await?;

    control_plane.stop_apiserver();
    let refused = api.get("kept").await.unwrap_err();
    assert!(
        !matches!(refused, kube::Error::Api(_)),
        "an answer without a server: {refused}"
    );

    control_plane.start_apiserver().await?;
    api.get("kept").await?;
    control_plane.restart_apiserver().await?;
    assert_eq!(control_plane.server_url(), url);
    eventually("the old client reaches the new server", LIMIT, async || {
        api.get("kept").await.map(|_| ())
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn a_data_folder_survives_the_whole_control_plane() -> anyhow::Result<()> {
    let folder = Scratch::new("carto-data-")?;
    let first = ControlPlane::builder()
        .data_dir(folder.path())
        .start()
        .await?;
    let namespace = first.create_namespace("kept").await?;
    drop(first);
    let second = ControlPlane::builder()
        .data_dir(folder.path())
        .start()
        .await?;
    Api::<ServiceAccount>::namespaced(second.client()?, &namespace)
        .get("default")
        .await?;
    Ok(())
}

#[tokio::test]
async fn the_controller_manager_collects_garbage_and_finishes_namespaces() -> anyhow::Result<()> {
    let control_plane = ControlPlane::builder()
        .controller_manager(true)
        .start()
        .await?;
    let namespace = control_plane.create_namespace("garbage").await?;
    let client = control_plane.client()?;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let owner = api
        .create(&PostParams::default(), &config_map("owner"))
        .await?;
    let mut child = config_map("child");
    child.metadata.owner_references = Some(vec![
        kube::Resource::controller_owner_ref(&owner, &()).context("owner")?,
    ]);
    api.create(&PostParams::default(), &child).await?;
    api.delete("owner", &DeleteParams::background()).await?;
    eventually("the child is collected", LIMIT, async || {
        api.get_opt("child").await.map(|found| found.is_none())
    })
    .await;

    let namespaces: Api<Namespace> = Api::all(client);
    namespaces
        .delete(&namespace, &DeleteParams::default())
        .await?;
    eventually("the namespace is gone", LIMIT, async || {
        namespaces
            .get_opt(&namespace)
            .await
            .map(|found| found.is_none())
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn manifests_may_hold_a_crd_and_its_objects() -> anyhow::Result<()> {
    let control_plane = ControlPlane::start().await?;
    let yaml = format!(
        "{WIDGETS}\n---\napiVersion: test.carto.run/v1\nkind: Widget\nmetadata: {{name: a}}\nspec: {{size: 3}}\n"
    );
    let applied = control_plane.apply_yaml(&yaml).await?;
    assert_eq!(
        applied
            .iter()
            .map(ResourceExt::name_any)
            .collect::<Vec<_>>(),
        ["widgets.test.carto.run", "a"]
    );
    let again = control_plane.apply_yaml(&yaml).await?;
    assert_eq!(
        applied[1].resource_version(),
        again[1].resource_version(),
        "applying twice is the same as once"
    );
    Ok(())
}

#[tokio::test]
async fn bytes_can_be_written_past_validation_and_read_back() -> anyhow::Result<()> {
    let control_plane = ControlPlane::start().await?;
    let folder = Scratch::new("carto-crds-")?;
    std::fs::write(folder.path().join("widgets.yaml"), WIDGETS)?;
    control_plane.install_crds(folder.path()).await?;

    let stored = r#"{"apiVersion":"test.carto.run/v1","kind":"Widget","metadata":{"name":"raw","namespace":"default","uid":"1","creationTimestamp":"2020-01-01T00:00:00Z","labels":{"not a label!":"x"}},"spec":{}}"#;
    let key = "/registry/test.carto.run/widgets/default/raw";
    control_plane.put_raw(key, stored.as_bytes()).await?;
    assert_eq!(
        control_plane.get_raw(key).await?.as_deref(),
        Some(stored.as_bytes())
    );
    assert_eq!(
        control_plane
            .get_raw("/registry/test.carto.run/widgets/default/none")
            .await?,
        None
    );

    let client = control_plane.client()?;
    let api = objects_in(&client, "default", "test.carto.run/v1", "Widget");
    let seen = eventually("the object is served", LIMIT, async || {
        api.get_opt("raw").await
    })
    .await;
    assert_eq!(
        seen.labels().get("not a label!").map(String::as_str),
        Some("x")
    );
    Ok(())
}

#[tokio::test]
async fn requests_are_counted_by_user_agent() -> anyhow::Result<()> {
    let control_plane = shared_control_plane().await?;
    let mut config = control_plane.config()?;
    config
        .headers
        .push((http::header::USER_AGENT, "carto-audit-test/1".parse()?));
    let api: Api<ConfigMap> = Api::default_namespaced(kube::Client::try_from(config)?);
    assert_eq!(control_plane.requests_by("carto-audit-test")?, []);
    api.list(&ListParams::default()).await?;
    let seen = eventually("the list is recorded", LIMIT, async || {
        let mut seen = control_plane.requests_by("carto-audit-test")?;
        anyhow::Ok(seen.pop())
    })
    .await;
    assert_eq!((seen.verb.as_str(), seen.is_write()), ("list", false));
    assert_eq!(seen.object_ref.context("object")?.resource, "configmaps");
    Ok(())
}

async fn lent(definitions: &str) -> anyhow::Result<Lent> {
    let define = async |plane: &ControlPlane| plane.apply_yaml(WIDGETS).await.map(drop);
    Lent::with(Path::new(definitions), define).await
}

/// What a test may leave: objects of all sorts, a file, and requests of a controller.
async fn leave_much(plane: &ControlPlane) -> anyhow::Result<String> {
    let namespace = plane.create_namespace("left").await?;
    let objects = r"
{apiVersion: test.carto.run/v1, kind: Widget, metadata: {name: w, finalizers: [test.carto.run/held]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: left-behind}, rules: []}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}, rules: []}
";
    plane.apply_yaml_in(&namespace, objects).await?;
    std::fs::write(plane.folder().join("controller-1.log"), "of the first test")?;
    Ok(namespace)
}

#[tokio::test]
async fn a_control_plane_is_lent_to_the_next_test_with_nothing_of_the_last_one()
-> anyhow::Result<()> {
    let first = lent("used twice").await?;
    let (server, log) = (first.server_url(), first.folder().join("controller-1.log"));
    let namespace = leave_much(&first).await?;
    ensure!(!first.requests_by("")?.is_empty());
    drop(first);

    let second = lent("used twice").await?;
    assert_eq!(second.server_url(), server, "it is the same");
    assert_eq!(second.requests_by("")?, []);
    ensure!(!log.exists(), "the file is there");
    let client = second.client()?;
    let widgets = objects_in(&client, &namespace, "test.carto.run/v1", "Widget");
    ensure!(widgets.get_opt("w").await?.is_none(), "the object is there");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    ensure!(namespaces.get_opt(&namespace).await?.is_none());
    let roles: Api<ClusterRole> = Api::all(client);
    ensure!(roles.get_opt("left-behind").await?.is_none());
    // It is as good as a new one: the same can be made again.
    leave_much(&second).await?;
    Ok(())
}

#[tokio::test]
async fn a_control_plane_that_is_not_as_it_was_is_lent_to_nobody() -> anyhow::Result<()> {
    let hook = r"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: nobody-answers}
";
    let other = &WIDGETS.replace("singular: widget", "singular: widget, shortNames: [wi]");
    for changed in [hook, other] {
        let first = lent("changed").await?;
        let server = first.server_url();
        first.apply_yaml(changed).await?;
        drop(first);
        assert_ne!(lent("changed").await?.server_url(), server, "{changed}");
    }
    let first = lent("stopped").await?;
    let server = first.server_url();
    first.restart_apiserver().await?;
    drop(first);
    assert_ne!(lent("stopped").await?.server_url(), server);
    Ok(())
}

#[tokio::test]
async fn a_server_that_ends_early_is_an_error_with_the_end_of_its_log() {
    let error = ControlPlane::builder()
        .extra_apiserver_args(["--no-such-flag"])
        .start()
        .await
        .unwrap_err();
    let text = format!("{error:#}");
    assert!(text.contains("kube-apiserver ended early"), "{text}");
    assert!(text.contains("unknown flag: --no-such-flag"), "{text}");
}

#[test]
fn the_shared_control_plane_outlives_the_runtime_that_asked_for_it_first() -> anyhow::Result<()> {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
    };
    let first = runtime()?.block_on(shared_control_plane())?;
    runtime()?.block_on(async {
        let second = shared_control_plane().await?;
        assert!(std::ptr::eq(first, second));
        second.create_namespace("later").await?;
        anyhow::Ok(())
    })
}

/// A process with a control plane, in a process group of its own as a shell starts it, and the folder of that control plane.
async fn owner() -> anyhow::Result<(Child, PathBuf)> {
    let mut owner = tokio::process::Command::new(env!("CARGO_BIN_EXE_control-plane"))
        .stdout(std::process::Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(owner.stdout.take().context("stdout")?).lines();
    let line = lines
        .next_line()
        .await?
        .context("the owner printed nothing")?;
    let kubeconfig = PathBuf::from(line.strip_prefix("KUBECONFIG=").context("KUBECONFIG")?);
    let folder = kubeconfig.parent().context("folder")?.to_owned();
    let running = programs_using(&folder)?;
    for program in ["etcd", "kube-apiserver", "kube-controller-manager"] {
        ensure!(
            running.iter().any(|name| name == program),
            "{program} is not among {running:?}"
        );
    }
    Ok((owner, folder))
}

async fn until_nothing_is_left(folder: &Path) {
    eventually("no process uses the folder", LIMIT, async || {
        let left = programs_using(folder)?;
        ensure!(left.is_empty(), "{left:?}");
        anyhow::Ok(())
    })
    .await;
    eventually("the folder is gone", LIMIT, async || !folder.exists()).await;
}

/// The incident this guards against: a killed test run left API servers behind that ate both cores for hours.
#[tokio::test]
async fn killing_the_owner_with_sigkill_ends_all_processes_and_removes_the_folder()
-> anyhow::Result<()> {
    let (mut owner, folder) = owner().await?;
    owner.kill().await?; // SIGKILL: no destructor, no signal handler.
    until_nothing_is_left(&folder).await;
    Ok(())
}

/// A terminal sends SIGINT to the whole foreground group.
#[tokio::test]
async fn ctrl_c_ends_all_processes_and_removes_the_folder() -> anyhow::Result<()> {
    let (mut owner, folder) = owner().await?;
    let group = format!("-{}", owner.id().context("it runs")?);
    let sent = tokio::process::Command::new("kill")
        .args(["-s", "INT", "--", &group])
        .status()
        .await?;
    ensure!(sent.success(), "{sent}");
    tokio::time::timeout(LIMIT, owner.wait()).await??;
    until_nothing_is_left(&folder).await;
    Ok(())
}

#[tokio::test]
async fn a_panic_ends_all_processes_and_removes_the_folder() -> anyhow::Result<()> {
    let (tell, folder) = tokio::sync::oneshot::channel();
    let mut owner = JoinSet::new();
    owner.spawn(async {
        let control_plane = ControlPlane::start().await.unwrap();
        let running = programs_using(control_plane.folder()).unwrap();
        tell.send((control_plane.folder().to_owned(), running))
            .unwrap();
        panic!("as a failing test does");
    });
    let (folder, running) = folder.await?;
    ensure!(running.len() >= 2, "{running:?}");
    let ended: Result<(), _> = owner.join_next().await.context("an owner")?;
    ensure!(ended.is_err_and(|error| error.is_panic()), "no panic");
    until_nothing_is_left(&folder).await;
    Ok(())
}

/// File names of the programs whose command line mentions the folder.
fn programs_using(folder: &Path) -> anyhow::Result<Vec<String>> {
    let folder = folder.to_string_lossy().into_owned();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        // A process may end while we look.
        let Ok(command_line) = std::fs::read(entry?.path().join("cmdline")) else {
            continue;
        };
        let command_line = String::from_utf8_lossy(&command_line).into_owned();
        if command_line.contains(&folder) {
            let program = command_line.split('\0').next().unwrap_or_default();
            found.push(program.rsplit('/').next().unwrap_or_default().to_owned());
        }
    }
    Ok(found)
}

#[tokio::test]
async fn an_observer_is_told_what_is_there_and_then_all_that_comes_and_goes() -> anyhow::Result<()>
{
    let control_plane = shared_control_plane().await?;
    let namespace = control_plane.create_namespace("observed").await?;
    let client = control_plane.client()?;
    let maps = objects_in(&client, &namespace, "v1", "ConfigMap");
    let create = async |name: &str| -> anyhow::Result<()> {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let map: DynamicObject = serde_json::from_value(map)?;
        maps.create(&PostParams::default(), &map).await?;
        Ok(())
    };
    create("first").await?;

    let heard = Arc::new(Mutex::new(Vec::<String>::new()));
    let (hearing, path) = (heard.clone(), maps.resource_url().to_owned());
    let mut observer = JoinSet::new();
    observer.spawn(async move {
        observe(&client, &path, |told: Change<DynamicObject>| {
            let words = match told {
                Change::Listed(maps) => maps
                    .iter()
                    .map(|map| format!("listed {}", map.name_any()))
                    .collect(),
                Change::Changed(map) => vec![format!("changed {}", map.name_any())],
                Change::Deleted(map) => vec![format!("deleted {}", map.name_any())],
                Change::Gap(why) => vec![why],
            };
            hearing.lock().unwrap().extend(words);
        })
        .await;
    });
    let hears = async |expected: &[&str]| {
        let what = format!("the observer is told {expected:?}");
        eventually(&what, LIMIT, async || {
            let heard = heard.lock().unwrap().clone();
            if heard == expected {
                Ok(())
            } else {
                Err(heard)
            }
        })
        .await;
    };
    hears(&["listed first"]).await;
    create("second").await?;
    maps.delete("first", &DeleteParams::default()).await?;
    hears(&["listed first", "changed second", "deleted first"]).await;
    Ok(())
}
