//! What is put into templates.

use serde_json::{Map, Value, json};

use super::place::Item;

/// The protocol of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP, if nothing else is said.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// Its name in Kubernetes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }

    /// By its name, however it is written; TCP for no name.
    ///
    /// ```
    /// use convention_webhook_sdk::Protocol;
    ///
    /// assert_eq!(Protocol::of("udp"), Some(Protocol::Udp));
    /// assert_eq!(Protocol::of(""), Some(Protocol::Tcp));
    /// assert_eq!(Protocol::of("IPX"), None);
    /// ```
    pub fn of(name: &str) -> Option<Self> {
        let all = [Self::Tcp, Self::Udp, Self::Sctp];
        if name.is_empty() {
            return Some(Self::Tcp);
        }
        all.into_iter()
            .find(|protocol| protocol.name().eq_ignore_ascii_case(name))
    }
}

/// A port of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    pub(super) number: u16,
    pub(super) protocol: Protocol,
    pub(super) name: Option<String>,
}

impl Port {
    /// A port of TCP.
    pub fn tcp(number: u16) -> Self {
        Self::new(number, Protocol::Tcp)
    }

    /// A port.
    pub fn new(number: u16, protocol: Protocol) -> Self {
        Self {
            number,
            protocol,
            name: None,
        }
    }

    /// With a name, by which probes and Services refer to it.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    pub(super) fn object(&self) -> Map<String, Value> {
        let mut object = Map::from_iter([
            ("containerPort".to_owned(), json!(self.number)),
            ("protocol".to_owned(), json!(self.protocol.name())),
        ]);
        if let Some(name) = &self.name {
            object.insert("name".to_owned(), json!(name));
        }
        object
    }
}

/// A volume of the pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume(Map<String, Value>);

impl Volume {
    /// One that is empty in each new pod.
    pub fn empty_dir(name: &str) -> Self {
        Self::new(name, "emptyDir", json!({}))
    }

    /// The data of a ConfigMap.
    pub fn config_map(name: &str, config_map: &str) -> Self {
        Self::new(name, "configMap", json!({"name": config_map}))
    }

    /// The data of a Secret.
    pub fn secret(name: &str, secret: &str) -> Self {
        Self::new(name, "secret", json!({"secretName": secret}))
    }

    /// One of any kind, as Kubernetes writes it.
    ///
    /// ```
    /// use convention_webhook_sdk::{Template, Volume};
    /// use serde_json::json;
    ///
    /// let mut template = Template::default();
    /// template.default_volume(&Volume::new("tmp", "emptyDir", json!({"medium": "Memory"})))?;
    /// assert_eq!(
    ///     template.get(&["volumes"]),
    ///     Some(&json!([{"name": "tmp", "emptyDir": {"medium": "Memory"}}])),
    /// );
    /// # Ok::<(), convention_webhook_sdk::TemplateError>(())
    /// ```
    pub fn new(name: &str, kind: &str, source: Value) -> Self {
        Self(Map::from_iter([
            ("name".to_owned(), json!(name)),
            (kind.to_owned(), source),
        ]))
    }

    pub(super) fn item(&self) -> Item {
        Item::by("name", self.0.clone())
    }
}

/// Where a container sees a volume.
#[derive(Clone, Debug, PartialEq)]
pub struct Mount(Map<String, Value>);

impl Mount {
    /// The volume of this name at this path.
    pub fn new(volume: &str, path: &str) -> Self {
        Self(Map::from_iter([
            ("name".to_owned(), json!(volume)),
            ("mountPath".to_owned(), json!(path)),
        ]))
    }

    /// Not to be written to.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.with("readOnly", json!(true))
    }

    /// Only this path of the volume.
    #[must_use]
    pub fn sub_path(self, path: &str) -> Self {
        self.with("subPath", json!(path))
    }

    fn with(mut self, key: &str, value: Value) -> Self {
        self.0.insert(key.to_owned(), value);
        self
    }

    pub(super) fn item(&self) -> Item {
        Item::by("mountPath", self.0.clone())
    }
}

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeKind {
    /// Whether the container works, or must be started anew.
    Liveness,
    /// Whether it can take requests.
    Readiness,
    /// Whether it has started, before which the others are not asked.
    Startup,
}

impl ProbeKind {
    /// The field of a container.
    pub fn field(self) -> &'static str {
        match self {
            Self::Liveness => "livenessProbe",
            Self::Readiness => "readinessProbe",
            Self::Startup => "startupProbe",
        }
    }
}

/// The keys of a probe that say what is asked.
pub(super) const HANDLERS: [&str; 4] = ["exec", "grpc", "httpGet", "tcpSocket"];

/// A probe of a container.
///
/// ```
/// use convention_webhook_sdk::{Change, Probe, ProbeKind, Template};
/// use serde_json::json;
///
/// let mut template = Template::from_value(json!({"spec": {"containers": [{"name": "web"}]}}))?;
/// let mut web = template.container_mut("web").unwrap();
/// let probe = Probe::http_get("/healthz", 8080).period_seconds(5);
/// assert_eq!(web.default_probe(ProbeKind::Readiness, &probe)?, Change::Made);
/// assert_eq!(
///     web.view().get(&["readinessProbe"]),
///     Some(&json!({"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 5})),
/// );
/// # Ok::<(), convention_webhook_sdk::ConventionError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Probe(pub(super) Map<String, Value>);

impl Probe {
    /// Asks by HTTP.
    pub fn http_get(path: &str, port: u16) -> Self {
        Self::new("httpGet", json!({"path": path, "port": port}))
    }

    /// Asks by HTTPS; the certificate is not looked at.
    pub fn https_get(path: &str, port: u16) -> Self {
        let handler = json!({"path": path, "port": port, "scheme": "HTTPS"});
        Self::new("httpGet", handler)
    }

    /// Opens a connection.
    pub fn tcp_socket(port: u16) -> Self {
        Self::new("tcpSocket", json!({"port": port}))
    }

    /// Runs a command in the container.
    pub fn exec<'w>(command: impl IntoIterator<Item = &'w str>) -> Self {
        let command: Vec<&str> = command.into_iter().collect();
        Self::new("exec", json!({"command": command}))
    }

    /// Asks in any way, as Kubernetes writes it.
    pub fn new(handler: &str, how: Value) -> Self {
        Self(Map::from_iter([(handler.to_owned(), how)]))
    }

    /// The handler of a probe that a container has, for another one.
    pub fn like(probe: &Map<String, Value>) -> Option<Self> {
        let handler = HANDLERS.into_iter().find(|key| is_there(probe, key))?;
        Some(Self::new(handler, probe.get(handler)?.clone()))
    }

    /// Seconds before it is asked for the first time.
    #[must_use]
    pub fn initial_delay_seconds(self, seconds: u32) -> Self {
        self.with("initialDelaySeconds", seconds)
    }

    /// Seconds between two questions.
    #[must_use]
    pub fn period_seconds(self, seconds: u32) -> Self {
        self.with("periodSeconds", seconds)
    }

    /// Seconds for an answer.
    #[must_use]
    pub fn timeout_seconds(self, seconds: u32) -> Self {
        self.with("timeoutSeconds", seconds)
    }

    /// How many failures in a row count.
    #[must_use]
    pub fn failure_threshold(self, times: u32) -> Self {
        self.with("failureThreshold", times)
    }

    fn with(mut self, key: &str, value: u32) -> Self {
        self.0.insert(key.to_owned(), json!(value));
        self
    }
}

/// Whether a key has a value.
pub(super) fn is_there(object: &Map<String, Value>, key: &str) -> bool {
    object.get(key).is_some_and(|value| !value.is_null())
}
