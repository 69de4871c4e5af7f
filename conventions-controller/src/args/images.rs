//! Flags about images and registries.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use image_registry::{PinnedDigest, Platform, Settings};

/// How images are read.
#[derive(Debug, Clone, Args)]
pub struct ImageArgs {
    /// Folder for bills of materials; nothing else may be in it
    #[arg(
        long,
        value_name = "DIRECTORY",
        env = "CARTO_IMAGE_CACHE",
        default_value = "/var/cache/carto-images"
    )]
    pub image_cache: PathBuf,

    /// What the folder for bills of materials may hold
    #[arg(
        long,
        value_name = "MIB",
        env = "CARTO_IMAGE_CACHE_MIB",
        default_value_t = 1024
    )]
    pub image_cache_mib: u32,

    /// Authorities in PEM that are trusted for registries beside those of the system, read again when they change; it may be
    /// missing
    #[arg(
        long,
        value_name = "FILE",
        env = "CARTO_REGISTRY_CA",
        default_value = "/var/conventions/tls/ca-certificates.crt"
    )]
    pub registry_ca: PathBuf,

    /// Folder with <host>/hosts.toml for each registry that has mirrors, as containerd has it
    #[arg(long, value_name = "DIRECTORY", env = "CARTO_REGISTRY_HOSTS")]
    pub registry_hosts: Option<PathBuf>,

    /// A config.json of Docker with credentials for images of everybody
    #[arg(long, value_name = "FILE", env = "CARTO_DOCKER_CONFIG")]
    pub docker_config: Option<PathBuf>,

    /// The kubelet's configuration of credential plugins
    #[arg(
        long,
        value_name = "FILE",
        env = "CARTO_IMAGE_CREDENTIAL_PROVIDER_CONFIG",
        requires = "image_credential_provider_bin_dir"
    )]
    pub image_credential_provider_config: Option<PathBuf>,

    /// Folder of the credential plugins
    #[arg(
        long,
        value_name = "DIRECTORY",
        env = "CARTO_IMAGE_CREDENTIAL_PROVIDER_BIN_DIR"
    )]
    pub image_credential_provider_bin_dir: Option<PathBuf>,

    /// For which platform an index is read, as os/architecture
    #[arg(
        long,
        value_name = "PLATFORM",
        env = "CARTO_IMAGE_PLATFORM",
        default_value = "linux/amd64"
    )]
    pub image_platform: Platform,

    /// Give tags the digest of the image for --image-platform instead of that of the index, as the Go controller does
    #[arg(long, env = "CARTO_PIN_PLATFORM_DIGEST")]
    pub pin_platform_digest: bool,

    /// The size of one bill of materials; an image with a larger one fails, and the condition says so
    #[arg(
        long,
        value_name = "MIB",
        env = "CARTO_MAX_SBOM_SIZE",
        default_value_t = 32
    )]
    pub max_sbom_size: u32,

    /// The size of a layer of them, unpacked
    #[arg(
        long,
        value_name = "MIB",
        env = "CARTO_MAX_SBOM_LAYER_SIZE",
        default_value_t = 128
    )]
    pub max_sbom_layer_size: u32,

    /// Read bills of materials that cosign attached to images
    #[arg(long, env = "CARTO_SBOM_ATTACHMENTS")]
    pub sbom_attachments: bool,

    /// Read bills of materials that refer to images (OCI 1.1)
    #[arg(long, env = "CARTO_SBOM_REFERRERS")]
    pub sbom_referrers: bool,

    /// The time for all about one image; all images of a PodIntent have two minutes
    #[arg(
        long,
        value_name = "SECONDS",
        env = "CARTO_IMAGE_TIMEOUT_SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=120)
    )]
    pub image_timeout_seconds: u64,

    /// Requests to one registry at the same time
    #[arg(
        long,
        value_name = "COUNT",
        env = "CARTO_REGISTRY_CONCURRENCY",
        default_value_t = 8
    )]
    pub registry_concurrency: usize,

    /// Requests to one registry in a second, in the long run
    #[arg(
        long,
        value_name = "COUNT",
        env = "CARTO_REGISTRY_REQUESTS_PER_SECOND",
        default_value_t = 50
    )]
    pub registry_requests_per_second: u32,
}

impl ImageArgs {
    /// As the flags say.
    pub(crate) fn settings(&self) -> Settings {
        let plugins = self.image_credential_provider_config.clone();
        let folder = self.image_credential_provider_bin_dir.clone();
        Settings {
            disk_bytes: bytes(self.image_cache_mib),
            ca_file: Some(self.registry_ca.clone()),
            hosts_folder: self.registry_hosts.clone(),
            docker_config: self.docker_config.clone(),
            plugins: plugins.zip(folder),
            platform: self.image_platform.clone(),
            pinned_digest: self.pinned(),
            sbom_file_bytes: bytes(self.max_sbom_size),
            sbom_layer_bytes: bytes(self.max_sbom_layer_size),
            attachments: self.sbom_attachments,
            referrers: self.sbom_referrers,
            concurrency: self.registry_concurrency,
            requests_per_second: self.registry_requests_per_second,
            budget: Duration::from_secs(self.image_timeout_seconds),
            ..Settings::new(&self.image_cache)
        }
    }

    fn pinned(&self) -> PinnedDigest {
        if self.pin_platform_digest {
            PinnedDigest::Child
        } else {
            PinnedDigest::Index
        }
    }

    /// What of it decides what a template becomes: with other flags it is made anew.
    pub(crate) fn resolution(&self) -> String {
        let Self {
            image_platform,
            pin_platform_digest,
            sbom_attachments,
            sbom_referrers,
            ..
        } = self;
        format!("{image_platform} {pin_platform_digest} {sbom_attachments} {sbom_referrers}")
    }
}

fn bytes(mebibytes: u32) -> u64 {
    u64::from(mebibytes) << 20
}
