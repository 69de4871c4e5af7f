//! What a takeover would come to, and what stands in its way.

mod text;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::findings::Findings;
use super::install::{Controller, Definition, Installed, Package, Webhooks};
use super::owners::{Catalogue, Rehearsed};
use super::world::World;

/// The oldest minor of Kubernetes that takes our definitions.
const OLDEST_SERVER: u32 = 30;

/// The longest name that is taken of a new object.
const LONGEST_NAME: usize = 63;

/// How many objects of a kind there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Count {
    /// The kind.
    pub kind: String,
    /// How many.
    pub objects: usize,
}

/// A kind that the controllers may not watch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unwatched {
    /// API group, empty for the core group.
    pub group: String,
    /// Plural name.
    pub resource: String,
    /// A template or owner that has it stamped or selected.
    pub of: String,
}

/// What a takeover would come to. Its JSON is stable: fields are added, and none is taken away.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The Go controller.
    pub old: Vec<Controller>,
    /// Ours.
    pub ours: Vec<Controller>,
    /// How many objects there are.
    pub objects: Vec<Count>,
    /// The definitions of our kinds.
    pub definitions: Vec<Definition>,
    /// Webhooks of the Go controller, which are to go.
    pub webhooks: Vec<Webhooks>,
    /// What would scale it up again.
    pub packages: Vec<Package>,
    /// Kinds that the controllers may not watch.
    pub unwatched: Vec<Unwatched>,
    /// The ClusterRole that grants that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_role: Option<Value>,
    /// Objects with names that a new one could not have.
    pub long_names: Vec<String>,
    /// How many owners were walked over.
    pub judged_owners: usize,
    /// Whether dry runs were sent with the user's own rights, because he may neither have tokens nor impersonate.
    pub own_rights: bool,
    /// What the walks found.
    #[serde(flatten)]
    pub findings: Findings,
    /// What is to be done before anything is taken over.
    pub todo: Vec<String>,
    /// What would be otherwise than it is, and has to be accepted.
    pub blockers: Vec<String>,
}

impl Plan {
    pub(super) async fn of(
        world: &mut World,
        installed: Installed,
        catalogue: &Catalogue,
        rehearsed: Rehearsed,
    ) -> Self {
        let unwatched = unwatched(world, &installed, &rehearsed).await;
        let cluster_role = (!unwatched.is_empty()).then(|| cluster_role(&unwatched));
        let mut plan = Self {
            objects: counts(catalogue),
            long_names: long_names(catalogue),
            cluster_role,
            unwatched,
            judged_owners: rehearsed.owners,
            own_rights: rehearsed.own_rights,
            findings: rehearsed.findings,
            todo: Vec::new(),
            blockers: Vec::new(),
            old: installed.old,
            ours: installed.ours,
            definitions: installed.definitions,
            webhooks: installed.webhooks,
            packages: installed.packages,
        };
        plan.todo = plan.to_do(installed.server);
        plan.blockers = plan.blocks();
        plan
    }

    /// Whether nothing stands in the way.
    pub fn is_clear(&self) -> bool {
        self.todo.is_empty() && self.blockers.is_empty()
    }

    fn to_do(&self, server: Option<u32>) -> Vec<String> {
        let mut todo = Vec::new();
        if let Some(minor) = server.filter(|minor| *minor < OLDEST_SERVER) {
            todo.push(format!("Kubernetes 1.{minor} does not take carto's definitions: upgrade to 1.{OLDEST_SERVER} or newer"));
        }
        for package in &self.packages {
            todo.push(format!(
                "{} would scale the Go controller up again, or put its definitions back; pause it: {}",
                package.object, package.pause
            ));
        }
        let behind = self.definitions.iter().filter(|it| it.lacks.is_some());
        if let Some(first) = behind.clone().next() {
            todo.push(format!(
                "{} of {} definitions are not carto's ({} lacks {}): kubectl apply --server-side --force-conflicts -f deploy/crds",
                behind.count(),
                self.definitions.len(),
                first.name,
                first.lacks.as_deref().unwrap_or_default(),
            ));
        }
        if self.ours.is_empty() {
            todo.push(
                "carto is not installed: install it with 0 replicas, as docs/migrate.md says"
                    .to_owned(),
            );
        }
        let runs = |all: &[Controller]| all.iter().any(|it| it.replicas > 0);
        if runs(&self.old) && runs(&self.ours) {
            todo.push("the Go controller and carto run at the same time, and each makes every run: scale carto down: kubectl -n carto-system scale deployment --all --replicas=0".to_owned());
        }
        todo
    }

    fn blocks(&self) -> Vec<String> {
        let Findings {
            runs,
            changes,
            removals,
            refused,
            held,
            unjudged,
        } = &self.findings;
        let counts = [
            (runs.len(), "runs would start"),
            (changes.len(), "objects would be made or changed"),
            (removals.len(), "objects would be deleted"),
            (refused.len(), "objects would be refused"),
            (held.len(), "steps would not update their objects any more"),
            (unjudged.len(), "steps or owners could not be judged"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        counts
            .map(|(count, what)| format!("{count} {what}"))
            .collect()
    }
}

fn counts(catalogue: &Catalogue) -> Vec<Count> {
    let owners = catalogue.owners.iter();
    let owners = owners.map(|(kind, owners)| (kind.kind(), owners.len()));
    let others = [&catalogue.blueprints, &catalogue.template_counts];
    let others = others.into_iter().flatten();
    owners
        .chain(others.map(|(kind, objects)| (*kind, objects.len())))
        .map(|(kind, objects)| Count {
            kind: kind.to_owned(),
            objects,
        })
        .collect()
}

fn long_names(catalogue: &Catalogue) -> Vec<String> {
    let owners = catalogue.owners.iter();
    let owners = owners.map(|(kind, owners)| (kind.kind(), owners));
    let others = [&catalogue.blueprints, &catalogue.template_counts];
    let others = others.into_iter().flatten();
    let all = owners.chain(others.map(|(kind, objects)| (*kind, objects)));
    let mut long = Vec::new();
    for (kind, objects) in all {
        for object in objects {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let (namespace, name) = (text("namespace"), text("name"));
            if name.chars().count() > LONGEST_NAME {
                long.push(format!("{kind} {namespace}/{name}"));
            }
        }
    }
    long
}

async fn unwatched(
    world: &mut World,
    installed: &Installed,
    rehearsed: &Rehearsed,
) -> Vec<Unwatched> {
    let mut found = BTreeMap::new();
    for (kind, of) in &rehearsed.kinds {
        // What is not served cannot be watched by anybody.
        let Ok(served) = world.served(kind).await else {
            continue;
        };
        let (group, resource) = (kind.group().to_owned(), served.resource.plural);
        if !installed.may_watch(&group, &resource) {
            found.entry((group, resource)).or_insert_with(|| of.clone());
        }
    }
    let found = found.into_iter();
    found
        .map(|((group, resource), of)| Unwatched {
            group,
            resource,
            of,
        })
        .collect()
}

fn cluster_role(unwatched: &[Unwatched]) -> Value {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for it in unwatched {
        groups.entry(&it.group).or_default().push(&it.resource);
    }
    let rules = groups.into_iter().map(|(group, resources)| {
        json!({"apiGroups": [group], "resources": resources, "verbs": ["list", "watch"]})
    });
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": "carto-watched-by-my-templates",
            "labels": {"carto.run/aggregate-to-watched": "true"},
        },
        "rules": rules.collect::<Vec<_>>(),
    })
}
