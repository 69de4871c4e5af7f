//! Somebody who asks the API server all the time for what our webhook decides, and remembers each wrong answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::ensure;
use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use test_support::{ControlPlane, all_objects};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// Ten questions a second, of both kinds.
const PAUSE: Duration = Duration::from_millis(200);

/// Asks until it is dropped or [ended](Self::end).
pub struct AdmissionLoad {
    answers: Arc<Mutex<Answers>>,
    _asking: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Answers {
    right: usize,
    wrong: Vec<String>,
}

impl AdmissionLoad {
    /// Asks for a ClusterTemplate that the webhook admits, and for one that only the webhook refuses, both as dry runs.
    ///
    /// # Errors
    ///
    /// When there is no client.
    pub fn begin(control_plane: &ControlPlane) -> anyhow::Result<Self> {
        // Without retries: what is refused once is what this is about.
        let templates = all_objects(
            &Client::try_from(control_plane.config()?)?,
            "carto.run/v1alpha1",
            "ClusterTemplate",
        );
        let answers = Arc::new(Mutex::new(Answers::default()));
        let mut asking = JoinSet::new();
        asking.spawn(ask(templates, answers.clone()));
        Ok(Self {
            answers,
            _asking: asking,
        })
    }

    /// How many answers were right; all, that is.
    ///
    /// # Errors
    ///
    /// When one was wrong, or hardly any came.
    pub fn end(self) -> anyhow::Result<usize> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(
            answers.wrong.is_empty(),
            "{} right, and these wrong: {:#?}",
            answers.right,
            answers.wrong
        );
        ensure!(answers.right > 20, "only {} were asked", answers.right);
        Ok(answers.right)
    }
}

async fn ask(templates: Api<DynamicObject>, answers: Arc<Mutex<Answers>>) {
    let good = json!({"template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "asked"}}});
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let mut ticks = interval(PAUSE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let admitted = templates.create(&dry, &template(&good)).await;
        let refused = templates.create(&dry, &template(&json!({}))).await;
        let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        match admitted {
            Ok(_) => answers.right += 1,
            Err(error) => answers.wrong.push(error.to_string()),
        }
        match refused {
            Err(error) if error.to_string().contains("denied the request") => answers.right += 1,
            other => answers.wrong.push(format!("{other:?}")),
        }
    }
}

fn template(spec: &Value) -> DynamicObject {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "carto.run",
        "v1alpha1",
        "ClusterTemplate",
    ));
    DynamicObject::new("is-it-asked", &resource).data(json!({"spec": spec}))
}
