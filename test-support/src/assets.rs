//! Where the real binaries are.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The versions of what the build script makes.
const PINS: &str = include_str!("../../hack/control-plane/pins");

/// Why a real part cannot be run. The developer fixes it, mostly with `make control-plane`.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AssetsError {
    /// The binary is in none of the folders.
    #[error("{name} is missing (looked in {searched}): run `make control-plane`")]
    Missing {
        /// File name of the binary.
        name: String,
        /// The folders, in order of the search.
        searched: String,
    },
    /// `hack/control-plane/build.sh --path` did not answer.
    #[error(
        "cannot tell the folder of the control plane ({reason}): run `make control-plane`, or set CARTO_ASSETS"
    )]
    Unknown {
        /// What went wrong with the script.
        reason: String,
    },
    /// `KUBEBUILDER_ASSETS` has another Kubernetes than the one that everything here is tested with.
    #[error(
        "KUBEBUILDER_ASSETS has {found} in {folder}, and tests are for Kubernetes {wanted}: unset it, and `make control-plane` \
         builds that one"
    )]
    OtherKubernetes {
        /// Its API server's word, or why there is none.
        found: String,
        /// The folder.
        folder: String,
        /// Major and minor version.
        wanted: String,
    },
}

/// The folders that hold the binaries, in order of preference.
#[derive(Debug, Clone)]
pub struct Assets {
    folders: Vec<PathBuf>,
}

/// Finds the folders of binaries: `KUBEBUILDER_ASSETS`, then `CARTO_ASSETS`, else the cache that `make control-plane` fills.
/// `CARTO_KUBERNETES` says which minor version of Kubernetes is meant, if it is another than the pinned one, such as 1.33.
///
/// # Errors
///
/// [`AssetsError::Unknown`] when neither variable is set and the build script cannot name its cache;
/// [`AssetsError::OtherKubernetes`] when the first one has another minor version of Kubernetes.
pub fn assets() -> Result<Assets, AssetsError> {
    static CHECKED: OnceLock<Result<(), AssetsError>> = OnceLock::new();
    let [given, ours] = ["KUBEBUILDER_ASSETS", "CARTO_ASSETS"].map(folder_named_by);
    if let Some(given) = given
        .as_deref()
        .filter(|given| Some(*given) != ours.as_deref())
    {
        let meant = folder_named_by("CARTO_KUBERNETES");
        let meant = meant.map(|minor| format!("v{}", minor.display()));
        CHECKED.get_or_init(|| is_ours(given, meant)).clone()?;
    }
    let mut folders: Vec<PathBuf> = given.into_iter().chain(ours).collect();
    if folders.is_empty() {
        folders.push(cache_folder()?);
    }
    Ok(Assets { folders })
}

impl Assets {
    /// The path of one binary, such as `kube-apiserver`.
    ///
    /// # Errors
    ///
    /// [`AssetsError::Missing`] when no folder has it.
    pub fn binary(&self, name: &str) -> Result<PathBuf, AssetsError> {
        self.find(name, Path::is_file)
    }

    /// The folder with the CRDs of Flux's source-controller and kustomize-controller.
    ///
    /// # Errors
    ///
    /// [`AssetsError::Missing`] when no folder has them.
    pub fn flux_crds(&self) -> Result<PathBuf, AssetsError> {
        self.find("flux-crds", Path::is_dir)
    }

    /// The folder with the CRDs of cert-manager's Certificate and CertificateRequest.
    ///
    /// # Errors
    ///
    /// [`AssetsError::Missing`] when no folder has them.
    pub fn cert_manager_crds(&self) -> Result<PathBuf, AssetsError> {
        self.find("cert-manager-crds", Path::is_dir)
    }

    fn find(&self, name: &str, accept: fn(&Path) -> bool) -> Result<PathBuf, AssetsError> {
        self.folders
            .iter()
            .map(|folder| folder.join(name))
            .find(|path| accept(path))
            .ok_or_else(|| AssetsError::Missing {
                name: name.to_owned(),
                searched: self.searched(),
            })
    }

    fn searched(&self) -> String {
        let names: Vec<String> = self
            .folders
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        names.join(", ")
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests have no command line of their own: cargo hands them nothing but the environment"
)]
fn folder_named_by(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// Whether the API server in a folder, if there is one, has the minor version that is meant, else that is pinned.
fn is_ours(folder: &Path, meant: Option<String>) -> Result<(), AssetsError> {
    let server = folder.join("kube-apiserver");
    if !server.is_file() {
        return Ok(());
    }
    let said = Command::new(server).arg("--version").output();
    let found = match said {
        Ok(said) => String::from_utf8_lossy(&said.stdout).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    let pinned = || minor(PINS.split("version.gitVersion=").nth(1).unwrap_or_default());
    let wanted = meant.or_else(pinned);
    if wanted.is_some() && found.split(' ').any(|word| minor(word) == wanted) {
        return Ok(());
    }
    Err(AssetsError::OtherKubernetes {
        found,
        folder: folder.display().to_string(),
        wanted: wanted.unwrap_or_default(),
    })
}

/// `v1.36` of `v1.36.3` and whatever follows.
fn minor(version: &str) -> Option<String> {
    let mut numbers = version.strip_prefix('v')?.split('.');
    let (major, minor) = (numbers.next()?, numbers.next()?);
    numbers.next()?;
    Some(format!("v{major}.{minor}"))
}

fn cache_folder() -> Result<PathBuf, AssetsError> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hack/control-plane/build.sh");
    let unknown = |reason: String| AssetsError::Unknown { reason };
    let output = Command::new("bash")
        .args([script.as_os_str(), OsStr::new("--path")])
        .output()
        .map_err(|error| unknown(format!("bash: {error}")))?;
    if !output.status.success() {
        return Err(unknown(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        ));
    }
    Ok(PathBuf::from(
        String::from_utf8_lossy(&output.stdout).trim(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_folders(folders: &[&Path]) -> Assets {
        Assets {
            folders: folders.iter().map(|folder| folder.to_path_buf()).collect(),
        }
    }

    #[test]
    fn the_first_folder_that_has_a_binary_wins() {
        let (own, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(own.path().join("etcd"), "").unwrap();
        std::fs::write(cache.path().join("etcd"), "").unwrap();
        std::fs::write(cache.path().join("ytt"), "").unwrap();
        let assets = in_folders(&[own.path(), cache.path()]);
        assert_eq!(assets.binary("etcd").unwrap(), own.path().join("etcd"));
        assert_eq!(assets.binary("ytt").unwrap(), cache.path().join("ytt"));
    }

    #[test]
    fn a_missing_binary_names_the_command_that_makes_it() {
        let folder = tempfile::tempdir().unwrap();
        let error = in_folders(&[folder.path()])
            .binary("kube-apiserver")
            .unwrap_err();
        let expected = format!(
            "kube-apiserver is missing (looked in {}): run `make control-plane`",
            folder.path().display()
        );
        assert_eq!(error.to_string(), expected);
    }

    /// A folder with an API server that says this when it is asked for its version.
    fn saying(version: &str) -> tempfile::TempDir {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let server = folder.path().join("kube-apiserver");
        std::fs::write(&server, format!("#!/bin/sh\necho '{version}'\n")).unwrap();
        std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    #[test]
    fn an_api_server_of_another_minor_version_is_refused() {
        let pinned = PINS.split("version.gitVersion=").nth(1).and_then(minor);
        let pinned = pinned.unwrap();
        let same = saying(&format!("Kubernetes {pinned}.99"));
        assert!(is_ours(same.path(), None).is_ok());
        assert!(is_ours(tempfile::tempdir().unwrap().path(), None).is_ok());
        let meant = || Some("v1.2".to_owned());
        assert!(is_ours(saying("Kubernetes v1.2.3").path(), meant()).is_ok());
        let error = is_ours(same.path(), meant()).unwrap_err().to_string();
        assert!(error.contains("tests are for Kubernetes v1.2:"), "{error}");
        for other in ["Kubernetes v1.2.3", "no version"] {
            let folder = saying(other);
            let error = is_ours(folder.path(), None).unwrap_err().to_string();
            let expected = format!(
                "KUBEBUILDER_ASSETS has {other} in {}, and tests are for Kubernetes {pinned}: unset it",
                folder.path().display()
            );
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn the_build_script_names_a_folder_outside_the_source_tree() {
        let folder = cache_folder().unwrap();
        assert!(folder.is_absolute(), "{}", folder.display());
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert!(!folder.starts_with(workspace), "{}", folder.display());
    }
}
