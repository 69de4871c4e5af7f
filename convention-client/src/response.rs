//! What a webhook answered.

use std::time::Duration;

use conventions::answer::{Answer, is_answer, read};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use serde_json::Value;
use url::Url;

use crate::error::CallError;
use crate::retry;
use crate::target::{Target, shown};
use crate::text::told;

/// How many bytes of an error are read to find out what it says.
const MOST_BYTES_OF_ERROR: usize = 64 << 10;
/// How long it is waited for them.
const ERROR_READ: Duration = Duration::from_secs(2);

/// Why a body was not read to its end.
enum Unread {
    TooLong,
    BrokeOff(hyper::Error),
}

/// The answer of a convention, or why it is none.
pub(crate) async fn answer(
    url: &Url,
    target: &Target,
    response: Response<Incoming>,
    most: usize,
) -> Result<Answer, CallError> {
    let url = shown(url);
    let (head, body) = response.into_parts();
    if !is_answer(head.status.as_u16()) {
        return Err(CallError::Status {
            code: head.status.as_u16(),
            said: said(&head.headers, body).await,
            retry_after: retry::after(head.status, &head.headers),
            url,
        });
    }
    if let Some(encoding) = encoding(&head.headers) {
        let cause = format!("the answer is encoded as {encoding:?}, which was not asked for");
        return Err(CallError::answer(&url, &cause));
    }
    let bytes = match whole(body, most).await {
        Ok(bytes) => bytes,
        Err(Unread::TooLong) => {
            let cause = format!("the answer has more than {most} bytes");
            return Err(CallError::answer(&url, &cause));
        }
        Err(Unread::BrokeOff(error)) => {
            return Err(crate::failure::of_answer(&url, target, &error));
        }
    };
    read(&bytes).map_err(|error| CallError::answer(&url, &error.to_string()))
}

/// How a body is encoded, if it is.
fn encoding(headers: &HeaderMap) -> Option<&str> {
    let encoding = headers
        .get(CONTENT_ENCODING)?
        .to_str()
        .unwrap_or("?")
        .trim();
    let is_plain = encoding.is_empty() || encoding.eq_ignore_ascii_case("identity");
    (!is_plain).then_some(encoding)
}

async fn whole(mut body: Incoming, most: usize) -> Result<Vec<u8>, Unread> {
    // What it says of its length is a reason to refuse it, none to make room.
    let announced = body.size_hint().lower();
    if usize::try_from(announced).is_ok_and(|announced| announced > most) {
        return Err(Unread::TooLong);
    }
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(Unread::BrokeOff)?.into_data() else {
            continue;
        };
        if data.len() > most - bytes.len() {
            return Err(Unread::TooLong);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// What an error says about itself. That it says nothing, or nothing in time, is no other error.
async fn said(headers: &HeaderMap, mut body: Incoming) -> String {
    let mut bytes = Vec::new();
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let room = MOST_BYTES_OF_ERROR - bytes.len();
            bytes.extend_from_slice(&data[..data.len().min(room)]);
            if bytes.len() == MOST_BYTES_OF_ERROR {
                break;
            }
        }
    };
    // What was read until then counts.
    let _ = tokio::time::timeout(ERROR_READ, reading).await;
    if let Some(message) = message(&bytes) {
        return told(&message);
    }
    if !is_plain_text(headers) || encoding(headers).is_some() {
        return String::new();
    }
    told(&String::from_utf8_lossy(&bytes))
}

/// The message of a Status.
fn message(bytes: &[u8]) -> Option<String> {
    let status: Value = serde_json::from_slice(bytes).ok()?;
    let message = status.get("message")?.as_str()?;
    Some(message.to_owned()).filter(|message| !message.trim().is_empty())
}

/// A body without type is text, as for the client of the API server.
fn is_plain_text(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(CONTENT_TYPE) else {
        return true;
    };
    let kind = kind.to_str().unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.is_empty() || essence.eq_ignore_ascii_case("text/plain")
}
