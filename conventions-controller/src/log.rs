//! What the log says of what conventions changed: values of literal variables never.

use convention_protocol::PodTemplate;
use conventions::diff::diff;
use tracing::{debug, enabled};

/// Tells what a convention made of a template.
pub(crate) fn applied(convention: &str, before: &PodTemplate, after: &PodTemplate) {
    if !enabled!(tracing::Level::DEBUG) {
        return;
    }
    let diff = diff(before, after).join("; ");
    debug!(convention, diff, "applied convention");
}
