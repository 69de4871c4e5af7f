//! The TokenRequest call.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use kube::core::Status;

use super::Account;
use crate::cluster::{MOST_REST, chain};

const TIMEOUT: Duration = Duration::from_secs(15);

/// What the API server had against issuing a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// There is no such service account.
    NotFound,
    /// The controller has no right to ask for it, or admission refused.
    Forbidden,
    /// Anything else: passes by itself.
    Infrastructure,
}

/// A refused or failed request for a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Who must act.
    pub kind: RefusalKind,
    /// How long the server asked to be left alone.
    pub(crate) retry_after: Option<Duration>,
    message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

pub(super) struct Reply {
    pub(super) token: String,
    pub(super) lifetime_seconds: i64,
    pub(super) expiry: Timestamp,
}

/// Asks for a token: default audience, bound to nothing but the account.
pub(super) async fn send(
    client: &kube::Client,
    account: &Account,
    seconds: i64,
) -> Result<Reply, Refusal> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &account.namespace);
    let spec = TokenRequestSpec {
        expiration_seconds: Some(seconds),
        ..TokenRequestSpec::default()
    };
    let asked = TokenRequest {
        spec: Some(spec),
        ..TokenRequest::default()
    };
    let parameters = PostParams::default();
    let call = accounts.create_token_request(&account.name, &parameters, &asked);
    match tokio::time::timeout(TIMEOUT, call).await {
        Ok(Ok(reply)) => read(reply, seconds),
        Ok(Err(error)) => Err(refusal(&error)),
        Err(_) => Err(infrastructure(format!(
            "no answer within {} s",
            TIMEOUT.as_secs()
        ))),
    }
}

fn read(reply: TokenRequest, asked: i64) -> Result<Reply, Refusal> {
    // The server may grant less time than was asked for.
    let granted = reply
        .spec
        .and_then(|spec| spec.expiration_seconds)
        .filter(|seconds| *seconds > 0);
    let status = reply.status.unwrap_or_default();
    match (status.token, status.expiration_timestamp) {
        (Some(token), Some(expiry)) if !token.is_empty() => Ok(Reply {
            token,
            lifetime_seconds: granted.unwrap_or(asked),
            expiry: expiry.0,
        }),
        _ => Err(infrastructure(
            "the API server answered without a token".into(),
        )),
    }
}

fn refusal(error: &kube::Error) -> Refusal {
    match error {
        kube::Error::Api(status) => Refusal {
            kind: match status.code {
                404 => RefusalKind::NotFound,
                403 => RefusalKind::Forbidden,
                _ => RefusalKind::Infrastructure,
            },
            retry_after: rest(status),
            message: status.message.clone(),
        },
        other => infrastructure(chain(other)),
    }
}

/// What the server asks for in its head is not handed on here; where it says that it is asked too much, a second is the least.
fn rest(status: &Status) -> Option<Duration> {
    let asked = status.details.as_ref();
    let asked = asked.map_or(0, |details| details.retry_after_seconds);
    let least = u32::from(status.code == 429);
    let seconds = asked.max(least);
    (seconds > 0).then(|| Duration::from_secs(seconds.into()).min(MOST_REST))
}

fn infrastructure(message: String) -> Refusal {
    Refusal {
        kind: RefusalKind::Infrastructure,
        retry_after: None,
        message,
    }
}
