//! What registries know about images: digests, configurations and bills of materials.
//!
//! ```text
//!  image, Keyring ──▶ Images::resolve ──▶ ResolvedImage
//!                        │  plan: which registry or mirror, as whom, in which order
//!                        │  contents: manifests and configurations, in memory, by digest
//!                        │  layers: bills of materials, on disk, by digest
//!                        ▼
//!                    exchange ──▶ authorize (tokens), limits (rate), clients (TLS, proxies)
//! ```
//!
//! - What arrives is believed only if its digest is the one that was asked for.
//! - Nothing is read without a bound, in bytes or in time.
//! - What one credential may read is given to nobody else: every cache is by registry and
//!   repository, and is read only for those whom the registry let in ([`Settings::access_age`]).
//! - An error never holds a credential, and says whether the user or the installation is at fault.

mod answer;
mod archive;
mod arriving;
mod attached;
mod authorize;
mod boms;
mod challenge;
mod clients;
mod contents;
mod endpoints;
mod error;
mod exchange;
mod fault;
mod hash;
mod host_clients;
mod hosts;
mod images;
mod layers;
mod limits;
mod manifest;
mod observe;
mod own_credentials;
mod pass;
mod plan;
mod plugin_files;
mod plugins;
mod resolved;
mod schemes;
mod settings;
mod stored;
mod tries;
mod unpack;
mod values;
mod watched;
mod who;
mod zstd;

pub use error::{Cause, FaultKind, ImageError};
pub use images::Images;
pub use observe::{CacheKind, Observe, Outcome, Unobserved};
pub use pass::Pass;
pub use resolved::{ResolvedImage, StoredBom};
pub use settings::{PinnedDigest, Platform, Settings, SettingsError};
