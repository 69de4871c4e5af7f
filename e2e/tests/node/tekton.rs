//! Tekton Pipelines on a node.

use std::collections::BTreeMap;

use e2e::tekton;
use test_support::{ControlPlane, Node};

#[tokio::test]
async fn a_taskrun_runs_on_the_node() -> anyhow::Result<()> {
    let control_plane = ControlPlane::builder()
        .controller_manager(true)
        .extra_apiserver_args(Node::apiserver_flags()?)
        .start()
        .await?;
    let node = Node::start(&control_plane).await?;
    tekton::install(&control_plane, &node).await?;
    let image = Node::TOOLS_IMAGE;
    control_plane
        .apply_yaml(&format!(
            r#"
apiVersion: tekton.dev/v1
kind: TaskRun
metadata: {{name: greet}}
spec:
  params: [{{name: whom, value: tekton}}]
  taskSpec:
    params: [{{name: whom}}]
    results: [{{name: greeting}}]
    steps:
    - name: greet
      image: {image}
      script: |
        #!/bin/sh
        printf 'hello %s' "$(params.whom)" >"$(results.greeting.path)"
"#
        ))
        .await?;
    let results = tekton::results_of(&control_plane, "default", "greet").await?;
    let expected = BTreeMap::from([("greeting".to_owned(), "hello tekton".to_owned())]);
    assert_eq!(results, expected);
    Ok(())
}
