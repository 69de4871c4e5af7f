//! Which containers of a pod a preset is for.

use serde_json::Value;

/// What a container of a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContainerType {
    /// It runs as long as the pod does.
    App,
    /// It ends before those above begin.
    Init,
    /// An init container that goes on: one with `restartPolicy: Always`.
    Sidecar,
    /// Somebody added it to a running pod.
    Ephemeral,
}

impl ContainerType {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::App, Self::Init, Self::Sidecar, Self::Ephemeral];
    /// Those that a preset is for, if it does not say otherwise.
    pub const DEFAULT: [Self; 3] = [Self::App, Self::Init, Self::Sidecar];

    /// The text in `containers.types`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::App => "App",
            Self::Init => "Init",
            Self::Sidecar => "Sidecar",
            Self::Ephemeral => "Ephemeral",
        }
    }

    /// What a text stands for.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == text)
    }

    /// What an entry of `initContainers` is.
    pub(crate) fn of_init_container(container: &Value) -> Self {
        if container["restartPolicy"] == "Always" {
            Self::Sidecar
        } else {
            Self::Init
        }
    }
}

/// Any name.
const ANY: &str = "*";

/// Which containers a preset is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Without any, all.
    names: Vec<String>,
    exclude: Vec<String>,
    types: Vec<ContainerType>,
}

impl Target {
    /// Reads `spec.containers`, which was validated.
    pub(crate) fn read(containers: &Value) -> Self {
        let texts = |field: &str| {
            let texts = containers[field].as_array().into_iter().flatten();
            texts.filter_map(Value::as_str).map(str::to_owned)
        };
        let mut types: Vec<ContainerType> = texts("types")
            .filter_map(|text| ContainerType::from_text(&text))
            .collect();
        if types.is_empty() {
            types = ContainerType::DEFAULT.to_vec();
        }
        Self {
            names: texts("names").collect(),
            exclude: texts("exclude").collect(),
            types,
        }
    }

    /// Which types it is for.
    pub(crate) fn types(&self) -> &[ContainerType] {
        &self.types
    }

    /// The only names it is for; nothing if it is for all.
    pub(crate) fn only(&self) -> Option<&[String]> {
        let is_any = self.names.is_empty() || self.names.iter().any(|it| it == ANY);
        (!is_any).then_some(&self.names)
    }

    /// The names it is not for; nothing if it is for none.
    pub(crate) fn but(&self) -> Option<&[String]> {
        let is_any = self.exclude.iter().any(|it| it == ANY);
        (!is_any).then_some(&self.exclude)
    }

    pub(crate) fn includes(&self, type_: ContainerType, name: &str) -> bool {
        let among = |names: &[String]| names.iter().any(|it| it == ANY || it == name);
        self.types.contains(&type_)
            && (self.names.is_empty() || among(&self.names))
            && !among(&self.exclude)
    }
}
