//! From the name of an image to what is known about it.

use std::sync::Arc;

use bytes::Bytes;
use conventions::credentials::Keyring;
use conventions::image::{Digest, Reference};
use quick_cache::sync::Cache;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName};
use serde_json::Value;
use tokio::time::Instant;

use crate::answer::Answer;
use crate::attached::Found;
use crate::contents::{ContentKey, Contents, Flights};
use crate::endpoints::Endpoints;
use crate::error::{Cause, ImageError};
use crate::exchange::{Ask, Exchange};
use crate::hash::digest_of;
use crate::layers::Layers;
use crate::manifest::{self, Image, Manifest};
use crate::observe::{CacheKind, Observe};
use crate::own_credentials::OwnCredentials;
use crate::pass::{Held, Pass};
use crate::plan::{Plan, Read};
use crate::plugins::Plugins;
use crate::resolved::ResolvedImage;
use crate::settings::{PinnedDigest, Settings, SettingsError};
use crate::tries::Trouble;
use crate::values::{NoValue, value_in};
use crate::who::Fingerprint;

/// The most bytes of a manifest or an index.
pub(crate) const MANIFEST_BYTES: u64 = 4 << 20;
/// The most bytes of a configuration.
const CONFIG_BYTES: u64 = 8 << 20;
/// Who was let in where is remembered for so many.
const ADMITTED: usize = 4096;
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
pub(crate) const ANYTHING: &str = "*/*";

/// What is known about images. One for a process; it is shared.
pub struct Images {
    pub(crate) settings: Arc<Settings>,
    pub(crate) exchange: Exchange,
    endpoints: Endpoints,
    own: OwnCredentials,
    plugins: Option<Arc<Plugins>>,
    contents: Contents,
    pub(crate) layers: Arc<Layers>,
    pub(crate) flights: Flights<(ContentKey, Vec<Fingerprint>)>,
    admitted: Cache<(Arc<str>, Fingerprint), Instant>,
    /// What there is beside images, by repository and place.
    pub(crate) beside: Cache<(Arc<str>, String), Found>,
}

/// One image while it is looked at.
pub(crate) struct Look {
    pub(crate) reference: Reference,
    /// Registry and repository.
    repository: Arc<str>,
    pub(crate) plan: Plan,
    /// With that of the other images of the object.
    pub(crate) held: Arc<Held>,
}

impl Images {
    /// # Errors
    ///
    /// If the settings name a folder or file that cannot be used.
    pub fn new(settings: Settings, observe: Arc<dyn Observe>) -> Result<Self, SettingsError> {
        let settings = Arc::new(settings);
        let exchange = Exchange::new(&settings, observe)?;
        let layers = Layers::open(&settings.cache_folder, settings.disk_bytes);
        let layers = layers.map_err(|source| SettingsError::Folder {
            folder: settings.cache_folder.clone(),
            source,
        })?;
        let plugins = settings.plugins.as_ref();
        let plugins = plugins
            .map(|(config, folder)| Plugins::new(config, folder))
            .transpose()?;
        Ok(Self {
            own: OwnCredentials::new(settings.docker_config.clone()),
            plugins: plugins.map(Arc::new),
            layers: Arc::new(layers),
            endpoints: Endpoints::new(exchange.clients.clone(), settings.hosts_folder.clone()),
            contents: Contents::new(settings.memory_bytes),
            flights: Flights::new(),
            admitted: Cache::new(ADMITTED),
            beside: Cache::new(ADMITTED),
            exchange,
            settings,
        })
    }

    /// What is known about an image, for those who have these credentials.
    ///
    /// Dropping the future is safe at any time.
    ///
    /// # Errors
    ///
    /// Those of the user: no such image, no access, an image that is broken. Those of the
    /// installation: the registry does not answer, or has too much to do. [`ImageError::kind`]
    /// tells them apart.
    pub async fn resolve(
        &self,
        image: &str,
        keyring: &Keyring,
        pass: &Pass,
    ) -> Result<ResolvedImage, ImageError> {
        let limit = self.settings.budget;
        let look = Box::pin(self.look(image, keyring, pass));
        let late = || ImageError::Digest {
            image: image.to_owned(),
            cause: Cause::Late { limit },
        };
        let ended = tokio::time::timeout(limit, look).await;
        ended.unwrap_or_else(|_| Err(late()))
    }

    async fn look(
        &self,
        image: &str,
        keyring: &Keyring,
        pass: &Pass,
    ) -> Result<ResolvedImage, ImageError> {
        let unresolved = |cause| ImageError::Digest {
            image: image.to_owned(),
            cause,
        };
        let unread = |cause| ImageError::Content {
            image: image.to_owned(),
            cause,
        };
        let look = self.begin(image, keyring, pass).await;
        let mut look = look.map_err(unresolved)?;
        let named = self.digest(&mut look, pass).await.map_err(unresolved)?;
        let (own, image) = self.image(&mut look, &named).await.map_err(unresolved)?;
        let config_digest = image.config.digest("the manifest").map_err(unread)?;
        let config = self
            .config(&mut look, &image, &config_digest)
            .await
            .map_err(unread)?;
        let mut boms = self
            .boms(&mut look, &image, &config)
            .await
            .map_err(unread)?;
        let both = [&named, &own];
        let digests = if named == own { &both[..1] } else { &both[..] };
        boms.extend(self.attached(&mut look, digests).await.map_err(unread)?);
        look.held.boms(&boms).map_err(unread)?;
        let given = look.reference.digest().is_some();
        let digest = match self.settings.pinned_digest {
            PinnedDigest::Child if !given => own,
            PinnedDigest::Index | PinnedDigest::Child => named,
        };
        Ok(ResolvedImage {
            reference: look.reference.at(&digest).to_string(),
            digest,
            config_digest,
            config,
            boms,
        })
    }

    async fn begin(&self, image: &str, keyring: &Keyring, pass: &Pass) -> Result<Look, Cause> {
        let reference: Reference = image.parse()?;
        let parts = reference.repository().split('/');
        if parts.clone().any(|part| matches!(part, "" | "." | "..")) {
            return Err(Cause::Image {
                what: format!("repository {}", reference.repository()),
                fault: "has a part that is no name".to_owned(),
            });
        }
        let endpoints = self.endpoints.of(&reference).await?;
        let own = self.own.current();
        Ok(Look {
            repository: format!("{}/{}", reference.registry(), reference.repository()).into(),
            plan: Plan::new(
                endpoints,
                &reference,
                &[keyring, &own],
                self.plugins.clone(),
            ),
            reference,
            held: pass.held.clone(),
        })
    }

    /// The digest that the reference has or that its tag means.
    async fn digest(&self, look: &mut Look, pass: &Pass) -> Result<Digest, Cause> {
        if let Some(digest) = look.reference.digest() {
            return Ok(digest.clone());
        }
        let (name, who) = (look.reference.to_string(), look.plan.identity());
        if let Some(digest) = pass.digest(&name, &who) {
            return Ok(digest);
        }
        // Who was let in before goes first.
        self.is_admitted(look);
        let rest = format!("manifests/{}", look.reference.tag().unwrap_or_default());
        let manifest = self
            .fetch(look, &rest, manifest::ACCEPT, None, MANIFEST_BYTES)
            .await?;
        let digest = digest_of(&manifest);
        self.contents.keep(look.key(&digest), manifest);
        pass.remember(&name, &who, &digest);
        Ok(digest)
    }

    /// The image that a digest means, and its own digest: they differ for an index.
    async fn image(&self, look: &mut Look, digest: &Digest) -> Result<(Digest, Image), Cause> {
        let manifest = self.manifest(look, digest).await?;
        let children = match manifest {
            Manifest::Image(image) => return Ok((digest.clone(), image)),
            Manifest::Index(children) => children,
        };
        let platform = &self.settings.platform;
        let child = manifest::child_for(&children, platform).ok_or_else(|| Cause::Platform {
            digest: digest.clone(),
            platform: platform.clone(),
        })?;
        let child = child.digest("the index")?;
        match self.manifest(look, &child).await? {
            Manifest::Image(image) => Ok((child, image)),
            Manifest::Index(_) => Err(Cause::Image {
                what: format!("index {digest}"),
                fault: "has another index in it".to_owned(),
            }),
        }
    }

    pub(crate) async fn manifest(
        &self,
        look: &mut Look,
        digest: &Digest,
    ) -> Result<Manifest, Cause> {
        let rest = format!("manifests/{digest}");
        let bytes = self
            .content(look, &rest, manifest::ACCEPT, digest, MANIFEST_BYTES)
            .await?;
        manifest::parse(&bytes, &look.what(&rest))
    }

    async fn config(
        &self,
        look: &mut Look,
        image: &Image,
        digest: &Digest,
    ) -> Result<Value, Cause> {
        let rest = format!("blobs/{digest}");
        let what = look.what(&rest);
        if u64::try_from(image.config.size).is_ok_and(|size| size > CONFIG_BYTES) {
            return Err(Cause::TooLarge {
                what,
                size: u64::try_from(image.config.size).ok(),
                limit: CONFIG_BYTES,
                flag: "",
            });
        }
        let bytes = self
            .content(look, &rest, ANYTHING, digest, CONFIG_BYTES)
            .await?;
        let fault = match value_in(&bytes) {
            Ok((config, number)) if config.is_object() => {
                look.held.config(&what, number, bytes.len())?;
                return Ok(config);
            }
            Err(NoValue::Flood) => NoValue::Flood.to_string(),
            Ok(_) | Err(NoValue::Broken) => "is not the configuration of an image".to_owned(),
        };
        Err(Cause::Image { what, fault })
    }

    /// Something with a digest, from memory if the registry has let somebody in who is among those
    /// who ask.
    async fn content(
        &self,
        look: &mut Look,
        rest: &str,
        accept: &'static str,
        digest: &Digest,
        limit: u64,
    ) -> Result<Bytes, Cause> {
        let key = look.key(digest);
        let flight = (key.clone(), look.plan.identity());
        let found = |look: &mut Look| {
            self.is_admitted(look)
                .then(|| self.contents.get(&key))
                .flatten()
        };
        let mut bytes = found(look);
        let _alone = if bytes.is_none() {
            let alone = self.flights.enter(flight).await;
            bytes = found(look);
            Some(alone)
        } else {
            None
        };
        self.exchange
            .observe
            .looked_up(CacheKind::Contents, bytes.is_some());
        if let Some(bytes) = bytes {
            return Ok(bytes);
        }
        let bytes = self.fetch(look, rest, accept, Some(digest), limit).await?;
        self.contents.keep(key, bytes.clone());
        Ok(bytes)
    }

    /// Whether the registry has lately let one of those in who ask. From then on that one goes
    /// first.
    pub(crate) fn is_admitted(&self, look: &mut Look) -> bool {
        let (age, repository) = (self.settings.access_age, look.repository.clone());
        let works = |who| {
            let since = self.admitted.get(&(repository.clone(), who));
            since.is_some_and(|since| since.elapsed() < age)
        };
        if let Some(proven) = look.plan.proven()
            && works(proven)
        {
            return true;
        }
        look.plan.prefer(works)
    }

    async fn fetch(
        &self,
        look: &mut Look,
        rest: &str,
        accept: &'static str,
        digest: Option<&Digest>,
        limit: u64,
    ) -> Result<Bytes, Cause> {
        let reader = Whole {
            digest,
            limit,
            manifest: accept == manifest::ACCEPT,
        };
        self.ask(look, rest, accept, &reader).await
    }

    /// Keeps a content that was read.
    pub(crate) fn keep(&self, look: &Look, digest: &Digest, bytes: Bytes) {
        self.contents.keep(look.key(digest), bytes);
    }

    /// Asks for what must be there.
    pub(crate) async fn ask<R: Read>(
        &self,
        look: &mut Look,
        rest: &str,
        accept: &'static str,
        reader: &R,
    ) -> Result<R::Output, Cause> {
        self.ask_for(look, rest, accept, false, reader).await
    }

    /// Asks the registry, and remembers whom it let in.
    pub(crate) async fn ask_for<R: Read>(
        &self,
        look: &mut Look,
        rest: &str,
        accept: &'static str,
        optional: bool,
        reader: &R,
    ) -> Result<R::Output, Cause> {
        let ask = Ask {
            repository: look.reference.repository(),
            rest,
            method: Method::GET,
            accept,
            optional,
            by_tag: rest.starts_with("manifests/") && !rest.contains(':'),
        };
        let output = look
            .plan
            .ask(&self.exchange, &self.settings, &ask, reader)
            .await?;
        if let Some(who) = look.plan.proven() {
            self.admitted
                .insert((look.repository.clone(), who), Instant::now());
        }
        Ok(output)
    }
}

impl Look {
    /// Registry and repository.
    pub(crate) fn repository(&self) -> Arc<str> {
        self.repository.clone()
    }

    pub(crate) fn key(&self, digest: &Digest) -> ContentKey {
        ContentKey {
            repository: self.repository.clone(),
            digest: digest.clone(),
        }
    }

    pub(crate) fn what(&self, rest: &str) -> String {
        format!("{}/{rest}", self.repository)
    }
}

/// Reads all, and looks whether it is what was asked for.
pub(crate) struct Whole<'a> {
    pub(crate) digest: Option<&'a Digest>,
    pub(crate) limit: u64,
    /// Whether it is to be a manifest.
    pub(crate) manifest: bool,
}

impl Read for Whole<'_> {
    type Output = Bytes;

    async fn read(&self, answer: Answer) -> Result<Bytes, Trouble> {
        let (host, what) = (answer.host.clone(), answer.what.clone());
        let (headers, bytes) = answer.bytes(self.limit, "").await?;
        let own = digest_of(&bytes);
        let claimed = self.digest.cloned().or_else(|| claimed(&headers));
        if claimed.is_none_or(|claimed| claimed == own) {
            return Ok(bytes);
        }
        // The signed ones of the time before 2016 have the digest of what is signed.
        if self.manifest
            && let Err(cause @ Cause::Schema1 { .. }) = manifest::parse(&bytes, &what)
        {
            return Err(Trouble::Final(cause));
        }
        let fault = format!("its digest is {own}");
        Err(Trouble::Passing(Cause::Lie { host, what, fault }, None))
    }
}

/// What the registry says that the digest is.
fn claimed(headers: &HeaderMap) -> Option<Digest> {
    headers.get(CONTENT_DIGEST)?.to_str().ok()?.parse().ok()
}
