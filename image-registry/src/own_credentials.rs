//! Credentials of the installation: for images of everybody.

use std::path::PathBuf;
use std::sync::Arc;

use conventions::credentials::{Keyring, SecretKind};
use parking_lot::Mutex;

use crate::clients::{Stamp, read_bounded};

/// The most bytes of the file.
const BYTES: u64 = 1 << 20;

/// A `config.json` of Docker. Programs that it names are not run.
pub(crate) struct OwnCredentials {
    file: Option<PathBuf>,
    read: Mutex<(Option<Stamp>, Arc<Keyring>)>,
}

impl OwnCredentials {
    pub(crate) fn new(file: Option<PathBuf>) -> Self {
        Self {
            file,
            read: Mutex::default(),
        }
    }

    /// What the file says now. One that was good and cannot be read any more counts as it was.
    pub(crate) fn current(&self) -> Arc<Keyring> {
        let mut read = self.read.lock();
        let Some(file) = &self.file else {
            return read.1.clone();
        };
        let stamp = Stamp::of(file);
        if read.0 == stamp {
            return read.1.clone();
        }
        let keyring = match &stamp {
            None => Ok(Keyring::default()),
            Some(_) => read_bounded(file, BYTES).map(|bytes| {
                let mut keyring = Keyring::default();
                for fault in keyring.add(SecretKind::DockerConfigJson, &bytes) {
                    tracing::warn!("{}: {fault}", file.display());
                }
                keyring
            }),
        };
        match keyring {
            Ok(keyring) => read.1 = Arc::new(keyring),
            Err(error) => tracing::warn!("{}: {error}", file.display()),
        }
        read.0 = stamp;
        read.1.clone()
    }
}
