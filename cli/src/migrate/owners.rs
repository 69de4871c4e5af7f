//! All owners of a cluster, their blueprints and templates, and what a walk over each comes to.

mod one;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use api_types::TemplateKind;
use jiff::Timestamp;
use kube::api::{Api, ListParams};
use realizer::runnable::RunTemplate;
use realizer::{Blueprint, Family, Template, TemplateSource, TemplateState};
use serde_json::Value;
use submission::Kind;

use super::findings::Findings;
use super::world::{World, all_of, in_words};
use crate::cluster::of_ours;
use crate::target::TargetKind;
use one::One;

/// The kinds of owners.
pub(super) const OWNERS: [TargetKind; 3] = [
    TargetKind::Owner(Family::SupplyChain),
    TargetKind::Owner(Family::Delivery),
    TargetKind::Runnable,
];

const FAMILIES: [Family; 2] = [Family::SupplyChain, Family::Delivery];

/// What the owners of a cluster are realized by.
#[derive(Default)]
pub(super) struct Catalogue {
    pub(super) owners: Vec<(TargetKind, Vec<Value>)>,
    pub(super) blueprints: BTreeMap<&'static str, Vec<Value>>,
    pub(super) template_counts: BTreeMap<&'static str, Vec<Value>>,
    compiled: HashMap<&'static str, Vec<Arc<Blueprint>>>,
    templates: HashMap<(TemplateKind, String), Result<Arc<Template>, String>>,
    run_templates: HashMap<String, Result<Arc<RunTemplate>, String>>,
}

impl TemplateSource for Catalogue {
    fn template(&self, kind: TemplateKind, name: &str) -> TemplateState {
        match self.templates.get(&(kind, name.to_owned())) {
            Some(Ok(template)) => TemplateState::Found(template.clone()),
            Some(Err(error)) => TemplateState::Unreadable(error.clone()),
            None => TemplateState::Missing,
        }
    }
}

/// What all rehearsals came to.
#[derive(Default)]
pub(super) struct Rehearsed {
    pub(super) findings: Findings,
    /// The kinds that are stamped or selected, and an owner or template of each.
    pub(super) kinds: BTreeMap<Kind, String>,
    /// Whether something was tried with the user's own rights.
    pub(super) own_rights: bool,
    /// How many owners were judged.
    pub(super) owners: usize,
}

impl Catalogue {
    /// Reads all of it.
    ///
    /// # Errors
    /// The kind that cannot be listed, and why.
    pub(super) async fn read(world: &World) -> anyhow::Result<Self> {
        let mut catalogue = Self::default();
        for kind in OWNERS {
            let owners = list(world, kind.kind(), kind.plural()).await?;
            catalogue.owners.push((kind, owners));
        }
        for family in FAMILIES {
            let kind = family.blueprint_kind();
            let objects = list(world, kind, family.blueprint_plural()).await?;
            let blueprints = objects
                .iter()
                .filter_map(|object| Blueprint::compile(family, object).ok());
            let mut blueprints: Vec<Arc<Blueprint>> = blueprints.map(Arc::new).collect();
            blueprints.sort_by(|left, right| left.name.cmp(&right.name));
            catalogue.compiled.insert(kind, blueprints);
            catalogue.blueprints.insert(kind, objects);
        }
        let kinds: BTreeSet<TemplateKind> = FAMILIES
            .iter()
            .flat_map(|family| family.template_kinds().iter().copied())
            .collect();
        for kind in kinds {
            let objects = list(world, kind.as_str(), kind.plural()).await?;
            for object in &objects {
                let compiled = Template::compile(object).map(Arc::new);
                let compiled = compiled.map_err(|error| error.to_string());
                catalogue
                    .templates
                    .insert((kind, name(object).to_owned()), compiled);
            }
            catalogue.template_counts.insert(kind.as_str(), objects);
        }
        let objects = list(world, "ClusterRunTemplate", "clusterruntemplates").await?;
        for object in &objects {
            let compiled = RunTemplate::compile(object).map(Arc::new);
            let compiled = compiled.map_err(|error| error.to_string());
            catalogue
                .run_templates
                .insert(name(object).to_owned(), compiled);
        }
        catalogue
            .template_counts
            .insert("ClusterRunTemplate", objects);
        Ok(catalogue)
    }

    /// The kinds that stand literally in templates.
    fn stamped_kinds(&self) -> BTreeMap<Kind, String> {
        let of_templates = self
            .templates
            .iter()
            .filter_map(|((kind, name), template)| {
                let (api_version, stamped) = template.as_ref().ok()?.stamped_kind()?;
                Some((Kind::new(api_version, stamped), format!("{kind} {name}")))
            });
        let of_runs = self.run_templates.iter().filter_map(|(name, template)| {
            let (api_version, stamped) = template.as_ref().ok()?.stamped_kind()?;
            Some((
                Kind::new(api_version, stamped),
                format!("ClusterRunTemplate {name}"),
            ))
        });
        of_templates.chain(of_runs).collect()
    }

    /// Walks over all owners; nothing is written.
    pub(super) async fn rehearse(&self, world: &mut World, now: Timestamp) -> Rehearsed {
        let mut rehearsed = Rehearsed {
            kinds: self.stamped_kinds(),
            ..Rehearsed::default()
        };
        let live = self.live();
        let is_live = |kind: &str, namespace: &str, name: &str, uid: &str| {
            live.contains(&[kind, namespace, name, uid].map(str::to_owned))
        };
        for (kind, owners) in &self.owners {
            let is_live_owner =
                |namespace: &str, name: &str, uid: &str| is_live(kind.kind(), namespace, name, uid);
            for owner in owners {
                let mut one = One {
                    catalogue: self,
                    world,
                    rehearsed: &mut rehearsed,
                    is_live_owner: &is_live_owner,
                    now,
                };
                match kind {
                    TargetKind::Owner(family) => one.owner(*family, owner).await,
                    TargetKind::Runnable => one.runnable(owner).await,
                }
            }
        }
        rehearsed
    }

    fn live(&self) -> HashSet<[String; 4]> {
        let of_kind = |(kind, owners): &(TargetKind, Vec<Value>)| {
            let kind = kind.kind();
            let owners = owners.iter().map(move |owner| {
                let text = |field: &str| owner["metadata"][field].as_str().unwrap_or_default();
                [kind, text("namespace"), text("name"), text("uid")].map(str::to_owned)
            });
            owners.collect::<Vec<_>>()
        };
        self.owners.iter().flat_map(of_kind).collect()
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// All objects of a kind of ours; none where the cluster does not know the kind.
async fn list(world: &World, kind: &str, plural: &str) -> anyhow::Result<Vec<Value>> {
    let api = Api::all_with(world.client.clone(), &of_ours(kind, plural));
    match all_of(&api, ListParams::default()).await {
        Ok(objects) => Ok(objects),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(anyhow::anyhow!(
            "{plural} of all namespaces cannot be listed: {}\n  next: run this as an administrator of the cluster; it reads, and sends dry runs",
            in_words(&error)
        )),
    }
}
