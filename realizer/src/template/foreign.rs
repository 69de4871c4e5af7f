//! Fields that others set beside what is rendered, where a template refuses them
//! (docs/behaviour/attribution.md#foreign-fields).

use crate::Observed;
use crate::template::outputs::ReadError;

/// Whether nobody but the API server has put anything beside what is rendered.
pub(crate) fn refuse(observed: &Observed) -> Result<(), ReadError> {
    let unknown = |cause: &str| ReadError::ForeignUnknown {
        cause: cause.to_owned(),
    };
    let beside = observed.beside.as_ref();
    let beside = beside.ok_or_else(|| unknown("nothing is known of its fields"))?;
    match &beside.expected {
        Some(Ok(expected)) if beside.are_all_in(expected) => Ok(()),
        Some(Ok(_)) => Err(ReadError::Foreign {
            fields: beside.named.clone(),
        }),
        Some(Err(cause)) => Err(unknown(cause)),
        None => Err(unknown("it was not asked for")),
    }
}

/// The same of a run, in which nobody must have changed anything at any time: it says once what it came to. The API server
/// counts each change of what is asked for, and nobody can lower that count.
pub(crate) fn refuse_in_run(observed: &Observed) -> Result<(), ReadError> {
    refuse(observed)?;
    // Its deletion is such a change, while it is on its way out.
    let most = if observed.terminating && !observed.is_gone {
        2
    } else {
        1
    };
    match observed.object["metadata"]["generation"].as_i64() {
        Some(generation) if generation > most => Err(ReadError::Changed),
        Some(_) | None => Ok(()),
    }
}

/// The same of an object that an environment keeps, by what is known of it: nothing was applied, so nothing is asked.
pub(crate) fn refuse_in_held(
    observed: &Observed,
    known: Option<&[String]>,
) -> Result<(), ReadError> {
    let beside = observed.beside.as_ref();
    match beside.zip(known) {
        Some((beside, known)) if !beside.are_all_in(known) => Err(ReadError::Foreign {
            fields: beside.named.clone(),
        }),
        Some(_) | None => Ok(()),
    }
}
