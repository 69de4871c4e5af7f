//! What the API server did not carry out. It is nobody's fault who reads the PodIntent's status, so nothing is said there.

use controller_kit::cluster::{Answer, RequestError};
use controller_kit::stamped::ObjectKey;
use serde_json::Value;

/// A request that the API server did not carry out.
#[derive(Debug, thiserror::Error)]
#[error("failed to read Secret [{secret}]")]
pub(crate) struct Fault {
    /// What was asked for.
    pub(crate) secret: ObjectKey,
    /// What the API server said.
    #[source]
    pub(crate) error: RequestError,
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
        Err(error) if error.passes_by_itself() => Err(Fault {
            secret: key.clone(),
            error,
        }),
        Err(error) => Ok(Asked::Refused(error)),
    }
}
