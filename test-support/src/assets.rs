//! Where the real binaries are.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Why a real part cannot be run. The developer fixes it, mostly with `make control-plane`.
#[derive(Debug, thiserror::Error)]
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
}

/// The folders that hold the binaries, in order of preference.
#[derive(Debug, Clone)]
pub struct Assets {
    folders: Vec<PathBuf>,
}

/// Finds the folders of binaries: `KUBEBUILDER_ASSETS`, then `CARTO_ASSETS`, else the cache that `make control-plane` fills.
///
/// # Errors
///
/// [`AssetsError::Unknown`] when neither variable is set and the build script cannot name its cache.
pub fn assets() -> Result<Assets, AssetsError> {
    let mut folders = folders_named_by_environment();
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
fn folders_named_by_environment() -> Vec<PathBuf> {
    ["KUBEBUILDER_ASSETS", "CARTO_ASSETS"]
        .iter()
        .filter_map(std::env::var_os)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .collect()
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

    #[test]
    fn the_build_script_names_a_folder_outside_the_source_tree() {
        let folder = cache_folder().unwrap();
        assert!(folder.is_absolute(), "{}", folder.display());
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert!(!folder.starts_with(workspace), "{}", folder.display());
    }
}
