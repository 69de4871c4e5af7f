//! A pod template, as JSON with names for its usual places.

mod additions;
mod container;
mod place;
mod value;
mod view;

use std::collections::BTreeMap;

use convention_protocol::PodTemplate;
use serde_json::{Map, Value};

pub use container::ContainerMut;
pub use place::TemplateError;
pub use value::{Mount, Port, Probe, ProbeKind, Protocol, Volume};
pub use view::Container;

use crate::change::Change;
use place::Wish;

/// The lists of containers of a PodSpec.
const CONTAINERS: &str = "containers";
const INIT_CONTAINERS: &str = "initContainers";

/// A pod template. It is the JSON that its author wrote; what this crate knows nothing of goes
/// through untouched.
///
/// Every change comes in two forms. `default_…` gives what is not there and keeps what is. `set_…`
/// also replaces what is there. Each says what came of it by a [`Change`], and the second time
/// nothing does.
///
/// ```
/// use convention_webhook_sdk::{Change, Template};
/// use serde_json::json;
///
/// let mut template = Template::from_value(json!({
///     "metadata": {"labels": {"app": "web"}},
///     "spec": {"containers": [{"name": "web", "image": "web:1", "env": [{"name": "LOG", "value": "debug"}]}]},
/// }))?;
/// for mut container in template.containers_mut() {
///     assert_eq!(container.default_env("LOG", "info")?, Change::Kept);
///     assert_eq!(container.default_env("TZ", "UTC")?, Change::Made);
///     assert_eq!(container.default_env("TZ", "UTC")?, Change::Already);
/// }
/// assert_eq!(template.set_label("app", "shop"), Change::Made);
/// # Ok::<(), convention_webhook_sdk::ConventionError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template(PodTemplate);

impl Template {
    /// A template of JSON.
    ///
    /// # Errors
    ///
    /// It is no object, or its metadata has values of another type.
    pub fn from_value(value: Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(value).map(Self)
    }

    /// All of it, as JSON.
    ///
    /// ```
    /// use convention_webhook_sdk::Template;
    /// use serde_json::json;
    ///
    /// let value = json!({"metadata": {}, "spec": {"containers": [], "notYetKnown": [1.5]}});
    /// assert_eq!(Template::from_value(value.clone())?.to_value(), value);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn to_value(&self) -> Value {
        let metadata = serde_json::to_value(&self.0.metadata).unwrap_or_default();
        let mut whole = Map::from_iter([("metadata".to_owned(), metadata)]);
        if let Some(spec) = &self.0.spec {
            whole.insert("spec".to_owned(), Value::Object(spec.clone()));
        }
        Value::Object(whole)
    }

    /// Labels of the pods.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.0.metadata.labels
    }

    /// Annotations of the pods.
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        &self.0.metadata.annotations
    }

    /// Gives a label, unless there is one of this key.
    pub fn default_label(&mut self, key: &str, value: &str) -> Change {
        put_text(&mut self.0.metadata.labels, key, value, Wish::Default)
    }

    /// Gives a label, whatever there was.
    pub fn set_label(&mut self, key: &str, value: &str) -> Change {
        put_text(&mut self.0.metadata.labels, key, value, Wish::Set)
    }

    /// Gives an annotation, unless there is one of this key.
    pub fn default_annotation(&mut self, key: &str, value: &str) -> Change {
        put_text(&mut self.0.metadata.annotations, key, value, Wish::Default)
    }

    /// Gives an annotation, whatever there was.
    pub fn set_annotation(&mut self, key: &str, value: &str) -> Change {
        put_text(&mut self.0.metadata.annotations, key, value, Wish::Set)
    }

    /// The PodSpec as JSON.
    pub fn spec(&self) -> Option<&Map<String, Value>> {
        self.0.spec.as_ref()
    }

    /// The PodSpec as JSON, to change whatever this crate has no name for.
    pub fn spec_mut(&mut self) -> &mut Map<String, Value> {
        self.0.spec.get_or_insert_default()
    }

    /// What stands in the PodSpec below these keys, if anything but `null` does.
    pub fn get(&self, keys: &[&str]) -> Option<&Value> {
        place::get(self.spec()?, keys)
    }

    /// Gives the PodSpec a value below these keys, unless one is there. Objects on the way are
    /// made.
    ///
    /// ```
    /// use convention_webhook_sdk::{Change, Template};
    ///
    /// let mut template = Template::default();
    /// let keys = ["securityContext", "seccompProfile", "type"];
    /// assert_eq!(template.default_at(&keys, "RuntimeDefault")?, Change::Made);
    /// assert_eq!(template.default_at(&keys, "Unconfined")?, Change::Kept);
    /// # Ok::<(), convention_webhook_sdk::TemplateError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What is on the way is no object; whoever wrote the template must correct it.
    pub fn default_at(
        &mut self,
        keys: &[&str],
        value: impl Into<Value>,
    ) -> Result<Change, TemplateError> {
        place::put(self.spec_mut(), "spec", keys, value.into(), Wish::Default)
    }

    /// Gives the PodSpec a value below these keys, whatever is there.
    ///
    /// # Errors
    ///
    /// As [`Self::default_at`].
    pub fn set_at(
        &mut self,
        keys: &[&str],
        value: impl Into<Value>,
    ) -> Result<Change, TemplateError> {
        place::put(self.spec_mut(), "spec", keys, value.into(), Wish::Set)
    }

    /// Seconds that a pod has for its end, if the template says.
    pub fn termination_grace_period(&self) -> Option<u64> {
        self.get(&["terminationGracePeriodSeconds"])?.as_u64()
    }

    /// The containers, without init containers.
    pub fn containers(&self) -> impl Iterator<Item = Container<'_>> {
        self.listed(CONTAINERS)
    }

    /// The init containers, sidecars of Kubernetes among them.
    pub fn init_containers(&self) -> impl Iterator<Item = Container<'_>> {
        self.listed(INIT_CONTAINERS)
    }

    /// The containers, without init containers, to change them.
    pub fn containers_mut(&mut self) -> impl Iterator<Item = ContainerMut<'_>> {
        self.listed_mut(CONTAINERS)
    }

    /// The init containers, to change them.
    pub fn init_containers_mut(&mut self) -> impl Iterator<Item = ContainerMut<'_>> {
        self.listed_mut(INIT_CONTAINERS)
    }

    /// Init containers and containers, to change them.
    pub fn all_containers_mut(&mut self) -> impl Iterator<Item = ContainerMut<'_>> {
        let lists = self.0.spec.iter_mut().flatten();
        lists
            .filter(|(key, _)| [CONTAINERS, INIT_CONTAINERS].contains(&key.as_str()))
            .flat_map(|(key, list)| ContainerMut::of_list(key, list))
    }

    /// The container of this name, init containers included.
    pub fn container(&self, name: &str) -> Option<Container<'_>> {
        let mut all = self.containers().chain(self.init_containers());
        all.find(|container| container.name() == name)
    }

    /// The container of this name, to change it; init containers included.
    pub fn container_mut(&mut self, name: &str) -> Option<ContainerMut<'_>> {
        self.all_containers_mut()
            .find(|container| container.view().name() == name)
    }

    fn listed(&self, list: &'static str) -> impl Iterator<Item = Container<'_>> {
        let entries = self.spec().and_then(|spec| spec.get(list)?.as_array());
        entries.into_iter().flatten().filter_map(Container::of)
    }

    fn listed_mut(&mut self, list: &'static str) -> impl Iterator<Item = ContainerMut<'_>> {
        let entries = self.0.spec.as_mut().and_then(|spec| spec.get_mut(list));
        entries
            .into_iter()
            .flat_map(|entries| ContainerMut::of_list(list, entries))
    }
}

impl From<PodTemplate> for Template {
    fn from(template: PodTemplate) -> Self {
        Self(template)
    }
}

impl From<Template> for PodTemplate {
    fn from(template: Template) -> Self {
        template.0
    }
}

fn put_text(texts: &mut BTreeMap<String, String>, key: &str, value: &str, wish: Wish) -> Change {
    match texts.get_mut(key) {
        Some(text) if text == value => Change::Already,
        Some(_) if wish == Wish::Default => Change::Kept,
        Some(text) => {
            value.clone_into(text);
            Change::Made
        }
        None => {
            texts.insert(key.to_owned(), value.to_owned());
            Change::Made
        }
    }
}

#[cfg(test)]
mod tests;
