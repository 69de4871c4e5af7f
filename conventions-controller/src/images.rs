//! Images of a template on its way: each is resolved once in a pass.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use convention_protocol::ImageConfig;
use conventions::ResolvedImage;
use conventions::chain::Chain;
use conventions::credentials::Keyring;
use conventions::image::{Reference, unresolvable};
use conventions::outcome::Failure;
use futures::{StreamExt as _, stream};
use image_registry::{Cause, ImageError, Images, Pass};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::again::Again;
use crate::fault::{Fault, Stop};

/// Images of one template that are looked at side by side. The registries' own limits hold for all
/// templates together.
const AT_ONCE: usize = 8;

/// The time for all images in one pass. It keeps a place that others wait for.
const BUDGET: Duration = Duration::from_mins(2);
/// Images that are looked at in one pass.
const MOST: usize = 100;
/// Images of a registry without an answer, from which on it is asked for no further one.
const SEVERAL: usize = 3;

/// What is known of the images in one pass.
#[derive(Default)]
pub(crate) struct KnownImages {
    pass: Pass,
    /// By the text that a container has; both the text as it was and as it is now.
    by_text: BTreeMap<String, Arc<image_registry::ResolvedImage>>,
    /// The texts as they were.
    asked: Vec<String>,
    /// What of the time is over.
    spent: Duration,
    /// When a registry wants to be asked again.
    again: Again,
}

/// An image of which nothing is known.
struct Unresolved {
    cause: String,
    /// Whether only our own files were in the way.
    is_ours: bool,
    again: Again,
}

impl Unresolved {
    /// It was not looked at, or not to the end.
    fn left(text: &str, cause: &str) -> Self {
        Self {
            cause: unresolvable(text, &cause),
            is_ours: false,
            again: Again::Backoff,
        }
    }
}

impl From<&ImageError> for Unresolved {
    fn from(error: &ImageError) -> Self {
        Self {
            cause: error.to_string(),
            is_ours: matches!(error.cause(), Cause::Installation(_)),
            again: Again::asked(error.retry_after()),
        }
    }
}

/// How many images each registry gave no answer for.
#[derive(Default)]
struct Silent(Mutex<HashMap<String, usize>>);

impl Silent {
    /// What is known of an image, or why there is nothing.
    async fn resolve(
        &self,
        text: &str,
        images: &Images,
        keyring: &Keyring,
        pass: &Pass,
        until: Instant,
    ) -> Result<image_registry::ResolvedImage, Unresolved> {
        let reference = text.parse::<Reference>().ok();
        let registry = reference.map(|it| it.registry().to_owned());
        let registry = registry.unwrap_or_default();
        if self
            .0
            .lock()
            .get(&registry)
            .is_some_and(|it| *it >= SEVERAL)
        {
            let cause = format!("registry {registry} does not answer for other images");
            return Err(Unresolved::left(text, &cause));
        }
        let resolving = images.resolve(text, keyring, pass);
        let Ok(resolved) = tokio::time::timeout_at(until, resolving).await else {
            let limit = BUDGET.as_secs();
            let cause = format!("all images together took longer than {limit} s");
            return Err(Unresolved::left(text, &cause));
        };
        resolved.map_err(|error| {
            if matches!(
                error.cause(),
                Cause::Unreachable { .. } | Cause::Late { .. }
            ) {
                *self.0.lock().entry(registry).or_default() += 1;
            }
            Unresolved::from(&error)
        })
    }
}

impl KnownImages {
    /// Gives all images of the template their digests.
    pub(crate) async fn resolve(
        &mut self,
        chain: &mut Chain,
        images: &Images,
        keyring: &Keyring,
    ) -> Result<(), Stop> {
        let texts = chain.template().images().into_iter();
        let new: BTreeSet<String> = texts
            .filter(|text| !self.by_text.contains_key(*text))
            .map(str::to_owned)
            .collect();
        let causes = self.too_many(&new);
        if !causes.is_empty() {
            return Err(Failure::Images { causes }.into());
        }
        let unresolved = self.look_at(new, images, keyring).await;
        let asked = unresolved.values().map(|it| it.again).max();
        self.again = self.again.max(asked.unwrap_or_default());
        judged(unresolved)?;
        // Also what is there a second time: a convention may have put back the text as it was.
        let references: BTreeMap<String, String> = self
            .by_text
            .iter()
            .map(|(text, known)| (text.clone(), known.reference.clone()))
            .collect();
        chain.resolve(&references);
        Ok(())
    }

    /// Tells the first one that is too many, if there are.
    fn too_many(&self, new: &BTreeSet<String>) -> BTreeMap<String, String> {
        let count = self.asked.len() + new.len();
        let first = new.iter().nth(MOST.saturating_sub(self.asked.len()));
        let cause = || format!("the template has {count} images, and {MOST} are looked at");
        first
            .map(|image| (image.clone(), cause()))
            .into_iter()
            .collect()
    }

    /// Looks at images as long as there is time. Returns why nothing is known of some.
    async fn look_at(
        &mut self,
        new: BTreeSet<String>,
        images: &Images,
        keyring: &Keyring,
    ) -> BTreeMap<String, Unresolved> {
        let began = Instant::now();
        let until = began + BUDGET.saturating_sub(self.spent);
        let (pass, silent) = (&self.pass, Silent::default());
        let looked_at = stream::iter(new)
            .map(async |text| {
                let resolved = silent.resolve(&text, images, keyring, pass, until).await;
                (text, resolved)
            })
            .buffer_unordered(AT_ONCE);
        let looked_at: Vec<_> = looked_at.collect().await;
        self.spent += began.elapsed();
        let mut unresolved = BTreeMap::new();
        for (text, resolved) in looked_at {
            match resolved {
                Ok(resolved) => self.keep(text, resolved),
                Err(why) => {
                    unresolved.insert(text, why);
                }
            }
        }
        unresolved
    }

    fn keep(&mut self, text: String, resolved: image_registry::ResolvedImage) {
        let resolved = Arc::new(resolved);
        let reference = resolved.reference.clone();
        self.by_text.insert(reference, resolved.clone());
        self.by_text.insert(text.clone(), resolved);
        self.asked.push(text);
    }

    /// What conventions are told of the images that the template has now, and their bills of
    /// materials.
    pub(crate) fn told(
        &self,
        chain: &Chain,
    ) -> (
        Vec<ImageConfig>,
        BTreeMap<String, Vec<convention_client::StoredBom>>,
    ) {
        let (mut configs, mut boms) = (Vec::new(), BTreeMap::new());
        for text in chain.template().images() {
            let Some(known) = self.by_text.get(text) else {
                continue;
            };
            configs.push(ImageConfig {
                image: text.to_owned(),
                boms: Vec::new(),
                config: known.config.clone(),
            });
            boms.insert(text.to_owned(), known.boms.clone());
        }
        (configs, boms)
    }

    /// When the registries want to be asked again.
    pub(crate) fn again(&self) -> Again {
        self.again
    }

    /// What status says of them.
    pub(crate) fn status(&self) -> Vec<ResolvedImage> {
        let mut asked: Vec<&String> = self.asked.iter().collect();
        asked.sort();
        let known = asked.into_iter().filter_map(|text| {
            let known = self.by_text.get(text)?;
            Some(ResolvedImage {
                image: text.clone(),
                reference: known.reference.clone(),
                digest: known.digest.to_string(),
                config_digest: known.config_digest.to_string(),
                boms: known.boms.iter().map(|bom| bom.name.clone()).collect(),
            })
        });
        known.collect()
    }
}

/// What follows if nothing is known of some images. What is the matter with files of ours is
/// nothing for the author.
fn judged(unresolved: BTreeMap<String, Unresolved>) -> Result<(), Stop> {
    let (mut fault, mut causes) = (None, BTreeMap::new());
    for (text, Unresolved { cause, is_ours, .. }) in unresolved {
        if is_ours {
            fault = Some(Fault::Files(cause));
        } else {
            causes.insert(text, cause);
        }
    }
    if !causes.is_empty() {
        return Err(Failure::Images { causes }.into());
    }
    fault.map_or(Ok(()), |fault| Err(fault.into()))
}

#[cfg(test)]
mod tests {
    use convention_protocol::PodTemplate;
    use image_registry::{Settings, Unobserved};
    use serde_json::{Value, json};

    use super::*;

    /// With so many images of one registry.
    fn chain(registry: &str, count: usize) -> Chain {
        let image = |index| format!("{registry}/app:{index:03}");
        let containers: Vec<Value> = (0..count)
            .map(|index| json!({"name": format!("c{index}"), "image": image(index)}))
            .collect();
        let template = json!({"spec": {"containers": containers}});
        Chain::start(serde_json::from_value::<PodTemplate>(template).unwrap())
    }

    /// Why each image is not known, and how long that took.
    async fn refused(registry: &str, count: usize) -> (BTreeMap<String, String>, Duration) {
        let folder = tempfile::tempdir().unwrap();
        let images = Images::new(Settings::new(folder.path()), Arc::new(Unobserved)).unwrap();
        let (mut known, began) = (KnownImages::default(), Instant::now());
        let mut chain = chain(registry, count);
        let keyring = Keyring::default();
        match known.resolve(&mut chain, &images, &keyring).await {
            Err(Stop::Failure(Failure::Images { causes })) => (causes, began.elapsed()),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_registry_that_hangs_is_left_alone_after_some_images() {
        let hangs = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let registry = hangs.local_addr().unwrap().to_string();
        let (causes, took) = refused(&registry, MOST).await;
        assert!(took < BUDGET + Duration::from_secs(1), "{took:?}");
        assert_eq!(causes.len(), MOST);
        let spared = |cause: &&String| cause.contains("does not answer for other images");
        let spared = causes.values().filter(spared).count();
        assert!(
            spared >= MOST - AT_ONCE - SEVERAL,
            "{spared} were not asked for"
        );
    }

    #[tokio::test]
    async fn of_too_many_images_none_is_looked_at() {
        let (causes, _) = refused("registry.invalid", MOST + 1).await;
        let told = causes.into_iter().collect::<Vec<_>>();
        let cause = "the template has 101 images, and 100 are looked at";
        assert_eq!(
            told,
            [("registry.invalid/app:100".to_owned(), cause.to_owned())]
        );
    }

    #[test]
    fn the_author_is_told_what_is_the_matter_with_images_and_nothing_of_our_files() {
        let of = |image: &str, cause| {
            let image = image.to_owned();
            let error = ImageError::Digest {
                image: image.clone(),
                cause,
            };
            (image, Unresolved::from(&error))
        };
        let ours = || of("a", Cause::Installation("no such file".to_owned()));
        let limit = Duration::from_secs(1);
        let theirs = of("b", Cause::Late { limit });
        assert!(judged(BTreeMap::new()).is_ok());
        let only_ours = judged([ours()].into());
        assert!(matches!(only_ours, Err(Stop::Fault(Fault::Files(_)))));
        let both = judged([ours(), theirs].into());
        let Err(Stop::Failure(Failure::Images { causes })) = both else {
            panic!("it is told");
        };
        assert_eq!(causes.into_keys().collect::<Vec<_>>(), ["b"]);
    }
}
