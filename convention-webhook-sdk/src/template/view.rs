//! Containers, to look at.

use serde_json::{Map, Value};

use super::place;
use super::value::{HANDLERS, Port, ProbeKind, Protocol, is_there};

/// A container, to look at.
#[derive(Clone, Copy, Debug)]
pub struct Container<'t>(&'t Map<String, Value>);

impl<'t> Container<'t> {
    pub(super) fn of(value: &'t Value) -> Option<Self> {
        value.as_object().map(Self)
    }

    pub(super) fn of_fields(fields: &'t Map<String, Value>) -> Self {
        Self(fields)
    }

    /// Its name; empty if it has none.
    pub fn name(self) -> &'t str {
        self.text("name").unwrap_or_default()
    }

    /// Its image, as `imageConfig` names it. A container may be without, where something else gives
    /// it one later.
    pub fn image(self) -> Option<&'t str> {
        self.text("image").filter(|image| !image.is_empty())
    }

    /// All of it.
    pub fn fields(self) -> &'t Map<String, Value> {
        self.0
    }

    /// What stands below these keys, if anything but `null` does.
    pub fn get(self, keys: &[&str]) -> Option<&'t Value> {
        place::get(self.0, keys)
    }

    /// The variable of this name, as Kubernetes writes it. The last of several counts.
    pub fn variable(self, name: &str) -> Option<&'t Map<String, Value>> {
        let is_it = |entry: &&Map<String, Value>| entry.get("name").is_some_and(|it| it == name);
        self.objects("env").filter(is_it).last()
    }

    /// The value of a variable; nothing if there is none, or its value comes from somewhere else.
    pub fn env(self, name: &str) -> Option<&'t str> {
        let variable = self.variable(name)?;
        if is_there(variable, "valueFrom") {
            return None;
        }
        let value = variable.get("value").and_then(Value::as_str);
        Some(value.unwrap_or_default())
    }

    /// The ports, with their names where they have one.
    pub fn ports(self) -> impl Iterator<Item = Port> + 't {
        self.objects("ports").filter_map(|port| {
            let protocol = port.get("protocol").and_then(Value::as_str);
            Some(Port {
                number: u16::try_from(port.get("containerPort")?.as_u64()?).ok()?,
                protocol: Protocol::of(protocol.unwrap_or_default())?,
                name: port.get("name").and_then(Value::as_str).map(str::to_owned),
            })
        })
    }

    /// Whether it has this port.
    pub fn has_port(self, number: u16, protocol: Protocol) -> bool {
        self.ports()
            .any(|port| port.number == number && port.protocol == protocol)
    }

    /// A probe, if it has one that asks anything.
    pub fn probe(self, kind: ProbeKind) -> Option<&'t Map<String, Value>> {
        let probe = self.get(&[kind.field()])?.as_object()?;
        HANDLERS
            .iter()
            .any(|handler| is_there(probe, handler))
            .then_some(probe)
    }

    fn text(self, key: &str) -> Option<&'t str> {
        self.0.get(key).and_then(Value::as_str)
    }

    fn objects(self, list: &str) -> impl Iterator<Item = &'t Map<String, Value>> + use<'t> {
        let entries = self.0.get(list).and_then(Value::as_array);
        entries.into_iter().flatten().filter_map(Value::as_object)
    }
}
