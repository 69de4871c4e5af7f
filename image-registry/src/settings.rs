//! What the installation decides.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// How registries are spoken to, and what is kept of what they said.
///
/// ```
/// use image_registry::Settings;
///
/// let settings = Settings::new("/var/cache/images");
/// assert_eq!(settings.platform.to_string(), "linux/amd64");
/// ```
#[derive(Clone, Debug)]
pub struct Settings {
    /// Folder for bills of materials. Nothing else may be in it.
    pub cache_folder: PathBuf,
    /// The most bytes on disk; the least recently used go first.
    pub disk_bytes: u64,
    /// The most bytes of manifests and configurations in memory.
    pub memory_bytes: u64,
    /// Authorities in PEM that are trusted beside those of the system. It may be missing, and is
    /// read again when it changes.
    pub ca_file: Option<PathBuf>,
    /// Folder with `<host>/hosts.toml` for each registry that has mirrors, as containerd has it.
    pub hosts_folder: Option<PathBuf>,
    /// A `config.json` of Docker with credentials for images of everybody. It may be missing.
    pub docker_config: Option<PathBuf>,
    /// The kubelet's configuration of credential plugins (`CredentialProviderConfig`), and the
    /// folder of the programs.
    pub plugins: Option<(PathBuf, PathBuf)>,
    /// For which an index is read.
    pub platform: Platform,
    /// Which digest a tag is given.
    pub pinned_digest: PinnedDigest,
    /// The most bytes of one bill of materials.
    pub sbom_file_bytes: u64,
    /// The most bytes of a layer of them, unpacked.
    pub sbom_layer_bytes: u64,
    /// Whether bills of materials that cosign attached by a tag are read.
    pub attachments: bool,
    /// Whether bills of materials that refer to the image are read.
    pub referrers: bool,
    /// The most requests to one registry at the same time.
    pub concurrency: usize,
    /// The most requests to one registry in a second, in the long run.
    pub requests_per_second: u32,
    /// How often a request is tried.
    pub tries: u32,
    /// The wait before the second try; each further one is twice as long.
    pub first_delay: Duration,
    /// The time for all about one image.
    pub budget: Duration,
    /// The time for a connection.
    pub connect_timeout: Duration,
    /// The longest silence within an answer.
    pub idle_timeout: Duration,
    /// How long it is believed that a credential opens a repository, after the registry let it in.
    pub access_age: Duration,
}

/// An operating system and a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// As Go names it: `linux`.
    pub os: String,
    /// As Go names it: `amd64`.
    pub architecture: String,
    /// As `v7` of `arm`; anything if there is none.
    pub variant: Option<String>,
}

/// Which digest a tag is given that names an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PinnedDigest {
    /// That of the index: every node takes the image for its own platform.
    #[default]
    Index,
    /// That of the image for the platform of the settings, as the Go controller does.
    Child,
}

/// Settings that nothing can be done with. The operator mends them.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The folder of the cache cannot be used.
    #[error("the folder {} cannot be used: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file cannot be read as what it is to be.
    #[error("the file {} cannot be used: {cause}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        cause: String,
    },
    /// The client cannot be made.
    #[error("the client for registries cannot be made: {0}")]
    Client(String),
}

impl Settings {
    /// Settings for this folder, with defaults that need no thought.
    pub fn new(cache_folder: impl AsRef<Path>) -> Self {
        Self {
            cache_folder: cache_folder.as_ref().to_owned(),
            disk_bytes: 4 << 30,
            memory_bytes: 16 << 20,
            ca_file: None,
            hosts_folder: None,
            docker_config: None,
            plugins: None,
            platform: Platform::default(),
            pinned_digest: PinnedDigest::Index,
            sbom_file_bytes: 32 << 20,
            sbom_layer_bytes: 128 << 20,
            attachments: false,
            referrers: false,
            concurrency: 8,
            requests_per_second: 50,
            tries: 5,
            first_delay: Duration::from_millis(500),
            budget: Duration::from_mins(1),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(15),
            access_age: Duration::from_mins(5),
        }
    }
}

impl Default for Platform {
    fn default() -> Self {
        Self {
            os: "linux".to_owned(),
            architecture: "amd64".to_owned(),
            variant: None,
        }
    }
}

impl std::fmt::Display for Platform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        if let Some(variant) = &self.variant {
            write!(f, "/{variant}")?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Platform {
    type Err = String;

    /// Reads `os/architecture` or `os/architecture/variant`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split('/');
        let platform = match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(os), Some(architecture), variant, None) => Self {
                os: os.to_owned(),
                architecture: architecture.to_owned(),
                variant: variant.map(str::to_owned),
            },
            _ => return Err(format!("{text:?} is not os/architecture")),
        };
        if platform.os.is_empty() || platform.architecture.is_empty() || text.ends_with('/') {
            return Err(format!("{text:?} is not os/architecture"));
        }
        Ok(platform)
    }
}
