//! Why nothing is known about an image, and who can mend it.

use std::time::Duration;

use conventions::image::{Digest, ReferenceError, unresolvable};

use crate::settings::Platform;

/// Who can mend it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Who wrote the image's name, made the image or the Secrets.
    User,
    /// Nobody but time or the operator: registries, the network, the settings.
    Infrastructure,
}

/// An image of which nothing is known. Its text is for the condition; it holds no credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// Its digest could not be found out.
    #[error("{}", unresolvable(image, cause))]
    Digest {
        /// As it is in the template.
        image: String,
        /// Why.
        cause: Cause,
    },
    /// Its digest is known, and no more.
    #[error("failed to read what image \"{image}\" is: {cause}")]
    Content {
        /// As it is in the template.
        image: String,
        /// Why.
        cause: Cause,
    },
}

impl ImageError {
    /// Who can mend it.
    pub fn kind(&self) -> FaultKind {
        self.cause().kind()
    }

    /// How long the registry asked to be left alone, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.cause() {
            Cause::Throttled { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Why.
    pub fn cause(&self) -> &Cause {
        match self {
            Self::Digest { cause, .. } | Self::Content { cause, .. } => cause,
        }
    }
}

/// Why nothing is known about an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// It is no reference.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// Nobody that could be tried is let in.
    #[error("registry {host} denies access to {what} ({tried})")]
    Denied {
        /// The registry.
        host: String,
        /// Repository and what of it.
        what: String,
        /// As whom it was asked.
        tried: String,
    },
    /// There is none.
    #[error("registry {host} has no {what}{code}")]
    Unknown {
        /// The registry.
        host: String,
        /// Repository and what of it.
        what: String,
        /// What the registry calls the error, in brackets.
        code: String,
    },
    /// The registry does not want the request as it is.
    #[error("registry {host} answers {status} when asked for {what}{code}")]
    Refused {
        /// The registry.
        host: String,
        /// Repository and what of it.
        what: String,
        /// The status of the answer.
        status: u16,
        /// What the registry calls the error, in brackets.
        code: String,
    },
    /// What the image consists of is not as it must be.
    #[error("{what} {fault}")]
    Image {
        /// Which part of the image.
        what: String,
        /// What is wrong there.
        fault: String,
    },
    /// It is in a format of the time before 2016, which has no configuration.
    #[error(
        "{what} is a manifest of schema version 1, which is not supported: push the image again"
    )]
    Schema1 {
        /// Which part of the image.
        what: String,
    },
    /// It is an index, and has nothing for the platform.
    #[error("index {digest} has no image for {platform}")]
    Platform {
        /// The index.
        digest: Digest,
        /// That is missing.
        platform: Platform,
    },
    /// It is more than we take.
    #[error("{what} has {}{limit} bytes that are taken{flag}", excess(*size))]
    TooLarge {
        /// Which part of the image.
        what: String,
        /// What it has, if that is known.
        size: Option<u64>,
        /// What is taken.
        limit: u64,
        /// The flag that takes more, if there is one.
        flag: &'static str,
    },
    /// The registry asks to be left alone.
    #[error("registry {host} answers {status} when asked for {what}, and asks to wait")]
    Throttled {
        /// The registry.
        host: String,
        /// Repository and what of it.
        what: String,
        /// The status of the answer.
        status: u16,
        /// For how long.
        retry_after: Option<Duration>,
    },
    /// The registry has trouble.
    #[error("registry {host} answers {status} when asked for {what}")]
    Trouble {
        /// The registry.
        host: String,
        /// Repository and what of it.
        what: String,
        /// The status of the answer.
        status: u16,
    },
    /// There is no answer.
    #[error("registry {host} cannot be asked for {what}: {fault}")]
    Unreachable {
        /// The registry.
        host: String,
        /// Repository and what of it.
        what: String,
        /// What happened.
        fault: String,
    },
    /// The answer is not what was asked for.
    #[error("registry {host} answers with something else when asked for {what}: {fault}")]
    Lie {
        /// The registry.
        host: String,
        /// Repository and what of it.
        what: String,
        /// What differs.
        fault: String,
    },
    /// It took longer than it may.
    #[error("it took longer than {} s", limit.as_secs())]
    Late {
        /// The time for all about one image.
        limit: Duration,
    },
    /// A file of the installation cannot be used.
    #[error("{0}")]
    Installation(String),
}

fn excess(size: Option<u64>) -> String {
    match size {
        Some(size) => format!("{size} bytes, more than the "),
        None => "more than the ".to_owned(),
    }
}

impl Cause {
    /// Who can mend it.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Reference(_)
            | Self::Denied { .. }
            | Self::Unknown { .. }
            | Self::Refused { .. }
            | Self::Image { .. }
            | Self::Schema1 { .. }
            | Self::Platform { .. }
            | Self::TooLarge { .. } => FaultKind::User,
            Self::Throttled { .. }
            | Self::Trouble { .. }
            | Self::Unreachable { .. }
            | Self::Lie { .. }
            | Self::Late { .. }
            | Self::Installation(_) => FaultKind::Infrastructure,
        }
    }
}
