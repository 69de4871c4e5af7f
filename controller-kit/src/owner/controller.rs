//! Blueprints and templates: whom their events wake, and what blueprints report.

use std::sync::Arc;
use std::time::Duration;

use api_types::TemplateKind;
use realizer::{Blueprint, Ended, Template, blueprint_status};
use tracing::{Instrument as _, warn};

use super::report::next;
use super::{BlueprintEntry, BlueprintFamily, OwnerShell, TemplateEntry, Templates, log};
use crate::events::InvolvedObject;
use crate::process::Reconciled;
use crate::reflect::{Change, Reflector};
use crate::scheduler::{Lane, Next, Scheduler};
use crate::stamped::ObjectKey;
use crate::status::{StatusWriter, Written};
use crate::ytt::Ytt;

/// One edit of a blueprint or template arrives as several events; its owners are woken once.
const DEBOUNCE: Duration = Duration::from_millis(20);

/// Reconciles the owners of one family and the blueprints they use.
pub struct OwnerController<F> {
    /// What all controllers of owners have.
    pub shell: Arc<OwnerShell>,
    /// The blueprints.
    pub blueprints: Arc<Reflector<BlueprintEntry<F>>>,
    /// The templates.
    pub templates: Arc<Templates>,
    /// Renders ytt templates.
    pub ytt: Arc<Ytt>,
    /// Queue of blueprints.
    pub blueprint_scheduler: Arc<Scheduler>,
    /// Writes their statuses.
    pub blueprint_statuses: StatusWriter,
}

impl<F: BlueprintFamily> OwnerController<F> {
    /// A blueprint changed: wakes the owners that it can concern, before or after.
    pub(crate) fn blueprint_changed(&self, change: &Change<'_, BlueprintEntry<F>>) {
        self.blueprint_scheduler
            .wake(change.key.clone(), Lane::Fresh, None);
        let compiled = |entry: Option<&Arc<BlueprintEntry<F>>>| {
            entry.and_then(|entry| entry.blueprint.as_ref().ok().cloned())
        };
        let (before, after) = (compiled(change.before), compiled(change.after));
        let status =
            |entry: Option<&Arc<BlueprintEntry<F>>>| entry.map(|entry| entry.status.clone());
        let same = match (&before, &after) {
            (Some(before), Some(after)) => {
                before.uid == after.uid
                    && before.generation == after.generation
                    && before.is_ready() == after.is_ready()
                    // As long as it is not, owners repeat why
                    // (docs/behaviour/selection.md#blueprint).
                    && (after.is_ready() || status(change.before) == status(change.after))
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !same {
            let concerned: Vec<Arc<Blueprint>> = before.into_iter().chain(after).collect();
            self.wake_owners_of(&concerned);
        }
    }

    /// A template changed: wakes the blueprints that name it and the owners those concern.
    pub fn template_changed(
        &self,
        kind: TemplateKind,
        change: &Change<'_, TemplateEntry<Template>>,
    ) {
        let mut naming = Vec::new();
        for (key, entry) in self.blueprints.all() {
            if let Ok(blueprint) = &entry.blueprint
                && blueprint
                    .template_refs()
                    .any(|reference| reference == (kind, &*change.key.name))
            {
                naming.push(blueprint.clone());
                self.blueprint_scheduler.wake(key, Lane::Fresh, None);
            }
        }
        self.wake_owners_of(&naming);
    }

    fn wake_owners_of(&self, blueprints: &[Arc<Blueprint>]) {
        if blueprints.is_empty() {
            return;
        }
        for (key, owner) in self.shell.owners.all() {
            if blueprints
                .iter()
                .any(|blueprint| blueprint.could_match(&owner.labels))
            {
                let scheduler = &self.shell.scheduler;
                scheduler.wake(key, Lane::Fresh, Some(DEBOUNCE));
            }
        }
    }

    /// Reports on one blueprint: whether its templates are there, and what is wrong with its graph.
    pub(crate) async fn reconcile_blueprint(&self, key: &ObjectKey) -> Reconciled {
        self.report_blueprint(key)
            .instrument(log::blueprint_span(F::FAMILY, key))
            .await
    }

    async fn report_blueprint(&self, key: &ObjectKey) -> Reconciled {
        let Some(entry) = self.blueprints.get(key) else {
            self.shell.outages.ended(key);
            return Reconciled::gone(Next::Done);
        };
        let blueprint = match &entry.blueprint {
            Ok(blueprint) => blueprint,
            Err(error) => {
                warn!(error = %error, "this blueprint cannot be read and selects no owner; correct or delete it");
                return Reconciled::new(Next::Done, Ended::UserError.as_str());
            }
        };
        let outcome = blueprint_status(
            blueprint,
            &*self.templates,
            &entry.status,
            entry.generation,
            (self.shell.clock)(),
        );
        if outcome.changed {
            let object = Written {
                namespace: None,
                name: &key.name,
                uid: &entry.uid,
            };
            let writing = self.blueprint_statuses.write(object, &outcome.status, None);
            if let Err(error) = writing.await {
                let next = self.shell.not_written(key, None, &error);
                return Reconciled::new(next, Ended::Infrastructure.as_str());
            }
            self.shell.outages.ended(key);
            log::tell(&entry.status, &outcome);
            let involved = InvolvedObject::of(F::watched(), "", &key.name, &entry.uid);
            self.shell.emit(&involved, &outcome.events);
        }
        Reconciled::new(next(outcome.retry, None), outcome.end.as_str())
    }
}
