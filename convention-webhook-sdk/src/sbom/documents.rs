//! What the formats of bills of materials have, of what is read.

use serde::Deserialize;

use super::Dependency;

type Listed = Result<Vec<Dependency>, serde_json::Error>;

/// What a document of CycloneDX lists.
pub(super) fn cyclone_dx(raw: &[u8]) -> Listed {
    serde_json::from_slice(raw).map(CycloneDx::list)
}

/// What a document of SPDX lists.
pub(super) fn spdx(raw: &[u8]) -> Listed {
    serde_json::from_slice(raw).map(Spdx::list)
}

/// What a document of Syft lists.
pub(super) fn syft(raw: &[u8]) -> Listed {
    serde_json::from_slice(raw).map(Syft::list)
}

#[derive(Deserialize)]
struct CycloneDx {
    components: Option<Vec<Component>>,
}

#[derive(Deserialize)]
struct Component {
    name: Option<String>,
    version: Option<String>,
    purl: Option<String>,
    components: Option<Vec<Self>>,
}

impl CycloneDx {
    /// In the order of the document: what a component is made of comes behind it.
    fn list(self) -> Vec<Dependency> {
        let mut listed = Vec::new();
        let mut open: Vec<Component> = self.components.unwrap_or_default();
        open.reverse();
        while let Some(component) = open.pop() {
            open.extend(component.components.into_iter().flatten().rev());
            let (name, version) = (component.name, component.version);
            listed.push(dependency(name, version, component.purl));
        }
        listed
    }
}

#[derive(Deserialize)]
struct Spdx {
    packages: Option<Vec<SpdxPackage>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpdxPackage {
    name: Option<String>,
    version_info: Option<String>,
    external_refs: Option<Vec<ExternalRef>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExternalRef {
    reference_type: Option<String>,
    reference_locator: Option<String>,
}

impl Spdx {
    fn list(self) -> Vec<Dependency> {
        let packages = self.packages.into_iter().flatten();
        let list = packages.map(|package| {
            let mut references = package.external_refs.into_iter().flatten();
            let purl = references.find(|it| it.reference_type.as_deref() == Some("purl"));
            let purl = purl.and_then(|purl| purl.reference_locator);
            dependency(package.name, package.version_info, purl)
        });
        list.collect()
    }
}

#[derive(Deserialize)]
struct Syft {
    artifacts: Option<Vec<Artifact>>,
}

#[derive(Deserialize)]
struct Artifact {
    name: Option<String>,
    version: Option<String>,
    purl: Option<String>,
}

impl Syft {
    fn list(self) -> Vec<Dependency> {
        let artifacts = self.artifacts.into_iter().flatten();
        let list = artifacts.map(|it| dependency(it.name, it.version, it.purl));
        list.collect()
    }
}

fn dependency(name: Option<String>, version: Option<String>, purl: Option<String>) -> Dependency {
    Dependency {
        name: name.unwrap_or_default(),
        version: version.unwrap_or_default(),
        purl: purl.unwrap_or_default(),
    }
}
