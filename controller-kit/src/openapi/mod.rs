//! The schemas that the API server publishes, for `submission`: fetched one at a time, and kept for a while.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::Display;
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
    /// The API server publishes none for it, refused the request, or sent what is no OpenAPI v3.
    #[error("{0}")]
    Missing(String),
    /// The API server could not carry out the request, or did not answer in time.
    #[error("{0}")]
    Unavailable(String),
    /// There is more of it than what is read.
    #[error("{0}")]
    TooLong(String),
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
        let schema = fetch_schema(client, api_version, kind).await;
        let schema = schema.map(Arc::new);
        match &schema {
            Ok(_) | Err(SchemaError::TooLong(_)) => self.keep(key, schema.clone()),
            Err(error @ SchemaError::Unavailable(_)) => {
                *failed = Some((Instant::now(), error.clone()));
            }
            Err(SchemaError::Missing(_)) => {}
        }
        schema
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
    let missing = match KindSchema::compile(&document, group, version, kind) {
        Ok(Some(schema)) => return Ok(schema),
        Ok(None) => format!("the API server publishes no schema for {kind} in {api_version}"),
        Err(error) => format!("read schema of {api_version}: {error}"),
    };
    Err(SchemaError::Missing(missing))
}

async fn fetch_document(client: &kube::Client, api_version: &str) -> Result<Bytes, SchemaError> {
    let because = |cause: &dyn Display| format!("fetch schema of {api_version}: {cause}");
    let request = Request::get(path_of(api_version))
        .header(header::ACCEPT, "application/json")
        .body(Body::empty());
    let request = request.map_err(|error| SchemaError::Missing(because(&error)))?;
    let answer = fetch(client, request, LONGEST_DOCUMENT);
    let Ok(answer) = tokio::time::timeout(DEADLINE, answer).await else {
        let cause = format!("no answer within {} s", DEADLINE.as_secs());
        return Err(SchemaError::Unavailable(because(&cause)));
    };
    let (_, document) = answer.map_err(|error| match &error {
        RequestError::TooLong { .. } => SchemaError::TooLong(because(&error)),
        RequestError::Refused { code, status, .. }
            if code.is_client_error() && *code != StatusCode::TOO_MANY_REQUESTS =>
        {
            SchemaError::Missing(because(&status.message))
        }
        RequestError::Refused { .. } | RequestError::Transport(_) => {
            SchemaError::Unavailable(because(&error))
        }
    })?;
    Ok(document)
}

fn path_of(api_version: &str) -> String {
    match api_version.split_once('/') {
        Some((group, version)) => format!("/openapi/v3/apis/{}/{}", encode(group), encode(version)),
        None => format!("/openapi/v3/api/{}", encode(api_version)),
    }
}
