//! What is known of the images of a template.

mod settings;

use std::sync::OnceLock;

use convention_protocol::ImageConfig;

pub use settings::Settings;

use crate::sbom::{Dependencies, Sbom, SbomError};
use crate::template::Container;

/// The images of a template, each once.
///
/// ```
/// use convention_webhook_sdk::{Images, Template};
/// use serde_json::json;
///
/// let images = Images::from_value(json!([{"image": "web@sha256:aa", "config": {"config": {"User": "1000"}}}]))?;
/// let template = Template::from_value(json!({"spec": {"containers": [{"name": "web", "image": "web@sha256:aa"}]}}))?;
/// let web = template.container("web").unwrap();
/// assert_eq!(images.of(web).unwrap().settings().user(), Some("1000"));
/// # Ok::<(), convention_webhook_sdk::ConventionError>(())
/// ```
#[derive(Debug, Default)]
pub struct Images(Vec<Image>);

impl Images {
    /// Images as a request has them in `imageConfig`.
    ///
    /// # Errors
    ///
    /// It is no such list.
    pub fn from_value(value: serde_json::Value) -> Result<Self, serde_json::Error> {
        let images: Option<Vec<ImageConfig>> = serde_json::from_value(value)?;
        Ok(Self::from(images.unwrap_or_default()))
    }

    /// The image of a container. None for a container without an image, or if the controller did
    /// not look it up.
    pub fn of(&self, container: Container<'_>) -> Option<&Image> {
        self.get(container.image()?)
    }

    /// By the text that containers have as their image.
    pub fn get(&self, image: &str) -> Option<&Image> {
        self.0.iter().find(|known| known.name() == image)
    }

    /// All, as the request lists them.
    pub fn iter(&self) -> std::slice::Iter<'_, Image> {
        self.0.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<ImageConfig>> for Images {
    fn from(images: Vec<ImageConfig>) -> Self {
        Self(images.into_iter().map(Image::from).collect())
    }
}

impl<'i> IntoIterator for &'i Images {
    type Item = &'i Image;
    type IntoIter = std::slice::Iter<'i, Image>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// An image: its own configuration, and its bills of materials.
#[derive(Debug)]
pub struct Image {
    config: ImageConfig,
    /// Reading bills of materials takes a while, so it is done once, and only if somebody asks.
    read: OnceLock<Read>,
}

#[derive(Debug)]
struct Read {
    dependencies: Dependencies,
    unreadable: Vec<SbomError>,
}

impl Image {
    /// The text that containers have as their image, with its digest.
    pub fn name(&self) -> &str {
        &self.config.image
    }

    /// What its author set for containers that run it.
    pub fn settings(&self) -> Settings<'_> {
        Settings::of(&self.config.config)
    }

    /// The configuration as the registry has it, with whatever is not in [`Self::settings`].
    pub fn config(&self) -> &serde_json::Value {
        &self.config.config
    }

    /// Its bills of materials, each with where it comes from and its bytes.
    pub fn boms(&self) -> &[convention_protocol::Bom] {
        &self.config.boms
    }

    /// Its bills of materials, by format.
    pub fn sboms(&self) -> impl Iterator<Item = Result<Sbom, SbomError>> {
        self.config.boms.iter().map(Sbom::read)
    }

    /// What it is made of, by all its bills of materials that could be read. Empty if it has none.
    ///
    /// ```
    /// use convention_webhook_sdk::Images;
    /// use serde_json::json;
    ///
    /// // {"bomFormat": "CycloneDX", "components": [{"name": "spring-boot", "version": "2.3.1.RELEASE"}]}
    /// let raw = "eyJib21Gb3JtYXQiOiAiQ3ljbG9uZURYIiwgImNvbXBvbmVudHMiOiBbeyJuYW1lIjogInNwcmluZy1ib290IiwgInZlcnNpb24iOiAiMi4zLjEuUkVMRUFTRSJ9XX0=";
    /// let images = Images::from_value(json!([{"image": "web", "boms": [{"name": "cnb-app:a.json", "raw": raw}]}]))?;
    /// let dependencies = images.get("web").unwrap().dependencies();
    /// assert_eq!(dependencies.named("spring-boot").unwrap().version, "2.3.1.RELEASE");
    /// assert!(dependencies.matching("spring-boot", &">=2.3.0".parse()?).is_some());
    /// # Ok::<(), convention_webhook_sdk::ConventionError>(())
    /// ```
    pub fn dependencies(&self) -> &Dependencies {
        &self.read().dependencies
    }

    /// Bills of materials that are of no known format, or not as their format demands.
    pub fn unreadable_sboms(&self) -> &[SbomError] {
        &self.read().unreadable
    }

    fn read(&self) -> &Read {
        self.read.get_or_init(|| {
            let (mut all, mut unreadable) = (Vec::new(), Vec::new());
            for sbom in self.sboms() {
                match sbom {
                    Ok(sbom) => all.extend(sbom.dependencies),
                    Err(error) => unreadable.push(error),
                }
            }
            let dependencies = Dependencies::of(all);
            Read {
                dependencies,
                unreadable,
            }
        })
    }
}

impl From<ImageConfig> for Image {
    fn from(config: ImageConfig) -> Self {
        Self {
            config,
            read: OnceLock::new(),
        }
    }
}
