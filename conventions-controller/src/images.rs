//! Images of a template on its way: each is resolved once in a pass.

use std::collections::BTreeMap;
use std::sync::Arc;

use convention_protocol::ImageConfig;
use conventions::ResolvedImage;
use conventions::chain::Chain;
use conventions::credentials::Keyring;
use conventions::outcome::Failure;
use futures::{StreamExt as _, stream};
use image_registry::{Images, Pass};

/// Images of one template that are looked at side by side. The registries' own limits hold for all
/// templates together.
const AT_ONCE: usize = 8;

/// What is known of the images in one pass.
#[derive(Default)]
pub(crate) struct KnownImages {
    pass: Pass,
    /// By the text that a container has; both the text as it was and as it is now.
    by_text: BTreeMap<String, Arc<image_registry::ResolvedImage>>,
    /// The texts as they were.
    asked: Vec<String>,
}

impl KnownImages {
    /// Gives all images of the template their digests.
    pub(crate) async fn resolve(
        &mut self,
        chain: &mut Chain,
        images: &Images,
        keyring: &Keyring,
    ) -> Result<(), Failure> {
        let texts = chain.template().images().into_iter();
        let new: Vec<String> = texts
            .filter(|text| !self.by_text.contains_key(*text))
            .map(str::to_owned)
            .collect();
        let pass = &self.pass;
        let looked_at = stream::iter(new)
            .map(async |text| {
                let resolved = images.resolve(&text, keyring, pass).await;
                (text, resolved)
            })
            .buffer_unordered(AT_ONCE);
        let looked_at: Vec<_> = looked_at.collect().await;
        let mut causes = BTreeMap::new();
        for (text, resolved) in looked_at {
            match resolved {
                Ok(resolved) => self.keep(text, resolved),
                Err(error) => {
                    causes.insert(text, error.to_string());
                }
            }
        }
        if !causes.is_empty() {
            return Err(Failure::Images { causes });
        }
        // Also what is there a second time: a convention may have put back the text as it was.
        let references: BTreeMap<String, String> = self
            .by_text
            .iter()
            .map(|(text, known)| (text.clone(), known.reference.clone()))
            .collect();
        chain.resolve(&references);
        Ok(())
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
            let stored = known.boms.iter().map(|bom| convention_client::StoredBom {
                name: bom.name.clone(),
                file: bom.file.clone(),
                offset: bom.offset,
                length: bom.length,
            });
            boms.insert(text.to_owned(), stored.collect());
        }
        (configs, boms)
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
