//! Admission of pods: what their presets add to them.
//!
//! A pod is never kept from being created because something is wrong here: presets that are not
//! known yet, work that takes too long, and a fault of ours all admit it as it is, with a warning.
//! Only a preset that says `conflictPolicy: Deny` denies.

use std::sync::Arc;
use std::time::{Duration, Instant};

use controller_kit::process::Synced;
use controller_kit::stamped::ObjectKey;
use controller_kit::webhook::{Admit, Answer, Operation, Review};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use pod_presets::{
    Conflict, Injection, Preset, Untouched, inject, inject_ephemeral, passes_gate, patch,
};
use serde_json::Value;
use tokio::sync::Semaphore;
use tracing::{debug, warn};

use super::answer::answer_to;
use super::counts::Counts;
use super::entries::{NamespaceEntry, PresetEntry, labels_of};
use super::index::{Candidates, Index};
use super::metrics::{PodOutcome, PresetMetrics};
use super::subject::LONGEST_NAME;
use super::tell::Teller;
use super::{News, Stores};

/// How long the answer to a pod may take, less than the API server waits for it.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How long a pod waits for what is not known yet: at the start, and for a namespace that was
/// created a moment ago.
const FOR_NEWS: Duration = Duration::from_millis(500);
/// How many pods are worked on at once. One takes well under a millisecond, with a thousand presets
/// some.
const AT_ONCE: usize = 8;
/// The most entries of presets times containers of a pod: hundreds of variables for dozens of
/// containers.
const MOST_WORK: usize = 50_000;

/// Admits pods.
pub(super) struct PodAdmission {
    pub(super) index: Arc<Index>,
    pub(super) stores: Arc<Stores>,
    pub(super) news: Arc<News>,
    pub(super) synced: Synced,
    pub(super) teller: Teller,
    pub(super) counts: Arc<Counts>,
    pub(super) metrics: Arc<PresetMetrics>,
    pub(super) room: Arc<Semaphore>,
    /// Whether containers that are added to a running pod get presets, too.
    pub(super) ephemeral: bool,
    /// What takes a processor for a while.
    pub(super) judge: Judge,
}

/// Says what becomes of a pod; nothing if presets are not for it.
pub(super) type Judge =
    fn(&Review, &Candidates, Option<&NamespaceEntry>) -> Result<Option<Done>, Unanswered>;

/// What became of a pod that presets are for.
#[derive(Default)]
pub(super) struct Done {
    /// Those that select it, in their order.
    pub(super) matching: Vec<Arc<PresetEntry>>,
    pub(super) injection: Injection,
    /// Nothing if the pod is to be stored as it came.
    pub(super) patch: Vec<Value>,
}

impl Done {
    /// What came across something, with whose wish it was.
    pub(super) fn conflicts(&self) -> impl Iterator<Item = (&Arc<PresetEntry>, &Conflict)> {
        self.injection.conflicts.iter().filter_map(|conflict| {
            let mut matching = self.matching.iter();
            let entry = matching.find(|entry| entry.is(&conflict.preset))?;
            Some((entry, conflict))
        })
    }
}

/// Why nothing is said about a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unanswered {
    #[error("pod presets are not known yet")]
    NotSynced,
    #[error("pod presets may not be listed, see the log of the controller")]
    Refused,
    #[error("pod presets took too long")]
    TooLate,
    #[error("pod presets failed unexpectedly, see the log of the controller")]
    Panicked,
    #[error("the labels of the namespace are not known yet")]
    UnknownNamespace,
    #[error("pod presets have too many entries for so many containers")]
    TooMuch,
    #[error("the process ends")]
    Ends,
    #[error("{}", Untouched::NotAPod)]
    NotAPod,
}

impl PodAdmission {
    pub(super) fn room() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(AT_ONCE))
    }

    async fn answer(&self, review: Arc<Review>) -> Answer {
        let started = Instant::now();
        let is_asked = match (review.operation, &*review.sub_resource) {
            (Operation::Create, "") => true,
            (Operation::Update, "ephemeralcontainers") => self.ephemeral,
            _ => false,
        };
        if !is_asked {
            return Answer::default();
        }
        let done = tokio::time::timeout(PATIENCE, self.work(&review)).await;
        let done = done.unwrap_or(Err(Unanswered::TooLate));
        let (outcome, answer) = match &done {
            Ok(None) => (PodOutcome::Untouched, Answer::default()),
            Ok(Some(done)) => (self.conclude(&review, done), answer_to(done)),
            Err(why) => (PodOutcome::Failed, unanswered(&review, *why)),
        };
        self.metrics.answered(outcome, started.elapsed());
        answer
    }

    /// Nothing if presets are not for this pod.
    async fn work(&self, review: &Arc<Review>) -> Result<Option<Done>, Unanswered> {
        // That does not pass within half a second.
        if self.stores.refused().is_some() {
            return Err(Unanswered::Refused);
        }
        let waited = tokio::time::timeout(FOR_NEWS, self.synced.wait()).await;
        waited.map_err(|_| Unanswered::NotSynced)?;
        let candidates = self.index.candidates(&review.namespace);
        if candidates.is_empty() {
            return Ok(None);
        }
        let namespace = self.namespace(review, &candidates).await?;
        let turn = self.room.clone().acquire_owned().await;
        let (review, judge) = (review.clone(), self.judge);
        let working = tokio::task::spawn_blocking(move || {
            let done = judge(&review, &candidates, namespace.as_deref());
            drop(turn);
            done
        });
        match working.await {
            Ok(done) => done,
            Err(failed) if failed.is_panic() => Err(Unanswered::Panicked),
            Err(_) => Err(Unanswered::Ends),
        }
    }

    /// The namespace, if its labels may decide. One that has just been created is known a moment
    /// later; without its labels a selector that asks for some not to be there would match.
    async fn namespace(
        &self,
        review: &Review,
        candidates: &Candidates,
    ) -> Result<Option<Arc<NamespaceEntry>>, Unanswered> {
        if !candidates.ask_for_namespaces() {
            return Ok(None);
        }
        let known = self.known_namespace(&review.namespace);
        let known = tokio::time::timeout(FOR_NEWS, known).await;
        known.map(Some).map_err(|_| Unanswered::UnknownNamespace)
    }

    async fn known_namespace(&self, name: &str) -> Arc<NamespaceEntry> {
        let key = ObjectKey::new("", name);
        loop {
            // Whoever is told of news from now on need not look again.
            let news = self.news.namespaces.notified();
            if let Some(entry) = self.stores.namespaces.get(&key) {
                return entry;
            }
            news.await;
        }
    }

    /// What others are told. Nothing is told of a dry run.
    fn conclude(&self, review: &Review, done: &Done) -> PodOutcome {
        if !review.is_dry_run {
            self.teller.tell_conflicts(review, done);
            self.counts.count(review, done);
        }
        PodOutcome::of(&done.injection)
    }
}

impl Admit for PodAdmission {
    fn admit(&self, review: Arc<Review>) -> BoxFuture<'_, Option<Answer>> {
        async move { Some(self.answer(review).await) }.boxed()
    }
}

fn unanswered(review: &Review, why: Unanswered) -> Answer {
    // Of a name that is too long to be one nothing is told.
    let name = Some(&*review.name).filter(|it| it.len() <= LONGEST_NAME);
    let (namespace, name) = (&*review.namespace, name.unwrap_or_default());
    warn!(namespace, name, error = %why, "a pod is admitted as it is");
    Answer {
        warnings: vec![format!("{why}; the pod is admitted as it is")],
        ..Answer::default()
    }
}

pub(super) fn judge(
    review: &Review,
    candidates: &Candidates,
    namespace: Option<&NamespaceEntry>,
) -> Result<Option<Done>, Unanswered> {
    let pod = review.object.as_ref().map_err(|_| Unanswered::NotAPod)?;
    match passes_gate(pod) {
        Ok(()) => {}
        Err(Untouched::NotAPod) => return Err(Unanswered::NotAPod),
        Err(why) => {
            debug!(namespace = &*review.namespace, name = &*review.name, %why, "a pod is left alone");
            return Ok(None);
        }
    }
    let matching = candidates.of(&labels_of(pod), namespace);
    if matching.is_empty() {
        return Ok(None);
    }
    if is_too_much(pod, &matching) {
        return Err(Unanswered::TooMuch);
    }
    Ok(Some(done(review, pod, matching)))
}

/// What is looked at is each entry of each preset in each container. A tenant can write both by the
/// thousand, and their product would fill the memory.
pub(super) fn is_too_much(pod: &Value, matching: &[Arc<PresetEntry>]) -> bool {
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let lists = lists.iter().filter_map(|list| pod["spec"][list].as_array());
    let containers: usize = lists.map(Vec::len).sum();
    let presets = matching.iter().filter_map(|entry| entry.preset());
    let entries: usize = presets.map(Preset::entries).sum();
    entries.saturating_mul(containers.max(1)) > MOST_WORK
}

fn done(review: &Review, pod: &Value, matching: Vec<Arc<PresetEntry>>) -> Done {
    let presets: Vec<&Preset> = matching.iter().filter_map(|entry| entry.preset()).collect();
    let injection = match review.operation {
        Operation::Create => inject(pod, &presets),
        // What was there before cannot be read if it is no pod; then nothing of it is new.
        _ => inject_ephemeral(pod, &review.old_object().unwrap_or_default(), &presets),
    };
    let operations = injection.pod.as_ref().map(|after| patch(pod, after).0);
    let operations = operations.into_iter().flatten();
    let patch = operations.filter_map(|operation| serde_json::to_value(operation).ok());
    Done {
        patch: patch.collect(),
        injection,
        matching,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use controller_kit::cluster::Cluster;
    use controller_kit::events::{EventRecorder, EventSettings};
    use controller_kit::metrics::Metrics;
    use controller_kit::process::{Process, Work};
    use controller_kit::reflect::{Change, Entry as _, Reflector, key_of};
    use controller_kit::shutdown::Tasks;
    use futures::StreamExt as _;
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    fn preset() -> Value {
        json!({
            "apiVersion": "settings.carto.run/v1alpha1", "kind": "PodPreset",
            "metadata": {"name": "db", "namespace": "dev", "uid": "u", "resourceVersion": "7"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "env": [{"name": "A", "value": "b"}]},
        })
    }

    fn pod() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web", "namespace": "dev", "labels": {"a": "b"}},
            "spec": {"containers": [{"name": "web"}]},
        })
    }

    fn review(more: &Value, pod: &Value) -> Arc<Review> {
        let mut request =
            json!({"uid": "r", "operation": "CREATE", "namespace": "dev", "object": pod});
        let fields = request.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        Arc::new(Review::parse("Pod", review.to_string().as_bytes()).unwrap())
    }

    fn create(pod: &Value) -> Arc<Review> {
        review(&json!({}), pod)
    }

    /// Nobody answers what is sent to the API server.
    fn process() -> Process {
        let service = tower::service_fn(|_: http::Request<Body>| {
            std::future::pending::<Result<http::Response<Body>, std::convert::Infallible>>()
        });
        let client = kube::Client::new(service, "default");
        let metrics = Arc::new(Metrics::new());
        let cluster = Cluster::new(client.clone(), client, metrics.clone());
        Process::new(crate::PROGRAM, cluster, metrics, Tasks::new())
    }

    fn admission(judge: Judge) -> PodAdmission {
        let process = process();
        let events = EventRecorder::start(
            process.cluster.controller(),
            &EventSettings::default(),
            process.cluster.clock(),
            process.metrics.clone(),
            &process.tasks,
        );
        let index = Index::default();
        let entry = Arc::new(PresetEntry::build(preset()));
        index.changed(&Change {
            key: &key_of(&preset()),
            before: None,
            after: Some(&entry),
        });
        PodAdmission {
            index: Arc::new(index),
            stores: Arc::default(),
            news: Arc::default(),
            synced: Synced::default(),
            teller: Teller(events),
            counts: Arc::new(Counts::new(process.cluster.clock())),
            metrics: Arc::new(PresetMetrics::new(&process.metrics.build())),
            room: PodAdmission::room(),
            ephemeral: false,
            judge,
        }
    }

    async fn said(admission: &PodAdmission, review: Arc<Review>) -> (bool, usize, Vec<String>) {
        let answer = admission.admit(review).await.unwrap();
        (answer.error.is_none(), answer.patch.len(), answer.warnings)
    }

    fn as_it_is(why: &str) -> (bool, usize, Vec<String>) {
        let warning = format!("{why}; the pod is admitted as it is");
        (true, 0, vec![warning])
    }

    #[tokio::test]
    async fn only_whole_pods_that_are_created_are_looked_at() {
        let admission = admission(judge);
        let injected = said(&admission, create(&pod())).await;
        assert!(injected.0 && injected.1 > 0, "{injected:?}");
        let untouched = (true, 0, Vec::new());
        for more in [
            json!({"operation": "UPDATE"}),
            json!({"operation": "UPDATE", "subResource": "status"}),
            json!({"operation": "UPDATE", "subResource": "ephemeralcontainers"}),
            json!({"operation": "CREATE", "subResource": "binding"}),
            json!({"operation": "CREATE", "subResource": "eviction"}),
            json!({"operation": "DELETE"}),
            json!({"operation": "CREATE", "namespace": "other"}),
        ] {
            assert_eq!(
                said(&admission, review(&more, &pod())).await,
                untouched,
                "{more}"
            );
        }
    }

    #[tokio::test]
    async fn whatever_is_sent_as_a_pod_is_admitted() {
        let admission = admission(judge);
        let deep = (0..200).fold(json!(1), |within, _| json!([within]));
        let mut strange = pod();
        strange["spec"]["containers"] = json!([null, 7, {"name": {"a": 1}, "env": {"b": []}}]);
        strange["metadata"]["annotations"] = json!([1, 2]);
        let many: Vec<Value> = (0..5000)
            .map(|number| json!({"name": number.to_string()}))
            .collect();
        let mut large = pod();
        large["spec"]["containers"] = json!(many);
        let mut unlabelled = pod();
        unlabelled["metadata"]["labels"] = json!("a");
        for hostile in [
            json!("pod"),
            json!([]),
            json!({}),
            deep,
            strange,
            large,
            unlabelled,
        ] {
            let (is_admitted, ..) = said(&admission, create(&hostile)).await;
            assert!(is_admitted);
        }
        let other = json!({"kind": "Deployment", "spec": {}});
        let why = "Resource was marked with kind Pod but was unable to be converted";
        assert_eq!(said(&admission, create(&other)).await, as_it_is(why));
    }

    /// A tenant can write thousands of both, and their product would fill the memory.
    #[tokio::test]
    async fn too_many_entries_for_too_many_containers_admit_the_pod_as_it_is() {
        let env: Vec<Value> = (0..100)
            .map(|index| json!({"name": format!("A{index}"), "value": "b"}))
            .collect();
        let mut many = preset();
        many["spec"]["env"] = json!(env);
        let index = Index::default();
        let entry = Arc::new(PresetEntry::build(many));
        index.changed(&Change {
            key: &key_of(&preset()),
            before: None,
            after: Some(&entry),
        });
        let of = |count: usize| {
            let mut pod = pod();
            let containers = (0..count).map(|index| json!({"name": format!("c{index}")}));
            pod["spec"]["containers"] = containers.collect();
            judge(&create(&pod), &index.candidates("dev"), None)
        };
        assert!(of(500).unwrap().is_some());
        assert!(matches!(of(501), Err(Unanswered::TooMuch)));
    }

    #[tokio::test]
    async fn a_fault_of_ours_admits_the_pod_as_it_is() {
        let admission = admission(|_, _, _| panic!("a fault"));
        let why = "pod presets failed unexpectedly, see the log of the controller";
        assert_eq!(said(&admission, create(&pod())).await, as_it_is(why));
        assert_eq!(said(&admission, create(&pod())).await, as_it_is(why));
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_too_long_admits_the_pod_as_it_is() {
        static GOES_ON: AtomicBool = AtomicBool::new(true);
        let admission = admission(|_, _, _| {
            while GOES_ON.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            Ok(None)
        });
        let review = create(&pod());
        let (said, ()) = tokio::join!(said(&admission, review), async {
            tokio::time::advance(PATIENCE + Duration::from_millis(1)).await;
        });
        GOES_ON.store(false, Ordering::Release);
        assert_eq!(said, as_it_is("pod presets took too long"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_waits_for_presets_that_are_not_known_yet_but_not_for_long() {
        let process = process();
        let mut work = Work::default();
        let (index, never) = (
            Arc::<Reflector<PresetEntry>>::default(),
            futures::stream::pending(),
        );
        work.follow(&process.tasks, "never", &index, never.boxed(), |_| {});
        let admission = PodAdmission {
            synced: work.synced(),
            ..admission(judge)
        };
        let why = "pod presets are not known yet";
        assert_eq!(said(&admission, create(&pod())).await, as_it_is(why));
    }

    #[tokio::test(start_paused = true)]
    async fn a_preset_of_the_cluster_is_not_for_a_namespace_of_which_nothing_is_known() {
        let admission = admission(judge);
        let mut of_cluster = preset();
        of_cluster["kind"] = json!("ClusterPodPreset");
        of_cluster["metadata"] = json!({"name": "all", "uid": "v", "resourceVersion": "8"});
        let outside = json!([{"key": "team", "operator": "DoesNotExist"}]);
        of_cluster["spec"]["namespaceSelector"] = json!({"matchExpressions": outside});
        let entry = Arc::new(PresetEntry::build(of_cluster.clone()));
        admission.index.changed(&Change {
            key: &key_of(&of_cluster),
            before: None,
            after: Some(&entry),
        });
        let why = "the labels of the namespace are not known yet";
        assert_eq!(said(&admission, create(&pod())).await, as_it_is(why));
    }

    #[tokio::test]
    async fn of_a_dry_run_nothing_is_counted() {
        let admission = admission(judge);
        said(&admission, review(&json!({"dryRun": true}), &pod())).await;
        assert!(
            admission
                .counts
                .take_due(tokio::time::Instant::now())
                .is_empty()
        );
        said(&admission, create(&pod())).await;
        assert_eq!(
            admission.counts.take_due(tokio::time::Instant::now())["u"].applied,
            1
        );
    }
}
