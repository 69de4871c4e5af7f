//! A kind whose conversion webhook goes: what was listed of it is believed for a while, and then no longer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use controller_kit::cluster::Cluster;
use controller_kit::mapper::{Kind, Mapper};
use controller_kit::metrics::Metrics;
use controller_kit::shutdown::Tasks;
use controller_kit::stamped::{KindWatch, Projection, Readiness, StampedWatches, WatchSettings};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use test_support::{ControlPlane, all_objects, eventually, shared_control_plane};

use crate::stage::{PATIENCE, watch_settings};

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.stale.run}
spec:
  group: stale.run
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    - name: v2
      served: true
      storage: false
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

const THING: &str = "
apiVersion: stale.run/v1
kind: Thing
metadata:
  name: thing
  labels: {carto.run/workload-name: app}
  ownerReferences:
    - {apiVersion: carto.run/v1alpha1, kind: Workload, name: app, uid: of-app, controller: true}
";

async fn set_conversion(plane: &ControlPlane, conversion: Value) {
    let client = plane.client().unwrap();
    let definitions = all_objects(
        &client,
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
    );
    let patch = Patch::Merge(json!({"spec": {"conversion": conversion}}));
    definitions
        .patch("things.stale.run", &PatchParams::default(), &patch)
        .await
        .unwrap();
}

async fn watched(watches: &StampedWatches, mapper: &Mapper, kind: Kind) -> Arc<KindWatch> {
    let served = mapper.served(&kind).await.unwrap();
    let watch = watches.ensure(&served, &Projection::default());
    assert_eq!(watch.ready().await, Readiness::Synced, "{kind}");
    watch
}

#[tokio::test]
async fn a_kind_whose_conversion_webhook_is_gone_is_stale_until_it_is_converted_again() {
    let plane = shared_control_plane().await.unwrap();
    let namespace = plane.create_namespace("stale").await.unwrap();
    plane.apply_yaml(DEFINITION).await.unwrap();
    plane.apply_yaml_in(&namespace, THING).await.unwrap();
    let metrics = Arc::new(Metrics::new());
    let cluster = Cluster::connect(plane.config().unwrap(), metrics.clone()).unwrap();
    let mapper = Arc::new(Mapper::new(cluster.clone()));
    let woken = Arc::new(Mutex::new(Vec::new()));
    let (heard, tasks) = (woken.clone(), Tasks::new());
    let settings = WatchSettings {
        stale_after: Duration::from_secs(3),
        hears_others: Arc::new(move |resource| metrics.hears_others(resource)),
        wake: Arc::new(move |_, name| heard.lock().unwrap().push(name.to_owned())),
        ..watch_settings()
    };
    let watches = StampedWatches::new(cluster, mapper.clone(), settings, tasks.clone());
    // What the API server is heard on besides.
    watched(&watches, &mapper, Kind::new("v1", "ConfigMap")).await;
    let watch = watched(&watches, &mapper, Kind::new("stale.run/v2", "Thing")).await;
    assert_eq!(watch.len(), 1);
    woken.lock().unwrap().clear();

    // Nobody listens there.
    let gone = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:9/none"}}});
    set_conversion(plane, gone).await;
    let why = eventually("it is stale", PATIENCE, async || {
        match watch.ready().await {
            Readiness::Stale { why, .. } => Ok(Some(why)),
            other => Err(other),
        }
    })
    .await;
    assert!(why.contains("conversion webhook"), "{why}");
    eventually("its owner is woken", PATIENCE, async || {
        let woken = woken.lock().unwrap();
        if woken.contains(&"app".to_owned()) {
            Ok(())
        } else {
            Err(woken.clone())
        }
    })
    .await;

    woken.lock().unwrap().clear();
    set_conversion(plane, json!({"strategy": "None", "webhook": null})).await;
    eventually("it is listed", PATIENCE, async || {
        match watch.ready().await {
            Readiness::Synced => Ok(()),
            other => Err(other),
        }
    })
    .await;
    eventually("its owner is woken again", PATIENCE, async || {
        let woken = woken.lock().unwrap();
        if woken.contains(&"app".to_owned()) {
            Ok(())
        } else {
            Err(woken.clone())
        }
    })
    .await;
    tasks.token().cancel();
}
