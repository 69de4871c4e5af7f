//! Containers, to change.

use serde_json::{Map, Value, json};

use super::place::{self, Item, TemplateError, Wish};
use super::value::{Mount, Port, Probe, ProbeKind};
use super::view::Container;
use crate::change::Change;

/// A container, to change.
#[derive(Debug)]
pub struct ContainerMut<'t> {
    fields: &'t mut Map<String, Value>,
    path: String,
}

impl<'t> ContainerMut<'t> {
    pub(super) fn of_list(list: &str, entries: &'t mut Value) -> impl Iterator<Item = Self> {
        let entries = entries.as_array_mut().into_iter().flatten();
        entries.filter_map(Value::as_object_mut).map(move |fields| {
            let path = format!("spec.{list}[{}]", Container::of_fields(fields).name());
            Self { fields, path }
        })
    }

    /// The same container, to look at.
    pub fn view(&self) -> Container<'_> {
        Container::of_fields(self.fields)
    }

    /// All of it, to change whatever this crate has no name for.
    pub fn fields_mut(&mut self) -> &mut Map<String, Value> {
        self.fields
    }

    /// Gives a value below these keys, unless one is there. Objects on the way are made.
    ///
    /// # Errors
    ///
    /// What is on the way is no object; whoever wrote the template must correct it.
    pub fn default_at(
        &mut self,
        keys: &[&str],
        value: impl Into<Value>,
    ) -> Result<Change, TemplateError> {
        place::put(self.fields, &self.path, keys, value.into(), Wish::Default)
    }

    /// Gives a value below these keys, whatever is there.
    ///
    /// # Errors
    ///
    /// As [`Self::default_at`].
    pub fn set_at(
        &mut self,
        keys: &[&str],
        value: impl Into<Value>,
    ) -> Result<Change, TemplateError> {
        place::put(self.fields, &self.path, keys, value.into(), Wish::Set)
    }

    /// Gives a variable, unless there is one of this name, wherever its value comes from.
    ///
    /// # Errors
    ///
    /// `env` is no list; whoever wrote the template must correct it.
    pub fn default_env(&mut self, name: &str, value: &str) -> Result<Change, TemplateError> {
        self.put_item("env", variable(name, "value", json!(value)), Wish::Default)
    }

    /// Gives a variable, whatever there was of this name.
    ///
    /// # Errors
    ///
    /// As [`Self::default_env`].
    pub fn set_env(&mut self, name: &str, value: &str) -> Result<Change, TemplateError> {
        self.put_item("env", variable(name, "value", json!(value)), Wish::Set)
    }

    /// Gives a variable whose value comes from somewhere else, unless there is one of this name.
    ///
    /// ```
    /// use convention_webhook_sdk::Template;
    /// use serde_json::json;
    ///
    /// let mut template = Template::from_value(json!({"spec": {"containers": [{"name": "web"}]}}))?;
    /// let mut web = template.container_mut("web").unwrap();
    /// web.default_env_from("POD", json!({"fieldRef": {"fieldPath": "metadata.name"}}))?;
    /// assert_eq!(web.view().env("POD"), None);
    /// # Ok::<(), convention_webhook_sdk::ConventionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::default_env`].
    pub fn default_env_from(&mut self, name: &str, from: Value) -> Result<Change, TemplateError> {
        self.put_item("env", variable(name, "valueFrom", from), Wish::Default)
    }

    /// Gives a variable whose value comes from somewhere else, whatever there was of this name.
    ///
    /// # Errors
    ///
    /// As [`Self::default_env`].
    pub fn set_env_from(&mut self, name: &str, from: Value) -> Result<Change, TemplateError> {
        self.put_item("env", variable(name, "valueFrom", from), Wish::Set)
    }

    /// Mounts a volume, unless something is mounted at its path.
    ///
    /// # Errors
    ///
    /// `volumeMounts` is no list; whoever wrote the template must correct it.
    pub fn default_mount(&mut self, mount: &Mount) -> Result<Change, TemplateError> {
        self.put_item("volumeMounts", mount.item(), Wish::Default)
    }

    /// Mounts a volume, whatever is mounted at its path.
    ///
    /// # Errors
    ///
    /// As [`Self::default_mount`].
    pub fn set_mount(&mut self, mount: &Mount) -> Result<Change, TemplateError> {
        self.put_item("volumeMounts", mount.item(), Wish::Set)
    }

    /// Gives a port. One of its number and protocol that is there, under whatever name, is as
    /// wished; one of its name and another number is kept.
    ///
    /// ```
    /// use convention_webhook_sdk::{Change, Port, Template};
    /// use serde_json::json;
    ///
    /// let ports = json!([{"containerPort": 8080}, {"name": "admin", "containerPort": 9090}]);
    /// let mut template = Template::from_value(json!({"spec": {"containers": [{"name": "web", "ports": ports}]}}))?;
    /// let mut web = template.container_mut("web").unwrap();
    /// assert_eq!(web.default_port(&Port::tcp(8080).named("http"))?, Change::Already);
    /// assert_eq!(web.default_port(&Port::tcp(9091).named("admin"))?, Change::Kept);
    /// assert_eq!(web.default_port(&Port::tcp(9091))?, Change::Made);
    /// # Ok::<(), convention_webhook_sdk::ConventionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `ports` is no list; whoever wrote the template must correct it.
    pub fn default_port(&mut self, port: &Port) -> Result<Change, TemplateError> {
        if self.view().has_port(port.number, port.protocol) {
            return Ok(Change::Already);
        }
        let mut ports = self.view().ports();
        if port.name.is_some() && ports.any(|other| other.name == port.name) {
            return Ok(Change::Kept);
        }
        drop(ports);
        let never = Item::new(port.object(), |_| false);
        self.put_item("ports", never, Wish::Default)
    }

    /// Gives a probe, unless the container has one that asks anything. Of one that asks nothing yet
    /// its other fields stay.
    ///
    /// # Errors
    ///
    /// The probe that is there is no object; whoever wrote the template must correct it.
    pub fn default_probe(
        &mut self,
        kind: ProbeKind,
        probe: &Probe,
    ) -> Result<Change, TemplateError> {
        if let Some(there) = self.view().probe(kind) {
            let is_same = *there == probe.0;
            return Ok(if is_same {
                Change::Already
            } else {
                Change::Kept
            });
        }
        let mut change = Change::Already;
        for (key, value) in &probe.0 {
            change = change.and(self.default_at(&[kind.field(), key], value.clone())?);
        }
        Ok(change)
    }

    /// Gives a probe, whatever there was.
    ///
    /// # Errors
    ///
    /// As [`Self::default_probe`].
    pub fn set_probe(&mut self, kind: ProbeKind, probe: &Probe) -> Result<Change, TemplateError> {
        self.set_at(&[kind.field()], probe.0.clone())
    }

    /// What the scheduler keeps free for the container, unless the container says: `cpu` and
    /// `100m`, for instance.
    ///
    /// # Errors
    ///
    /// `resources` is no object; whoever wrote the template must correct it.
    pub fn default_request(
        &mut self,
        resource: &str,
        amount: &str,
    ) -> Result<Change, TemplateError> {
        self.default_at(&["resources", "requests", resource], amount)
    }

    /// What the container may use at most, unless the container says.
    ///
    /// # Errors
    ///
    /// As [`Self::default_request`].
    pub fn default_limit(&mut self, resource: &str, amount: &str) -> Result<Change, TemplateError> {
        self.default_at(&["resources", "limits", resource], amount)
    }

    /// A field of `securityContext`, unless the container says: `runAsNonRoot` and `true`, for
    /// instance.
    ///
    /// # Errors
    ///
    /// `securityContext` is no object; whoever wrote the template must correct it.
    pub fn default_security(
        &mut self,
        field: &str,
        value: impl Into<Value>,
    ) -> Result<Change, TemplateError> {
        self.default_at(&["securityContext", field], value)
    }

    /// A field of `securityContext`, whatever there was.
    ///
    /// # Errors
    ///
    /// As [`Self::default_security`].
    pub fn set_security(
        &mut self,
        field: &str,
        value: impl Into<Value>,
    ) -> Result<Change, TemplateError> {
        self.set_at(&["securityContext", field], value)
    }

    fn put_item(&mut self, list: &str, item: Item, wish: Wish) -> Result<Change, TemplateError> {
        item.put(self.fields, &self.path, list, wish)
    }
}

fn variable(name: &str, key: &str, value: Value) -> Item {
    let variable = Map::from_iter([("name".to_owned(), json!(name)), (key.to_owned(), value)]);
    Item::by("name", variable)
}
