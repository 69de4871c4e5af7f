//! Certificates from a directory: a mounted Secret, filled by cert-manager or by hand.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::certificate::{LoadedCertificate, ServingCertificate};
use crate::cluster::chain;
use crate::metrics::Metrics;

/// The kubelet itself takes about a minute to bring a changed Secret. Looking at two small files is
/// cheaper than following the symlinks that it swaps.
const INTERVAL: Duration = Duration::from_secs(10);

/// Serves `tls.crt` and `tls.key` of a directory, and what they become, for ever. Files that are
/// missing or do not fit together leave the certificate as it is.
pub(crate) async fn follow_directory(
    directory: PathBuf,
    certificate: Arc<ServingCertificate>,
    metrics: Arc<Metrics>,
) {
    let mut last = None;
    loop {
        let found = read(&directory).await;
        // Errors are told when they are new, not every ten seconds.
        if last.as_ref() != Some(&found) {
            load(&directory, &found, &certificate, &metrics);
            last = Some(found);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

type Found = Result<(Vec<u8>, Vec<u8>), String>;

async fn read(directory: &Path) -> Found {
    let one = async |name: &str| {
        let path = directory.join(name);
        tokio::fs::read(&path)
            .await
            .map_err(|error| format!("{}: {error}", path.display()))
    };
    Ok((one("tls.crt").await?, one("tls.key").await?))
}

fn load(directory: &Path, found: &Found, certificate: &ServingCertificate, metrics: &Metrics) {
    let loaded = match found {
        Ok((chain_pem, key_pem)) => {
            LoadedCertificate::from_pem(chain_pem, key_pem).map_err(|error| chain(&error))
        }
        Err(error) => Err(error.clone()),
    };
    match loaded {
        Ok(loaded) => {
            info!(directory = %directory.display(), expiry = %loaded.expiry, "webhook certificate loaded");
            certificate.replace(&loaded, metrics);
        }
        Err(error) => {
            warn!(directory = %directory.display(), error, "webhook certificate not loaded");
        }
    }
}
