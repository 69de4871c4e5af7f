//! Why a server does not serve.

use std::io;
use std::path::PathBuf;

/// Why a server does not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// There is nothing to serve; the author of the server must give it a convention.
    #[error("no convention: call `convention` before `serve`")]
    NoConvention,
    /// The author of the server must choose another path.
    #[error(
        "{0:?} is no path for a convention: it begins with a slash, and is neither /healthz nor /metrics"
    )]
    Path(String),
    /// The author of the server must choose another path for one of them.
    #[error("two conventions at {0:?}")]
    TwoConventions(String),
    /// Whoever runs the server must correct the environment.
    #[error("PORT is {0:?}, not a number up to 65535")]
    Port(String),
    /// Whoever runs the server must mount a key pair.
    #[error("no key pair in {}, or in the folder that TLS_DIRECTORY names", .directory.display())]
    KeyPair {
        /// Where it is looked for.
        directory: PathBuf,
        /// What is wrong with it.
        source: KeyPairError,
    },
    /// The port is taken, or may not be used.
    #[error("listen on {address} (PORT names another one)")]
    Listen {
        /// Where.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// Exchanges cannot be recorded; whoever runs the server must make the directory writable.
    #[error("record exchanges in {}", .directory.display())]
    Record {
        /// Where.
        directory: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// TLS cannot be set up; a fault of the build.
    #[error("set up TLS")]
    Tls(#[source] rustls::Error),
    /// Signals cannot be handled; a fault of the machine.
    #[error("handle signals")]
    Signals(#[source] io::Error),
}

/// What is wrong with a key pair.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyPairError {
    /// A file cannot be read.
    #[error("read {}", .file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file has no certificate.
    #[error("tls.crt has no certificate: {0}")]
    Certificate(String),
    /// The file has no private key, or one of an unknown kind. The text is not that of the file.
    #[error("tls.key has no private key: {0}")]
    Key(String),
    /// They do not belong together.
    #[error("tls.key does not belong to tls.crt")]
    Mismatch,
}
