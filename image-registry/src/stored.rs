//! Bills of materials of an image: from its registry to the disk, and from there to whoever asks.

use std::fs::File;
use std::sync::Arc;

use conventions::image::Digest;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::archive::{self, ListFault, Slice};
use crate::boms::{self, BUILDPACK};
use crate::contents::ContentKey;
use crate::error::Cause;
use crate::fault::clip;
use crate::images::{ANYTHING, Images, Look};
use crate::manifest::Image;
use crate::observe::CacheKind;
use crate::resolved::StoredBom;
use crate::unpack::Unpack;

/// The flag of [`crate::Settings::sbom_layer_bytes`].
const LAYER_FLAG: &str = " (--max-sbom-layer-size)";
/// The flag of [`crate::Settings::sbom_file_bytes`].
pub(crate) const FILE_FLAG: &str = " (--max-sbom-size)";

impl Images {
    /// The bills of materials that buildpacks put into the image.
    pub(crate) async fn boms(
        &self,
        look: &mut Look,
        image: &Image,
        config: &Value,
    ) -> Result<Vec<StoredBom>, Cause> {
        let Some((unpacked, position)) = boms::layer(config)? else {
            return Ok(Vec::new());
        };
        let what = format!("layer {unpacked} of bills of materials");
        let layer = image.layers.get(position).ok_or_else(|| Cause::Image {
            what: what.clone(),
            fault: "is in the configuration and not in the manifest".to_owned(),
        })?;
        let wanted = Unpack {
            folder: self.layers.folder().to_owned(),
            arriving: self.layers.arriving(),
            packed: layer.digest("the manifest")?,
            unpacked: Some(unpacked.clone()),
            limit: self.settings.sbom_layer_bytes,
            flag: LAYER_FLAG,
        };
        let file = self.stored(look, &unpacked, wanted).await?;
        let (largest, listed) = (self.settings.sbom_file_bytes, file.clone());
        let slices = blocking(move || archive::list(&listed, largest)).await?;
        let slices = slices.map_err(|fault| told(fault, &what, largest))?;
        let bom = |slice: Slice| StoredBom {
            name: format!("{BUILDPACK}{}", slice.name),
            file: file.clone(),
            offset: slice.offset,
            length: slice.length,
        };
        Ok(slices.into_iter().map(bom).collect())
    }

    /// A file with this digest, from disk if the registry has let somebody in who is among those
    /// who ask.
    pub(crate) async fn stored(
        &self,
        look: &mut Look,
        digest: &Digest,
        wanted: Unpack,
    ) -> Result<Arc<File>, Cause> {
        let key = look.key(digest);
        let file = self.cached(look, &key, wanted).await?;
        let metadata = file.metadata();
        let metadata = metadata.map_err(|error| Cause::Installation(error.to_string()))?;
        // Who holds a file keeps it on disk, even if the cache lets it go.
        let most = self.settings.sbom_layer_bytes.saturating_mul(2);
        look.held.file(&key, metadata.len(), most)?;
        Ok(file)
    }

    async fn cached(
        &self,
        look: &mut Look,
        key: &ContentKey,
        wanted: Unpack,
    ) -> Result<Arc<File>, Cause> {
        let flight = (key.clone(), look.plan.identity());
        let _alone = self.flights.enter(flight).await;
        let mut found = None;
        if self.is_admitted(look) {
            let (layers, key) = (self.layers.clone(), key.clone());
            found = blocking(move || layers.get(&key)).await?;
        }
        self.exchange
            .observe
            .looked_up(CacheKind::Layers, found.is_some());
        if let Some(file) = found {
            return Ok(file);
        }
        let rest = format!("blobs/{}", wanted.packed);
        let file = self.ask(look, &rest, ANYTHING, &wanted).await?;
        let layers = self.layers.clone();
        let key = key.clone();
        let kept = blocking(move || layers.keep(&key, file)).await?;
        kept.map_err(|error| {
            let folder = wanted.folder.display();
            Cause::Installation(format!("the folder {folder} cannot be used: {error}"))
        })
    }
}

fn told(fault: ListFault, what: &str, limit: u64) -> Cause {
    match fault {
        ListFault::Broken(fault) => Cause::Image {
            what: what.to_owned(),
            fault,
        },
        ListFault::File(file) => Cause::TooLarge {
            what: format!("\"{}\" in {what}", clip(&file.name)),
            size: Some(file.length),
            limit,
            flag: FILE_FLAG,
        },
    }
}

/// How many looks at the disk are under way at the same time. Each takes a thread, and a thread keeps
/// its memory once it has run: without a bound there is one for each image that is asked about.
static LOOKS: Semaphore = Semaphore::const_new(4);

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Cause> {
    // Nobody closes it. It is given back by the thread: who asks may be gone before.
    let place = LOOKS.acquire().await;
    let work = move || {
        let _place = place;
        work()
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Cause::Installation("a look at the disk was broken off".to_owned()))
}
