//! Calls the webhooks of conventions, and does nothing else.
//!
//! ```text
//!  clientConfig, CA ──▶ Target ──┐
//!  context, SBOM files ──▶ RequestBody ──▶ Clients::call ──▶ Answer
//!                                             │   ▲
//!                                 pool, TLS, proxy, redirects, tries: all within one budget of time
//! ```
//!
//! - A [`Target`] says who is called and which authorities are trusted there. It is cheap to make, so
//!   it is made for each pass from what the convention says then.
//! - [`Clients`] keeps connections by host, port and trusted authorities. Another authority means
//!   other connections: nothing is sent over one that was trusted for another reason.
//! - A [`RequestBody`] reads bills of materials from files while it is sent, and can be sent again.
//! - A [`CallError`] reads as the end of a condition's message. It never holds a control character.
//!
//! A convention is called as the API server calls admission webhooks, so servers that were written for
//! the Go controller notice no difference but in the `User-Agent`, which is the caller's own.
//!
//! ```no_run
//! use std::collections::BTreeMap;
//!
//! use convention_client::{Clients, DEFAULT_BUDGET, RequestBody, Settings, Target};
//! use convention_protocol::{PodConventionContext, PodTemplate};
//! use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
//!
//! # async fn call() -> Result<(), Box<dyn std::error::Error>> {
//! let clients = Clients::new(Settings::default())?;
//! let config = WebhookClientConfig { url: Some("https://hooks.example/env".to_owned()), ..Default::default() };
//! let target = Target::of(&config, None)?;
//! let context = PodConventionContext::request("app-env".to_owned(), PodTemplate::default(), Vec::new());
//! let body = RequestBody::new(&context, &BTreeMap::new())?;
//! let answer = clients.call(&target, DEFAULT_BUDGET, &body).await?;
//! println!("{:?}", answer.applied);
//! # Ok(())
//! # }
//! ```

mod body;
mod clients;
mod dial;
mod error;
mod failure;
mod pool;
mod redirect;
mod response;
mod retry;
mod settings;
mod target;
mod text;
mod trust;

pub use body::{MOST_REQUEST_BYTES, RequestBody, RequestBodyError, StoredBom};
pub use clients::{Clients, ClientsError, DEFAULT_BUDGET};
pub use error::{CallError, CallErrorKind};
pub use settings::{Proxies, Settings};
pub use target::{Target, TargetError};
