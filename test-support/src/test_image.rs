//! Images made of what a test says: the same words give the same digests.

mod archive;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// What an image is to have. Nothing is packed before it is pushed.
#[derive(Debug, Clone)]
pub struct TestImage {
    architecture: String,
    config: Value,
    layers: Vec<Layer>,
    docker: bool,
}

/// Files of a layer: name in the archive and content.
#[derive(Debug, Clone)]
struct Layer {
    files: Vec<(String, Vec<u8>)>,
    /// Labels of the image that name this layer by the digest of its archive.
    named_by: Option<NamedBy>,
}

/// Where the config of an image names the layer of its software bills of materials.
#[derive(Debug, Clone, Copy)]
enum NamedBy {
    /// `io.buildpacks.lifecycle.metadata`: `{"sbom": {"sha": ...}}`.
    Lifecycle,
    /// `io.buildpacks.app.sbom`: the digest alone.
    Short,
}

/// What a registry has of an image that was pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushedImage {
    /// Of its manifest, `sha256:...`.
    pub digest: String,
    /// Of its config.
    pub config: String,
    /// Of its layers, as they are stored, in order.
    pub layers: Vec<String>,
}

/// What a registry has of an index that was pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushedIndex {
    /// Of the index, `sha256:...`.
    pub digest: String,
    /// Its images, in order.
    pub images: Vec<PushedImage>,
}

impl Default for TestImage {
    fn default() -> Self {
        Self::new()
    }
}

impl TestImage {
    /// An image for `linux/amd64` with an empty config and no layers, in the media types of OCI.
    pub fn new() -> Self {
        Self {
            architecture: "amd64".to_owned(),
            config: json!({}),
            layers: Vec::new(),
            docker: false,
        }
    }

    /// For another architecture of Linux.
    #[must_use]
    pub fn architecture(mut self, architecture: &str) -> Self {
        architecture.clone_into(&mut self.architecture);
        self
    }

    /// With the media types of Docker.
    #[must_use]
    pub fn docker(mut self) -> Self {
        self.docker = true;
        self
    }

    /// How containers of it run: `Env`, `Entrypoint`, `User`, `Labels` and so on. Call it before [`TestImage::label`].
    #[must_use]
    pub fn config(mut self, config: Value) -> Self {
        self.config = config;
        self
    }

    /// One more label.
    #[must_use]
    pub fn label(mut self, name: &str, value: &str) -> Self {
        self.config["Labels"][name] = json!(value);
        self
    }

    /// One more layer, with these files (name and content).
    #[must_use]
    pub fn layer(self, files: &[(&str, &[u8])]) -> Self {
        self.with_layer(files, None)
    }

    /// A layer of software bills of materials, as Cloud Native Buildpacks make it: names such as
    /// `/layers/sbom/launch/some_buildpack/sbom.cdx.json`, and named by the label of the buildpacks' lifecycle.
    #[must_use]
    pub fn sbom(self, files: &[(&str, &[u8])]) -> Self {
        self.with_layer(files, Some(NamedBy::Lifecycle))
    }

    /// As [`TestImage::sbom`], named by the short label, `io.buildpacks.app.sbom`.
    #[must_use]
    pub fn sbom_by_short_label(self, files: &[(&str, &[u8])]) -> Self {
        self.with_layer(files, Some(NamedBy::Short))
    }

    fn with_layer(mut self, files: &[(&str, &[u8])], named_by: Option<NamedBy>) -> Self {
        let files = files.iter();
        let files = files.map(|(name, content)| ((*name).to_owned(), content.to_vec()));
        self.layers.push(Layer {
            files: files.collect(),
            named_by,
        });
        self
    }

    /// The bytes that a registry gets.
    pub(crate) fn pack(&self) -> anyhow::Result<PackedImage> {
        let mut config = self.config.clone();
        let (mut layers, mut diff_ids) = (Vec::new(), Vec::new());
        for layer in &self.layers {
            let archive = archive::tar(&layer.files)?;
            let diff_id = digest_of(&archive);
            if let Some(by) = layer.named_by {
                let (label, value) = by.label(&diff_id);
                config["Labels"][label] = json!(value);
            }
            layers.push(Blob::new(archive::gzip(&archive)?));
            diff_ids.push(diff_id);
        }
        let config = Blob::new(serde_json::to_vec(&json!({
            "architecture": self.architecture,
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        }))?);
        let manifest = self.manifest(&config, &layers)?;
        Ok(PackedImage {
            architecture: self.architecture.clone(),
            config,
            layers,
            manifest,
        })
    }

    fn manifest(&self, config: &Blob, layers: &[Blob]) -> anyhow::Result<Manifest> {
        let [kind, config_kind, layer_kind] = self.media_types();
        let layers = layers.iter().map(|layer| layer.described_as(layer_kind));
        let bytes = serde_json::to_vec(&json!({
            "schemaVersion": 2,
            "mediaType": kind,
            "config": config.described_as(config_kind),
            "layers": layers.collect::<Vec<_>>(),
        }))?;
        Ok(Manifest {
            media_type: kind,
            bytes,
        })
    }

    /// Of manifest, config and layer.
    fn media_types(&self) -> [&'static str; 3] {
        if self.docker {
            [
                "application/vnd.docker.distribution.manifest.v2+json",
                "application/vnd.docker.container.image.v1+json",
                "application/vnd.docker.image.rootfs.diff.tar.gzip",
            ]
        } else {
            [
                "application/vnd.oci.image.manifest.v1+json",
                "application/vnd.oci.image.config.v1+json",
                "application/vnd.oci.image.layer.v1.tar+gzip",
            ]
        }
    }
}

impl NamedBy {
    fn label(self, diff_id: &str) -> (&'static str, String) {
        match self {
            Self::Lifecycle => {
                let metadata = json!({"sbom": {"sha": diff_id}});
                ("io.buildpacks.lifecycle.metadata", metadata.to_string())
            }
            Self::Short => ("io.buildpacks.app.sbom", diff_id.to_owned()),
        }
    }
}

/// An image as it is stored.
#[derive(Debug)]
pub(crate) struct PackedImage {
    architecture: String,
    config: Blob,
    layers: Vec<Blob>,
    pub(crate) manifest: Manifest,
}

impl PackedImage {
    pub(crate) fn blobs(&self) -> impl Iterator<Item = &Blob> {
        self.layers.iter().chain([&self.config])
    }

    pub(crate) fn pushed(&self) -> PushedImage {
        let layers = self.layers.iter().map(|layer| layer.digest.clone());
        PushedImage {
            digest: self.manifest.digest(),
            config: self.config.digest.clone(),
            layers: layers.collect(),
        }
    }
}

/// Bytes that a registry stores by digest.
#[derive(Debug)]
pub(crate) struct Blob {
    pub(crate) digest: String,
    pub(crate) bytes: Vec<u8>,
}

impl Blob {
    fn new(bytes: Vec<u8>) -> Self {
        Self {
            digest: digest_of(&bytes),
            bytes,
        }
    }

    fn described_as(&self, media_type: &str) -> Value {
        descriptor(media_type, &self.digest, self.bytes.len())
    }
}

/// A manifest of an image or an index.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Vec<u8>,
}

impl Manifest {
    /// The index of images, each for its architecture.
    pub(crate) fn of_index(images: &[PackedImage]) -> anyhow::Result<Self> {
        let manifests = images.iter().map(|image| {
            let manifest = &image.manifest;
            let length = manifest.bytes.len();
            let mut entry = descriptor(manifest.media_type, &manifest.digest(), length);
            entry["platform"] = json!({"os": "linux", "architecture": image.architecture});
            entry
        });
        let media_type = "application/vnd.oci.image.index.v1+json";
        let bytes = serde_json::to_vec(&json!({
            "schemaVersion": 2,
            "mediaType": media_type,
            "manifests": manifests.collect::<Vec<_>>(),
        }))?;
        Ok(Self { media_type, bytes })
    }

    pub(crate) fn digest(&self) -> String {
        digest_of(&self.bytes)
    }
}

fn descriptor(media_type: &str, digest: &str, size: usize) -> Value {
    json!({"mediaType": media_type, "digest": digest, "size": size})
}

fn digest_of(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let hex: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{}", hex.concat())
}
