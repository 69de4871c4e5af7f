//! Bills of materials beside an image: what cosign attaches by a tag, and what refers to the image.
//!
//! Both are off unless the settings say otherwise: each costs a request for each image, and a
//! registry can have them from anybody who may write to the repository.

use std::sync::Arc;

use bytes::Bytes;
use conventions::image::Digest;
use reqwest::header::{HeaderMap, LINK};
use tokio::time::Instant;

use crate::answer::Answer;
use crate::error::Cause;
use crate::images::{Images, Look, MANIFEST_BYTES, Whole};
use crate::manifest::{self, Manifest, Part};
use crate::plan::Read;
use crate::resolved::StoredBom;
use crate::stored::FILE_FLAG;
use crate::tries::Trouble;
use crate::unpack::Unpack;

/// What a name begins with that cosign attached.
const COSIGN: &str = "cosign:";
/// What a name begins with that refers to the image.
const REFERRER: &str = "referrer:";
/// The most that is taken of an image, and from one place.
const MOST: usize = 32;
/// How often a registry may go on telling what refers to an image.
const PAGES: usize = 8;
/// The longest query by which it may name what follows.
const QUERY_BYTES: usize = 1024;

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
        let found = match kind {
            Kind::Attachment => self.attachment(look, rest).await?,
            Kind::Referrers => self.referrers(look, rest).await?,
        };
        let found: Arc<[Digest]> = found.into();
        self.beside.insert(key, (Instant::now(), found.clone()));
        Ok(found)
    }

    async fn attachment(&self, look: &mut Look, rest: &str) -> Result<Vec<Digest>, Cause> {
        let Some((bytes, _)) = self.page(look, rest).await? else {
            return Ok(Vec::new());
        };
        let digest = crate::hash::digest_of(&bytes);
        self.keep(look, &digest, bytes);
        Ok(vec![digest])
    }

    /// The bills among all that refers to an image, which a registry may tell in parts.
    async fn referrers(&self, look: &mut Look, rest: &str) -> Result<Vec<Digest>, Cause> {
        let what = look.what(rest);
        let (mut found, mut next) = (Vec::new(), Some(rest.to_owned()));
        for _ in 0..PAGES {
            let Some(rest) = next.take() else { break };
            let Some((bytes, query)) = self.page(look, &rest).await? else {
                break;
            };
            if let Manifest::Index(children) = manifest::parse(&bytes, &what)? {
                found.extend(bills_among(&children, &what)?);
            }
            let path = rest.split('?').next().unwrap_or_default();
            let is_full = found.len() >= MOST;
            next = query.filter(|_| !is_full).map(|it| format!("{path}?{it}"));
        }
        found.truncate(MOST);
        Ok(found)
    }

    /// What is in a place, with the query of what follows; nothing if nothing is there.
    async fn page(
        &self,
        look: &mut Look,
        rest: &str,
    ) -> Result<Option<(Bytes, Option<String>)>, Cause> {
        let reader = Page(Whole {
            digest: None,
            limit: MANIFEST_BYTES,
            manifest: true,
        });
        let asked = self
            .ask_for(look, rest, manifest::ACCEPT, true, &reader)
            .await;
        match asked {
            Ok(page) => Ok(Some(page)),
            Err(Cause::Unknown { .. }) => Ok(None),
            Err(cause) => Err(cause),
        }
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

/// A part of a listing, and the query of the next one.
struct Page<'a>(Whole<'a>);

impl Read for Page<'_> {
    type Output = (Bytes, Option<String>);

    async fn read(&self, answer: Answer) -> Result<Self::Output, Trouble> {
        let next = next_query(answer.response.headers());
        Ok((self.0.read(answer).await?, next))
    }
}

/// The query of what `Link` calls the next part. The rest of that address is not looked at: it is
/// the place that was asked for, and nobody leads to another one by a listing.
fn next_query(headers: &HeaderMap) -> Option<String> {
    let texts = headers.get_all(LINK).into_iter();
    let links = texts
        .filter_map(|text| text.to_str().ok())
        .flat_map(|text| {
            let links = text.split('<').skip(1);
            links.filter_map(|link| link.split_once('>'))
        });
    let is_next = |parameters: &str| {
        let mut parameters = parameters.split([';', ',']);
        parameters.any(|it| matches!(it.trim(), "rel=next" | "rel=\"next\""))
    };
    let mut next = links.filter(|(_, parameters)| is_next(parameters));
    let (address, _) = next.next()?;
    let query = address.split_once('?')?.1.split('#').next()?;
    (!query.is_empty() && query.len() <= QUERY_BYTES).then(|| query.to_owned())
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::HeaderValue;

    use super::*;

    fn next(links: &[&str]) -> Option<String> {
        let links = links
            .iter()
            .map(|link| (LINK, HeaderValue::from_str(link).unwrap()));
        next_query(&links.collect())
    }

    #[test]
    fn the_next_part_is_named_by_its_query() {
        let at = "/v2/app/referrers/sha256:1";
        for link in [
            format!("<{at}?n=2&last=b>; rel=\"next\""),
            format!("<http://elsewhere.example{at}?n=2&last=b#top>;rel=next"),
            format!("<{at}?n=0>; rel=\"prev\", <{at}?n=2&last=b>; rel=\"next\""),
        ] {
            assert_eq!(next(&[&link]).as_deref(), Some("n=2&last=b"), "{link}");
        }
        assert_eq!(
            next(&["<?a>; rel=prev", "<?b>; rel=next"]).as_deref(),
            Some("b")
        );
        let long = format!("<?{}>; rel=next", "a".repeat(2000));
        for link in [
            "",
            "<?a>",
            "<?a>; rel=nextish",
            "<none>; rel=next",
            "<?>; rel=next",
            &long,
        ] {
            assert_eq!(next(&[link]), None, "{link}");
        }
    }

    proptest! {
        #[test]
        fn any_link_is_read_without_harm(link in "[ -~]{0,80}") {
            let next = next(&[&link]);
            prop_assert!(next.is_none_or(|query| link.contains(&query)));
        }
    }
}
