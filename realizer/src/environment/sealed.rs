//! The text of the annotation and of the record in the status: in clear, or sealed if the revision came from a Secret.
//!
//! Who may read the environment's object, or the owner, need not be able to read the Secret. What is needed to go on with an arrival
//! (to tell whether it is the one that comes in, and to hand it on) is readable for the controllers alone.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Arrival;
use crate::StatusKey;
use crate::values::canonical;

#[derive(Serialize, Deserialize)]
struct Sealed {
    arrival: u64,
    started: Time,
    /// Revision, url and digest of the rendering; the digest would confirm a guess.
    #[serde(rename = "sealed")]
    hidden: String,
}

/// None if there has to be a key and is none.
pub(super) fn write(arrival: &Arrival, key: &StatusKey) -> Option<String> {
    if !arrival.secret {
        // Nothing in it can fail to serialise; the fallback keeps the function total.
        return Some(serde_json::to_string(arrival).unwrap_or_default());
    }
    let hidden = json!([arrival.revision, arrival.url, arrival.rendered]);
    let sealed = Sealed {
        arrival: arrival.number,
        started: arrival.started.clone(),
        hidden: key.seal(&hidden.to_string())?,
    };
    Some(serde_json::to_string(&sealed).unwrap_or_default())
}

/// None if it is no arrival, or sealed with another key.
pub(super) fn read(text: &str, key: &StatusKey) -> Option<Arrival> {
    let Ok(sealed) = serde_json::from_str::<Sealed>(text) else {
        return serde_json::from_str(text).ok();
    };
    let hidden = key.open(&sealed.hidden)?;
    let (revision, url, rendered): (Value, Value, String) = serde_json::from_str(&hidden).ok()?;
    Some(Arrival {
        number: sealed.arrival,
        revision,
        url,
        rendered,
        started: sealed.started,
        secret: true,
    })
}

/// Whether a text is one that was not sealed.
pub(super) fn is_clear(text: &str) -> bool {
    serde_json::from_str::<Arrival>(text).is_ok()
}

/// Digest of what an object says, whatever that is: under the key, or of what must not be kept from anybody.
pub(super) fn digest(said: &str, key: &StatusKey) -> String {
    key.digest("annotation", said).unwrap_or_else(|| {
        let in_clear = serde_json::from_str::<Arrival>(said).ok();
        // A former version wrote values of Secrets in clear.
        match in_clear.filter(|arrival| arrival.secret) {
            Some(arrival) => canonical::digest(&json!([arrival.number, arrival.started])),
            None => canonical::digest(&json!(said)),
        }
    })
}
