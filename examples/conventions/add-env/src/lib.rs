//! The smallest convention: a variable for every container that has none of its name.

use convention_webhook_sdk::{Applied, ConventionError, Images, Template};

/// The variable.
pub const NAME: &str = "CONVENTION_SERVER";
/// Its value.
pub const VALUE: &str = "HELLO FROM CONVENTION";

/// Gives every container the variable, unless it has it.
///
/// # Errors
///
/// The template has something else where variables are.
#[expect(
    clippy::unused_async,
    reason = "a convention may wait; this one need not"
)]
pub async fn add_env(template: &mut Template, _: &Images) -> Result<Applied, ConventionError> {
    let mut applied = Applied::nothing();
    for mut container in template.containers_mut() {
        applied.record("add-env-var", container.default_env(NAME, VALUE)?);
    }
    Ok(applied)
}
