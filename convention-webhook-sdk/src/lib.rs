#![doc = include_str!("../README.md")]

mod answer;
mod change;
mod convention;
mod error;
mod images;
mod sbom;
#[cfg(feature = "server")]
mod server;
mod template;
#[cfg(feature = "testing")]
pub mod testing;
mod weight;

pub use answer::{Answer, Outcome, answer};
pub use change::{Applied, Change};
pub use convention::{Convention, ConventionFn};
pub use error::ConventionError;
pub use images::{Image, Images, Settings};
pub use sbom::{
    Dependencies, Dependency, Purl, PurlError, Sbom, SbomError, SbomFormat, read_version,
};
pub use template::{
    Container, ContainerMut, Mount, Port, Probe, ProbeKind, Protocol, Template, TemplateError,
    Volume,
};

#[cfg(feature = "server")]
pub use server::{
    BoundServer, KeyPairError, Limits, ServeError, Server, ServerBuilder, init_logs, router,
};

/// What is sent each way, as types.
pub use convention_protocol as protocol;
/// Versions and ranges of them.
pub use semver;
