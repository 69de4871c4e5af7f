//! The `config` of an image's configuration file.

use serde_json::Value;

use crate::template::{Port, Protocol};

/// What the author of an image set for containers that run it. What is missing, or of another type
/// than it should be, is not there.
///
/// ```
/// use convention_webhook_sdk::{Images, Port};
/// use serde_json::json;
///
/// let images = Images::from_value(json!([{"image": "web", "config": {"architecture": "arm64", "config": {
///     "Env": ["PATH=/bin", "LANG="], "Labels": {"org.opencontainers.image.title": "Web"},
///     "ExposedPorts": {"8080/tcp": {}, "53/udp": {}}, "Entrypoint": ["/web"], "User": "1000:1000",
/// }}}]))?;
/// let settings = images.get("web").unwrap().settings();
/// assert_eq!(settings.env("PATH"), Some("/bin"));
/// assert_eq!(settings.env("LANG"), Some(""));
/// assert_eq!(settings.label("org.opencontainers.image.title"), Some("Web"));
/// assert_eq!(settings.entrypoint().collect::<Vec<_>>(), ["/web"]);
/// assert_eq!(settings.exposed_ports().next_back(), Some(Port::tcp(8080)));
/// assert_eq!(settings.runs_as_root(), Some(false));
/// assert_eq!(settings.architecture(), Some("arm64"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Settings<'i> {
    file: &'i Value,
    config: &'i Value,
}

impl<'i> Settings<'i> {
    pub(super) fn of(file: &'i Value) -> Self {
        let config = file.get("config").unwrap_or(&Value::Null);
        Self { file, config }
    }

    /// The value of a variable.
    pub fn env(self, name: &str) -> Option<&'i str> {
        let mut all = self.variables();
        all.find_map(|(key, value)| (key == name).then_some(value))
    }

    /// The variables.
    pub fn variables(self) -> impl Iterator<Item = (&'i str, &'i str)> {
        self.texts("Env")
            .map(|variable| variable.split_once('=').unwrap_or((variable, "")))
    }

    /// A label.
    pub fn label(self, key: &str) -> Option<&'i str> {
        self.config.get("Labels")?.get(key)?.as_str()
    }

    /// The labels.
    pub fn labels(self) -> impl Iterator<Item = (&'i str, &'i str)> {
        let labels = self.config.get("Labels").and_then(Value::as_object);
        let labels = labels.into_iter().flatten();
        labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    /// As whom its containers run: a name or number, and perhaps a group behind a colon.
    pub fn user(self) -> Option<&'i str> {
        self.text("User")
    }

    /// The number of the user, if it is one. The kubelet can tell root from others only by a
    /// number.
    pub fn user_id(self) -> Option<u32> {
        let user = self.user()?;
        let (user, _) = user.split_once(':').unwrap_or((user, ""));
        user.parse().ok()
    }

    /// Whether its containers run as root. Nothing for a user with a name other than `root`: only
    /// the image knows its number.
    pub fn runs_as_root(self) -> Option<bool> {
        let user = self.user().unwrap_or_default();
        let (user, _) = user.split_once(':').unwrap_or((user, ""));
        match self.user_id() {
            Some(id) => Some(id == 0),
            None if user.is_empty() || user == "root" => Some(true),
            None => None,
        }
    }

    /// What is run.
    pub fn entrypoint(self) -> impl Iterator<Item = &'i str> {
        self.texts("Entrypoint")
    }

    /// Its arguments; what is run, without an entry point.
    pub fn command(self) -> impl Iterator<Item = &'i str> {
        self.texts("Cmd")
    }

    /// Where it runs.
    pub fn working_dir(self) -> Option<&'i str> {
        self.text("WorkingDir")
    }

    /// The ports that it says it listens on, sorted as texts are.
    pub fn exposed_ports(self) -> impl DoubleEndedIterator<Item = Port> + use<'i> {
        let ports = self.config.get("ExposedPorts").and_then(Value::as_object);
        let ports = ports.into_iter().flat_map(|ports| ports.keys());
        ports.filter_map(|port| {
            let (number, protocol) = port.split_once('/').unwrap_or((port, ""));
            Some(Port::new(number.parse().ok()?, Protocol::of(protocol)?))
        })
    }

    /// The paths where it says it keeps data.
    pub fn volumes(self) -> impl Iterator<Item = &'i str> {
        let volumes = self.config.get("Volumes").and_then(Value::as_object);
        let volumes = volumes.into_iter().flat_map(|volumes| volumes.keys());
        volumes.map(String::as_str)
    }

    /// The processor that it is for, such as `amd64`.
    pub fn architecture(self) -> Option<&'i str> {
        self.file.get("architecture")?.as_str()
    }

    /// The operating system that it is for, such as `linux`.
    pub fn os(self) -> Option<&'i str> {
        self.file.get("os")?.as_str()
    }

    fn text(self, key: &str) -> Option<&'i str> {
        let text = self.config.get(key)?.as_str()?;
        (!text.is_empty()).then_some(text)
    }

    fn texts(self, key: &str) -> impl Iterator<Item = &'i str> + use<'i> {
        let texts = self.config.get(key).and_then(Value::as_array);
        texts.into_iter().flatten().filter_map(Value::as_str)
    }
}
