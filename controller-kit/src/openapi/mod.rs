//! The schemas that the API server publishes, for `submission`: fetched one at a time, and kept for a while.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use kube::client::Body;
use parking_lot::Mutex;
use submission::openapi::KindSchema;
use thiserror::Error;
use tokio::time::Instant;

use crate::cluster::{RequestError, encode, fetch};

/// Kinds remembered. Few kinds ever need it.
const KINDS: usize = 64;
/// A document that takes longer is given up: whoever waits for it holds a slot.
const DEADLINE: Duration = Duration::from_secs(10);
/// What is read of a document, in bytes. A group with hundreds of large kinds has 5 MiB.
const LONGEST_DOCUMENT: usize = 16 << 20;
/// How long a schema is taken for current: a CRD may be changed at any time.
const LIFETIME: Duration = Duration::from_mins(5);

/// Why a kind's schema is not to be had.
#[derive(Debug, Clone, Error)]
pub enum SchemaError {
    /// The API server publishes none for it.
    #[error("the API server publishes no schema for {kind} in {api_version}")]
    NotPublished {
        /// apiVersion.
        api_version: String,
        /// Kind.
        kind: String,
    },
    /// The API server refused the request.
    #[error("fetch schema of {api_version}: {cause}")]
    Fetch {
        /// apiVersion.
        api_version: String,
        /// The error and what caused it.
        cause: String,
    },
    /// The API server could not carry out the request, or did not answer in time.
    #[error("fetch schema of {api_version}: {cause}")]
    Unavailable {
        /// apiVersion.
        api_version: String,
        /// The error and what caused it.
        cause: String,
    },
    /// There is more of it than what is read.
    #[error("fetch schema of {api_version}: {cause}")]
    TooLong {
        /// apiVersion.
        api_version: String,
        /// Which answer, and how much is read.
        cause: String,
    },
    /// The document is no OpenAPI v3.
    #[error("read schema of {api_version}: {cause}")]
    Unreadable {
        /// apiVersion.
        api_version: String,
        /// Where it stops making sense.
        cause: String,
    },
}

type KindKey = (String, String);

/// Compact schemas of the kinds that needed one.
#[derive(Default)]
pub struct SchemaCache {
    kinds: Mutex<HashMap<KindKey, Cached>>,
    /// Documents are large: each is read once at a time. By apiVersion.
    flights: Mutex<HashMap<String, Arc<Flight>>>,
}

/// Held while a document is read; inside is when and how the last try failed.
type Flight = tokio::sync::Mutex<Option<(Instant, SchemaError)>>;

struct Cached {
    /// A document that is too long is not read again as long as one that was read.
    schema: Result<Arc<KindSchema>, SchemaError>,
    read: Instant,
}

impl SchemaCache {
    /// The schema of a kind, as it was at most five minutes ago.
    ///
    /// # Errors
    /// There is none to be had.
    pub async fn schema(
        &self,
        client: &kube::Client,
        api_version: &str,
        kind: &str,
    ) -> Result<Arc<KindSchema>, SchemaError> {
        let key = (api_version.to_owned(), kind.to_owned());
        if let Some(known) = self.current(&key) {
            return known;
        }
        let asked = Instant::now();
        let flight = self.flight(api_version);
        let mut failed = flight.lock().await;
        if let Some(known) = self.current(&key) {
            return known;
        }
        // Whoever waited for a document that does not come does not wait for it once more.
        if let Some((_, error)) = failed.as_ref().filter(|(when, _)| *when >= asked) {
            return Err(error.clone());
        }
        match fetch_schema(client, api_version, kind).await {
            Ok(schema) => {
                let schema = Arc::new(schema);
                self.keep(key, Ok(schema.clone()));
                Ok(schema)
            }
            Err(error) => {
                if matches!(error, SchemaError::Unavailable { .. }) {
                    *failed = Some((Instant::now(), error.clone()));
                } else if matches!(error, SchemaError::TooLong { .. }) {
                    self.keep(key, Err(error.clone()));
                }
                Err(error)
            }
        }
    }

    fn flight(&self, api_version: &str) -> Arc<Flight> {
        let mut flights = self.flights.lock();
        flights.retain(|_, flight| Arc::strong_count(flight) > 1);
        flights.entry(api_version.to_owned()).or_default().clone()
    }

    fn current(&self, key: &KindKey) -> Option<Result<Arc<KindSchema>, SchemaError>> {
        let kinds = self.kinds.lock();
        kinds
            .get(key)
            .filter(|cached| cached.read.elapsed() < LIFETIME)
            .map(|cached| cached.schema.clone())
    }

    fn keep(&self, key: KindKey, schema: Result<Arc<KindSchema>, SchemaError>) {
        let mut kinds = self.kinds.lock();
        kinds.retain(|_, cached| cached.read.elapsed() < LIFETIME);
        if kinds.len() >= KINDS {
            let oldest = kinds
                .iter()
                .min_by_key(|(_, cached)| cached.read)
                .map(|(key, _)| key.clone());
            oldest.and_then(|oldest| kinds.remove(&oldest));
        }
        kinds.insert(
            key,
            Cached {
                schema,
                read: Instant::now(),
            },
        );
    }
}

/// Reads the schema of one kind from the API server.
///
/// # Errors
/// The server cannot be reached, or publishes no schema for the kind (a CRD that was just removed).
pub async fn fetch_schema(
    client: &kube::Client,
    api_version: &str,
    kind: &str,
) -> Result<KindSchema, SchemaError> {
    let document = fetch_document(client, api_version).await?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let schema = KindSchema::compile(&document, group, version, kind).map_err(|error| {
        SchemaError::Unreadable {
            api_version: api_version.into(),
            cause: error.to_string(),
        }
    })?;
    schema.ok_or_else(|| SchemaError::NotPublished {
        api_version: api_version.into(),
        kind: kind.into(),
    })
}

async fn fetch_document(client: &kube::Client, api_version: &str) -> Result<Bytes, SchemaError> {
    let api_version = || api_version.to_owned();
    let unavailable = |cause: String| SchemaError::Unavailable {
        api_version: api_version(),
        cause,
    };
    let failed = |cause: String| SchemaError::Fetch {
        api_version: api_version(),
        cause,
    };
    let request = Request::get(path_of(&api_version()))
        .header(header::ACCEPT, "application/json")
        .body(Body::empty());
    let request = request.map_err(|error| failed(error.to_string()))?;
    let answer = fetch(client, request, LONGEST_DOCUMENT);
    let error = match tokio::time::timeout(DEADLINE, answer).await {
        Ok(Ok((_, document))) => return Ok(document),
        Ok(Err(error)) => error,
        Err(_) => {
            return Err(unavailable(format!(
                "no answer within {} s",
                DEADLINE.as_secs()
            )));
        }
    };
    Err(match &error {
        RequestError::TooLong { .. } => SchemaError::TooLong {
            api_version: api_version(),
            cause: error.to_string(),
        },
        RequestError::Refused { code, status, .. }
            if code.is_client_error() && *code != StatusCode::TOO_MANY_REQUESTS =>
        {
            failed(status.message.clone())
        }
        RequestError::Refused { .. } | RequestError::Transport(_) => unavailable(error.to_string()),
    })
}

fn path_of(api_version: &str) -> String {
    match api_version.split_once('/') {
        Some((group, version)) => format!("/openapi/v3/apis/{}/{}", encode(group), encode(version)),
        None => format!("/openapi/v3/api/{}", encode(api_version)),
    }
}
