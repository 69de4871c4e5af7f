//! Jobs, Deployments and Services on a node.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use e2e::pods::tell;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use test_support::{ControlPlane, GitServer, Node, assets, eventually};

use crate::LIMIT;
use crate::traces::{Machine, NodeTraces};

#[tokio::test]
async fn pods_run_reach_each_other_and_leave_nothing() -> anyhow::Result<()> {
    let before = Machine::look()?;
    let control_plane = ControlPlane::builder()
        .controller_manager(true)
        .extra_apiserver_args(Node::apiserver_flags()?)
        .start()
        .await?;
    let node = Node::start(&control_plane).await?;

    let address = a_service_of_a_deployment(&control_plane).await?;
    let greeting = log_of_a_job(
        &control_plane,
        &node,
        "caller",
        &format!("wget -q -O - http://{address}"),
    )
    .await?;
    assert_eq!(greeting, "hello from a pod\n");
    git_serves_a_job(&control_plane, &node).await?;
    a_job_reaches_the_api_server(&control_plane, &node).await?;

    let traces = NodeTraces::of_the_running_one()?;
    let folder = node.folder().to_path_buf();
    node.stop()?;
    assert_eq!(traces.left()?, Vec::<String>::new());
    let after = Machine::look()?;
    ensure!(after == before, "{}", before.difference(&after));
    assert!(!folder.exists());
    Ok(())
}

/// Waits until the Deployment is available, and returns the cluster IP of its Service.
async fn a_service_of_a_deployment(control_plane: &ControlPlane) -> anyhow::Result<String> {
    let image = Node::TOOLS_IMAGE;
    let script =
        "mkdir /www; echo hello from a pod >/www/index.html; exec httpd -f -p 8080 -h /www";
    control_plane
        .apply_yaml(&format!(
            r"
apiVersion: apps/v1
kind: Deployment
metadata: {{name: greeter}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: greeter}}}}
  template:
    metadata: {{labels: {{app: greeter}}}}
    spec:
      containers:
      - name: greeter
        image: {image}
        command: [sh, -c, '{script}']
        readinessProbe: {{httpGet: {{path: /, port: 8080}}, periodSeconds: 1}}
---
apiVersion: v1
kind: Service
metadata: {{name: greeter}}
spec:
  selector: {{app: greeter}}
  ports: [{{port: 80, targetPort: 8080}}]
"
        ))
        .await?;
    let deployments: Api<Deployment> = Api::default_namespaced(control_plane.client()?);
    eventually("the Deployment is available", LIMIT, async || {
        let status = deployments.get("greeter").await?.status;
        let conditions = status.and_then(|status| status.conditions);
        let available = conditions
            .iter()
            .flatten()
            .any(|condition| condition.type_ == "Available" && condition.status == "True");
        ensure!(available, "{conditions:?}");
        anyhow::Ok(())
    })
    .await;
    let services: Api<Service> = Api::default_namespaced(control_plane.client()?);
    let spec = services.get("greeter").await?.spec;
    spec.and_then(|spec| spec.cluster_ip)
        .context("no cluster IP")
}

async fn git_serves_a_job(control_plane: &ControlPlane, node: &Node) -> anyhow::Result<()> {
    let git = GitServer::start()?;
    git.create_repo("app")?;
    let commit = git.commit("app", &[("a", "b")], "first")?;
    let url = git.url("app");
    let (host, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .context(url.clone())?;
    let port = host.rsplit(':').next().context("no port")?.parse()?;
    let reachable = node.reach(port).await?;
    let url = format!("http://{}/{path}", reachable.address());
    let head = format!("git clone -q {url} /tmp/app && git -C /tmp/app rev-parse HEAD");
    let log = log_of_a_job(control_plane, node, "cloner", &head).await?;
    assert_eq!(log.trim(), commit);
    Ok(())
}

/// By its Service, with the certificate checked, and refused for want of rights: all as in any cluster.
async fn a_job_reaches_the_api_server(
    control_plane: &ControlPlane,
    node: &Node,
) -> anyhow::Result<()> {
    let script = "git -c http.sslCAInfo=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt \
         ls-remote https://$KUBERNETES_SERVICE_HOST/api/v1/namespaces/default/secrets 2>&1 || true";
    let log = log_of_a_job(control_plane, node, "client", script).await?;
    ensure!(log.contains("403"), "{log}");
    Ok(())
}

/// Runs a Job to its end and returns what `kubectl logs` shows of it.
async fn log_of_a_job(
    control_plane: &ControlPlane,
    node: &Node,
    name: &str,
    script: &str,
) -> anyhow::Result<String> {
    let image = Node::TOOLS_IMAGE;
    control_plane
        .apply_yaml(&format!(
            r"
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: job
        image: {image}
        command: [sh, -c, '{script}']
"
        ))
        .await?;
    let jobs: Api<Job> = Api::default_namespaced(control_plane.client()?);
    let begun = Instant::now();
    eventually(&format!("Job {name} has ended"), LIMIT, async || {
        let status = jobs.get(name).await?.status;
        let conditions = status.and_then(|status| status.conditions);
        let ended = ["Complete", "Failed"].map(|wanted| {
            let mut all = conditions.iter().flatten();
            all.any(|condition| condition.type_ == wanted && condition.status == "True")
        });
        if ended.contains(&true) {
            return Ok(());
        }
        let mut why = String::new();
        if begun.elapsed() > LIMIT / 2 {
            why = tell(control_plane, node, "default").await?;
        }
        bail!("{conditions:?}\n{why}")
    })
    .await;
    let log = kubectl(control_plane, &["logs", &format!("job/{name}")])?;
    let succeeded = jobs.get(name).await?.status.and_then(|it| it.succeeded);
    ensure!(
        succeeded == Some(1),
        "Job {name} failed; what it printed:\n{log}"
    );
    Ok(log)
}

fn kubectl(control_plane: &ControlPlane, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(assets()?.binary("kubectl")?)
        .arg("--kubeconfig")
        .arg(control_plane.kubeconfig_path())
        .args(arguments)
        .output()?;
    ensure!(
        output.status.success(),
        "kubectl {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}
