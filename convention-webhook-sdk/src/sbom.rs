//! Bills of materials: which format one has, and what it lists.

mod documents;
mod purl;
mod version;

use std::collections::HashSet;

use convention_protocol::Bom;
use semver::VersionReq;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::answer::shortened;
use crate::weight::nodes;

pub use purl::{Purl, PurlError};
pub use version::read_version;

/// The format of a bill of materials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SbomFormat {
    /// CycloneDX: has `bomFormat`.
    CycloneDx,
    /// SPDX: has `spdxVersion`.
    Spdx,
    /// Syft's own: has `artifacts`.
    Syft,
}

/// Objects of a bill of materials that is read. Whoever builds an image writes it, and each takes a
/// hundred bytes in memory.
const MOST_NODES: usize = 500_000;

/// What a bill of materials lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Sbom {
    /// Where it comes from, as in [`Bom::name`].
    pub name: String,
    /// Its format, whatever its name says.
    pub format: SbomFormat,
    /// What it lists, in its order; what is nested, too.
    pub dependencies: Vec<Dependency>,
}

/// Why a bill of materials cannot be read. Whoever built the image must correct it, or the format
/// is none that is known here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SbomError {
    /// It is not JSON, or not what its format demands.
    #[error("bill of materials {name:?}: {cause}")]
    Invalid {
        /// As in [`Bom::name`].
        name: String,
        /// What is wrong.
        cause: String,
    },
    /// It is JSON of another kind.
    #[error("bill of materials {name:?} is neither CycloneDX nor SPDX nor Syft")]
    Unknown {
        /// As in [`Bom::name`].
        name: String,
    },
}

/// Something that an image has in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dependency {
    /// Its name, without what groups it: `spring-boot`.
    pub name: String,
    /// Its version, as it is written; empty if there is none.
    pub version: String,
    /// Its package URL; empty if there is none.
    pub purl: String,
}

impl Dependency {
    /// Its version by the rules of semantic versions, if it has one that comes near: see
    /// [`read_version`].
    pub fn semantic_version(&self) -> Option<semver::Version> {
        read_version(&self.version)
    }

    /// Whether its version is in a range. `2.3.1.RELEASE` and `2.4.0-M1` are in `>=2.3.0`;
    /// `2.3.0-M1` came before it.
    ///
    /// ```
    /// use convention_webhook_sdk::Dependency;
    ///
    /// let of = |version: &str| Dependency { version: version.to_owned(), ..Dependency::default() };
    /// let range = ">=2.3.0, <3".parse()?;
    /// assert!(of("2.3.0.RELEASE").is_in(&range) && of("2.7").is_in(&range) && of("2.4.0-M1").is_in(&range));
    /// assert!(!of("2.3.0-M1").is_in(&range) && !of("3.0.0-RC1").is_in(&range) && !of("unknown").is_in(&range));
    /// # Ok::<(), semver::Error>(())
    /// ```
    pub fn is_in(&self, range: &VersionReq) -> bool {
        self.semantic_version()
            .is_some_and(|version| version::is_in(&version, range))
    }
}

/// What an image is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies(Vec<Dependency>);

impl Dependencies {
    /// Each once, in order.
    pub(crate) fn of(mut all: Vec<Dependency>) -> Self {
        let mut seen = HashSet::new();
        all.retain(|dependency| seen.insert(dependency.clone()));
        Self(all)
    }

    /// All, in the order of the bills of materials.
    pub fn iter(&self) -> std::slice::Iter<'_, Dependency> {
        self.0.iter()
    }

    /// Whether there are none: the image has nothing, or no bill of materials that could be read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first of this name.
    pub fn named(&self, name: &str) -> Option<&Dependency> {
        self.iter().find(|dependency| dependency.name == name)
    }

    /// The first of this name whose version is in the range.
    pub fn matching(&self, name: &str, range: &VersionReq) -> Option<&Dependency> {
        let mut named = self.iter().filter(|dependency| dependency.name == name);
        named.find(|dependency| dependency.is_in(range))
    }

    /// The first with this package URL. Version, qualifiers and path count only where they are
    /// asked for.
    ///
    /// ```
    /// use convention_webhook_sdk::Images;
    /// use serde_json::json;
    ///
    /// // {"artifacts": [{"name": "b", "version": "1.0", "purl": "pkg:maven/org.a/b@1.0?type=jar"}]}
    /// let raw = "eyJhcnRpZmFjdHMiOiBbeyJuYW1lIjogImIiLCAidmVyc2lvbiI6ICIxLjAiLCAicHVybCI6ICJwa2c6bWF2ZW4vb3JnLmEvYkAxLjA/dHlwZT1qYXIifV19";
    /// let images = Images::from_value(json!([{"image": "web", "boms": [{"name": "a", "raw": raw}]}]))?;
    /// let dependencies = images.get("web").unwrap().dependencies();
    /// assert!(dependencies.by_purl(&"pkg:maven/org.a/b".parse()?).is_some());
    /// assert!(dependencies.by_purl(&"pkg:maven/org.a/b@1.1".parse()?).is_none());
    /// # Ok::<(), convention_webhook_sdk::ConventionError>(())
    /// ```
    pub fn by_purl(&self, purl: &Purl) -> Option<&Dependency> {
        self.iter().find(|dependency| {
            let own = dependency.purl.parse::<Purl>();
            own.is_ok_and(|own| purl.covers(&own))
        })
    }
}

impl<'d> IntoIterator for &'d Dependencies {
    type Item = &'d Dependency;
    type IntoIter = std::slice::Iter<'d, Dependency>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// What tells the formats from one another.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Marks {
    bom_format: Option<Value>,
    spdx_version: Option<Value>,
    artifacts: Option<IgnoredAny>,
}

impl Sbom {
    /// Reads a bill of materials. Its format is told by its content, as names are not to be relied
    /// on.
    ///
    /// # Errors
    ///
    /// It is of no known format, or not as its format demands.
    pub fn read(bom: &Bom) -> Result<Self, SbomError> {
        let name = || bom.name.clone();
        let invalid = |error: serde_json::Error| SbomError::Invalid {
            name: name(),
            cause: shortened(&error.to_string(), 200),
        };
        if bom.raw.len() > MOST_NODES && nodes(&bom.raw) > MOST_NODES {
            return Err(SbomError::Invalid {
                name: name(),
                cause: format!("it has more than {MOST_NODES} objects"),
            });
        }
        let marks: Marks = serde_json::from_slice(&bom.raw).map_err(invalid)?;
        let unknown = || SbomError::Unknown { name: name() };
        let format = marks.format().ok_or_else(unknown)?;
        let dependencies = match format {
            SbomFormat::CycloneDx => documents::cyclone_dx(&bom.raw),
            SbomFormat::Spdx => documents::spdx(&bom.raw),
            SbomFormat::Syft => documents::syft(&bom.raw),
        };
        Ok(Self {
            name: name(),
            format,
            dependencies: dependencies.map_err(invalid)?,
        })
    }
}

impl Marks {
    fn format(&self) -> Option<SbomFormat> {
        if self.bom_format.as_ref().is_some_and(|it| it == "CycloneDX") {
            Some(SbomFormat::CycloneDx)
        } else if self.spdx_version.as_ref().is_some_and(Value::is_string) {
            Some(SbomFormat::Spdx)
        } else {
            self.artifacts.as_ref().map(|_| SbomFormat::Syft)
        }
    }
}

#[cfg(test)]
mod tests;
