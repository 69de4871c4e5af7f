//! What the API server did not carry out, or files of our own were in the way of. It is nobody's
//! fault who reads the PodIntent's status, so nothing is said there.

use std::time::Duration;

use controller_kit::cluster::{Answer, RequestError};
use controller_kit::stamped::ObjectKey;
use conventions::outcome::Failure;
use serde_json::Value;

/// Only this says that somebody has to mend something.
const FORBIDDEN: u16 = 403;

/// What was needed, and could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// A request that the API server did not carry out.
    #[error("failed to read Secret [{secret}]")]
    Secret {
        /// What was asked for.
        secret: ObjectKey,
        /// What the API server said.
        #[source]
        error: RequestError,
    },
    /// A file of the installation, or of what is kept on disk, cannot be used. The operator must
    /// mend it, if it does not pass.
    #[error("{0}")]
    Files(String),
    /// Presets that a template may get cannot be listed, or were not yet.
    #[error("{0}")]
    Presets(String),
}

impl Fault {
    /// How long the API server asked to be left alone.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Secret { error, .. } => error.retry_after(),
            Self::Files(_) | Self::Presets(_) => None,
        }
    }
}

/// Why a pass went no further.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Somebody has to mend something; the status says so.
    Failure(Failure),
    /// The API server did not carry out what was needed.
    Fault(Fault),
    /// Others wait already for the answer of a webhook that hangs.
    PutOff,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// What became of a question.
pub(crate) enum Asked {
    /// The object.
    Answered(Value),
    /// There is none.
    Missing,
    /// Somebody has to mend something.
    Refused(RequestError),
}

/// Tells what is said of an object from what is not known.
pub(crate) fn asked(answer: Result<Answer, RequestError>, key: &ObjectKey) -> Result<Asked, Fault> {
    match answer {
        Ok(answer) => Ok(Asked::Answered(answer.body)),
        Err(error) if error.is_missing_object() => Ok(Asked::Missing),
        Err(error) if error.code().is_some_and(|code| code.as_u16() == FORBIDDEN) => {
            Ok(Asked::Refused(error))
        }
        // Also a 404 of the path and a 401: the server is just starting, or a token is just
        // replaced.
        Err(error) => Err(Fault::Secret {
            secret: key.clone(),
            error,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_prevented_is_told_from_what_somebody_has_to_mend() {
        let key = ObjectKey::new("dev", "pull");
        let of = |error: RequestError| asked(Err(error), &key);
        let refused = |code: u16, name: &str| {
            let status = serde_json::json!({"status": "Failure", "message": "no", "reason": "", "code": code,
                "details": {"name": name}});
            RequestError::Refused {
                code: code.try_into().unwrap(),
                status: Box::new(serde_json::from_value(status).unwrap()),
                retry_after: None,
            }
        };
        for code in [401, 429, 500, 502, 503, 504] {
            assert!(of(refused(code, "pull")).is_err(), "{code}");
        }
        assert!(of(RequestError::Transport("reset".to_owned())).is_err());
        assert!(matches!(of(refused(404, "pull")), Ok(Asked::Missing)));
        assert!(matches!(of(refused(403, "pull")), Ok(Asked::Refused(_))));
        // Nothing is served at the path: the server is just starting.
        assert!(of(refused(404, "")).is_err());
    }
}
