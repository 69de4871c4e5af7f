//! With which service accounts a controller works.

use api_types::ObjectName;
use clap::{ArgAction, Args};
use realizer::DEFAULT_SERVICE_ACCOUNT;

use super::parse_bool;

/// With which service accounts a controller works.
#[derive(Debug, Clone, Default, Args)]
pub struct AccountArgs {
    /// Service account of the owner's namespace that is used where neither the owner nor its blueprint names one; default:
    /// `default`
    #[arg(
        long,
        value_name = "NAME",
        env = "CARTO_DEFAULT_SERVICE_ACCOUNT",
        value_parser = account_name
    )]
    pub default_service_account: Option<String>,

    /// Take no service account that a blueprint lends (`serviceAccountRef`) from another namespace than the owner's: nothing is
    /// stamped with it, and the owner's condition says so. Runnables have no blueprint, and none is lent to them
    #[arg(long, env = "CARTO_NO_LENT_ACCOUNTS", default_value = "false", default_missing_value = "true", num_args = 0..=1, require_equals = true,
          value_name = "BOOL", value_parser = parse_bool, action = ArgAction::Set)]
    pub no_lent_accounts: bool,
}

impl AccountArgs {
    /// The account that is used where nobody names one.
    pub fn default_name(&self) -> &str {
        let named = self.default_service_account.as_deref();
        let named = named.filter(|name| !name.is_empty());
        named.unwrap_or(DEFAULT_SERVICE_ACCOUNT)
    }
}

/// An empty one is none.
fn account_name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Ok(String::new());
    }
    match ObjectName::try_from(text) {
        Ok(name) => Ok(name.to_string()),
        Err(error) => Err(error.to_string()),
    }
}
