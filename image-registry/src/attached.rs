//! Bills of materials beside an image: what cosign attaches by a tag, and what refers to the image.
//!
//! Both are off unless the settings say otherwise: each costs a request for each image, and a
//! registry can have them from anybody who may write to the repository.

use std::sync::Arc;

use conventions::image::Digest;
use tokio::time::Instant;

use crate::error::Cause;
use crate::images::{Images, Look, MANIFEST_BYTES, Whole};
use crate::manifest::{self, Manifest, Part};
use crate::resolved::StoredBom;
use crate::stored::FILE_FLAG;
use crate::unpack::Unpack;

/// What a name begins with that cosign attached.
const COSIGN: &str = "cosign:";
/// What a name begins with that refers to the image.
const REFERRER: &str = "referrer:";
/// The most that is taken of an image, and from one place.
const MOST: usize = 32;

/// What was found beside an image, and when.
pub(crate) type Found = (Instant, Arc<[Digest]>);

impl Images {
    /// What the settings ask for, of the image and of the index that it is from.
    pub(crate) async fn attached(
        &self,
        look: &mut Look,
        digests: &[&Digest],
    ) -> Result<Vec<StoredBom>, Cause> {
        let mut boms = Vec::new();
        for digest in digests {
            if self.settings.attachments {
                let tag = format!("manifests/{}.sbom", as_tag(digest));
                let found = self.beside(look, &tag, Kind::Attachment).await?;
                self.boms_of(look, &found, None, COSIGN, &mut boms).await?;
            }
            if self.settings.referrers {
                let referrers = format!("referrers/{digest}");
                let mut found = self.beside(look, &referrers, Kind::Referrers).await?;
                if found.is_empty() {
                    // Registries from before 2024 have a tag instead.
                    let tag = format!("manifests/{}", as_tag(digest));
                    found = self.beside(look, &tag, Kind::Referrers).await?;
                }
                self.boms_of(look, &found, Some(digest), REFERRER, &mut boms)
                    .await?;
            }
        }
        Ok(boms)
    }

    /// The manifests that are found in a place. That there are none is remembered as well.
    async fn beside(
        &self,
        look: &mut Look,
        rest: &str,
        kind: Kind,
    ) -> Result<Arc<[Digest]>, Cause> {
        let key = (look.repository(), rest.to_owned());
        if self.is_admitted(look)
            && let Some((since, found)) = self.beside.get(&key)
            && since.elapsed() < self.settings.access_age
        {
            return Ok(found);
        }
        let reader = Whole {
            digest: None,
            limit: MANIFEST_BYTES,
            manifest: true,
        };
        let asked = self
            .ask_for(look, rest, manifest::ACCEPT, true, &reader)
            .await;
        let bytes = match asked {
            Ok(bytes) => Some(bytes),
            Err(Cause::Unknown { .. }) => None,
            Err(cause) => return Err(cause),
        };
        let what = look.what(rest);
        let found: Vec<Digest> = match (bytes, kind) {
            (None, _) => Vec::new(),
            (Some(bytes), Kind::Attachment) => {
                let digest = crate::hash::digest_of(&bytes);
                self.keep(look, &digest, bytes);
                vec![digest]
            }
            (Some(bytes), Kind::Referrers) => match manifest::parse(&bytes, &what)? {
                Manifest::Index(children) => bills_among(&children, &what)?,
                Manifest::Image(_) => Vec::new(),
            },
        };
        let found: Arc<[Digest]> = found.into();
        self.beside.insert(key, (Instant::now(), found.clone()));
        Ok(found)
    }

    /// What these manifests have, if they are about the image.
    async fn boms_of(
        &self,
        look: &mut Look,
        manifests: &[Digest],
        subject: Option<&Digest>,
        prefix: &str,
        boms: &mut Vec<StoredBom>,
    ) -> Result<(), Cause> {
        for digest in manifests {
            if boms.len() >= MOST {
                break;
            }
            let Manifest::Image(image) = self.manifest(look, digest).await? else {
                continue;
            };
            let about = image
                .subject
                .as_ref()
                .map(|part| part.digest("the subject"))
                .transpose()?;
            if subject.is_some() && about.as_ref() != subject {
                continue;
            }
            for part in image.layers.iter().take(MOST.saturating_sub(boms.len())) {
                boms.push(self.bom_of(look, part, prefix).await?);
            }
        }
        Ok(())
    }

    async fn bom_of(&self, look: &mut Look, part: &Part, prefix: &str) -> Result<StoredBom, Cause> {
        let digest = part.digest("the manifest of a bill of materials")?;
        let limit = self.settings.sbom_file_bytes;
        if let Some(size) = u64::try_from(part.size).ok().filter(|size| *size > limit) {
            return Err(Cause::TooLarge {
                what: format!("bill of materials {digest}"),
                size: Some(size),
                limit,
                flag: FILE_FLAG,
            });
        }
        let wanted = Unpack {
            folder: self.layers.folder().to_owned(),
            arriving: self.layers.arriving(),
            packed: digest.clone(),
            unpacked: None,
            limit,
            flag: FILE_FLAG,
        };
        let file = self.stored(look, &digest, wanted).await?;
        let metadata = file.metadata();
        let metadata = metadata.map_err(|error| Cause::Installation(error.to_string()))?;
        Ok(StoredBom {
            name: format!("{prefix}{digest}"),
            length: metadata.len(),
            offset: 0,
            file,
        })
    }
}

#[derive(Clone, Copy)]
enum Kind {
    /// A manifest whose layers are bills.
    Attachment,
    /// An index of all that refers to the image.
    Referrers,
}

/// A digest as the name of a tag.
fn as_tag(digest: &Digest) -> String {
    digest.as_str().replace(':', "-")
}

/// Those that say that they are bills of materials.
fn bills_among(children: &[Part], what: &str) -> Result<Vec<Digest>, Cause> {
    let is_bill = |child: &&Part| {
        let kind = child
            .artifact_type
            .as_deref()
            .unwrap_or_default()
            .to_ascii_lowercase();
        ["spdx", "cyclonedx", "syft"]
            .iter()
            .any(|format| kind.contains(format))
    };
    let bills = children.iter().filter(is_bill).take(MOST);
    bills.map(|child| child.digest(what)).collect()
}
