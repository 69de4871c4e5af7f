//! From the bytes of a request to those of its answer, without a server.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use convention_protocol::{API_VERSION, KIND, PodConventionContext, has_more_values};
use serde_json::json;

use crate::change::Applied;
use crate::convention::{AnyConvention, Convention};
use crate::error::ConventionError;
use crate::images::Images;
use crate::template::Template;

/// The most values in a request, keys included: as many as the controller reads of the configuration
/// of an image. More would take many times their text in memory. A bill of materials is one.
const MOST_VALUES: usize = 200_000;
/// The longest text that is told of what a stranger sent.
const MOST_TOLD: usize = 1000;

/// An answer, to be sent by whatever server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status of HTTP: 200, 400 for what is no request, 500 if the convention could not be
    /// applied.
    pub status: u16,
    /// What the body is.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The convention was applied; these are its receipts.
    Applied(Vec<String>),
    /// The body is no request; the text says why.
    BadRequest(String),
    /// The convention could not be applied; the text says why.
    Failed(String),
    /// The convention panicked. The text is for the log only: it may hold anything.
    Panicked(String),
    /// There was no answer in time.
    TimedOut,
}

impl Outcome {
    /// A word for logs and metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Applied(_) => "applied",
            Self::BadRequest(_) => "bad_request",
            Self::Failed(_) => "failed",
            Self::Panicked(_) => "panicked",
            Self::TimedOut => "timed_out",
        }
    }
}

/// Answers the body of a request. Nothing of it is repeated: it may hold megabytes of bills of
/// materials.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use convention_webhook_sdk::{Applied, ConventionError, Images, Outcome, Template, answer};
///
/// async fn label(template: &mut Template, _: &Images) -> Result<Applied, ConventionError> {
///     template.set_label("a", "b");
///     Ok(Applied::from("label"))
/// }
///
/// let answered = answer(&label, br#"{"spec": {"template": {}}}"#).await;
/// assert_eq!((answered.status, answered.outcome), (200, Outcome::Applied(vec!["label".to_owned()])));
/// assert_eq!(answer(&label, b"<html>").await.status, 400);
/// # });
/// ```
pub async fn answer(convention: &impl Convention, body: &[u8]) -> Answer {
    match read(body) {
        Ok(request) => apply(convention, request).await,
        Err(refused) => refused,
    }
}

/// A request, or why it is none.
pub(crate) fn read(body: &[u8]) -> Result<PodConventionContext, Answer> {
    if has_more_values(body, MOST_VALUES) {
        let why = format!("it has more than {MOST_VALUES} values");
        return Err(Answer::bad_request(&why));
    }
    let request: PodConventionContext = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(error) => return Err(Answer::bad_request(&error.to_string())),
    };
    let is = |given: &str, wanted: &str| given.is_empty() || given == wanted;
    if !is(&request.api_version, API_VERSION) || !is(&request.kind, KIND) {
        return Err(Answer::bad_request(&format!(
            "it is a {:?} {:?}, not a {API_VERSION:?} {KIND:?}",
            shortened(&request.api_version, 100),
            shortened(&request.kind, 100)
        )));
    }
    Ok(request)
}

/// How many values a body has. One that has too many is refused, and so has none.
#[cfg(feature = "server")]
pub(crate) fn values(body: &[u8]) -> usize {
    convention_protocol::count_values(body, MOST_VALUES).unwrap_or(0)
}

pub(crate) fn shortened(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// Applies the convention to a request. A panic is an answer, too.
pub(crate) async fn apply(
    convention: &dyn AnyConvention,
    mut request: PodConventionContext,
) -> Answer {
    let images = Images::from(std::mem::take(&mut request.spec.image_config));
    let mut template = Template::from(std::mem::take(&mut request.spec.template));
    let applied = {
        let applying = convention.apply_any(&mut template, &images);
        without_panic(applying).await
    };
    match applied {
        Ok(Ok(applied)) => Answer::applied(&request, template, applied),
        Ok(Err(error)) => Answer::failed(&error),
        Err(panic) => Answer::panicked(panic_text(&*panic)),
    }
}

/// What a future comes to, or what it panicked with.
async fn without_panic<T>(future: impl Future<Output = T>) -> Result<T, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    std::future::poll_fn(move |context| {
        // What it leaves behind is its own template, which nobody looks at any more.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("not a text")
}

impl Answer {
    fn applied(request: &PodConventionContext, template: Template, applied: Applied) -> Self {
        let names = applied.into_names();
        let answer = request.answer(template.into(), names.clone());
        match serde_json::to_vec(&answer) {
            Ok(body) => Self {
                status: 200,
                content_type: "application/json",
                body,
                outcome: Outcome::Applied(names),
            },
            Err(error) => Self::failed(&ConventionError::from(error)),
        }
    }

    fn bad_request(why: &str) -> Self {
        // The reader of JSON repeats what it did not expect.
        let why = shortened(why, MOST_TOLD);
        let text = format!("the body is no PodConventionContext: {why}\n");
        Self {
            status: 400,
            content_type: "text/plain; charset=utf-8",
            body: text.into_bytes(),
            outcome: Outcome::BadRequest(why),
        }
    }

    fn failed(error: &ConventionError) -> Self {
        let outcome = Outcome::Failed(error.text().to_owned());
        Self::status(500, error.text(), outcome)
    }

    fn panicked(text: &str) -> Self {
        let told = "the convention failed unexpectedly; see the log of its server";
        Self::status(500, told, Outcome::Panicked(text.to_owned()))
    }

    #[cfg(feature = "server")]
    pub(crate) fn timed_out(limit: std::time::Duration) -> Self {
        let told = format!(
            "the convention did not answer within {} s",
            limit.as_secs_f64()
        );
        Self::status(504, &told, Outcome::TimedOut)
    }

    /// As an API server tells an error, so that its text reaches the condition of the PodIntent.
    fn status(code: u16, message: &str, outcome: Outcome) -> Self {
        let body = json!({
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "code": code,
        });
        Self {
            status: code,
            content_type: "application/json",
            body: body.to_string().into_bytes(),
            outcome,
        }
    }
}
