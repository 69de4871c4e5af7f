//! The time of day as the API server has it.
//!
//! It is compared with times that clocks of the cluster have written: when a token expires, when a run failed, from when on a
//! certificate counts. A node whose clock is wrong, or is set while we run, would ask for a token before each write, serve a
//! certificate that does not count yet, and never try a failed run again. So the clock of the machine is read once; from then
//! on time passes by the monotonic clock, and the answers of the API server, which say when they were given, put it right.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response, header};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{Layer, Service};
use tracing::warn;

/// Time of day.
pub(crate) type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The clocks of several API servers are this close, and so is ours if nothing is wrong with it.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(10);
/// Answers name whole seconds.
const SECOND: SignedDuration = SignedDuration::from_secs(1);
/// A correction is logged no more often than this.
const WARN_EVERY: Duration = Duration::from_mins(1);

/// Whether the API server itself answers at this path: the core group, Leases, and the groups whose kinds our CRDs define.
/// What it passes on to an aggregated server carries the time of that one.
fn is_its_own(path: &str) -> bool {
    let group = path
        .strip_prefix("/apis/")
        .and_then(|it| it.split_once('/'));
    let is_defined = |group: &str| {
        let above = group.strip_suffix(api_types::GROUP);
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    };
    path.starts_with("/api/")
        || group.is_some_and(|(group, _)| group == "coordination.k8s.io" || is_defined(group))
}

/// The time of day. Shared by all that a process does.
pub(crate) struct TimeOfDay(Mutex<Known>);

/// That it was `at` at the moment `since`.
struct Known {
    at: Timestamp,
    since: Instant,
    warned: Option<Instant>,
}

impl TimeOfDay {
    /// As the machine has it, until the API server says otherwise.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the clock enters"
    )]
    pub(crate) fn of_machine() -> Self {
        Self::starting(Timestamp::now())
    }

    fn starting(at: Timestamp) -> Self {
        Self(Mutex::new(Known {
            at,
            since: Instant::now(),
            warned: None,
        }))
    }

    /// The time of day.
    pub(crate) fn now(&self) -> Timestamp {
        self.0.lock().at(Instant::now())
    }

    /// An answer to what was sent and received at these moments says that it was given at `date`, seconds cut off.
    ///
    /// However long it was under way: only what cannot be true by our time corrects it.
    fn answered(&self, date: Timestamp, sent: Instant, received: Instant) {
        let mut known = self.0.lock();
        let behind = date.duration_since(known.at(received));
        let ahead = known.at(sent).duration_since(date).saturating_sub(SECOND);
        if behind <= TOLERANCE && ahead <= TOLERANCE {
            return;
        }
        known.at = date;
        known.since = received;
        let is_warned = known
            .warned
            .is_some_and(|warned| received.saturating_duration_since(warned) < WARN_EVERY);
        if !is_warned {
            known.warned = Some(received);
            let seconds = behind.max(ahead).as_secs();
            warn!(
                seconds,
                ahead = ahead > TOLERANCE,
                "the clock of this machine was not that of the API server, whose time is used from now on"
            );
        }
    }
}

impl Known {
    fn at(&self, moment: Instant) -> Timestamp {
        let at = match moment.checked_duration_since(self.since) {
            Some(passed) => self.at.saturating_add(passed),
            None => self.at.saturating_sub(self.since.duration_since(moment)),
        };
        // Only calendar units are refused.
        at.unwrap_or(self.at)
    }
}

/// Has the time read from the answers that a client gets.
#[derive(Clone)]
pub(crate) struct ReadTime(pub(crate) Arc<TimeOfDay>);

impl<S> Layer<S> for ReadTime {
    type Service = Reading<S>;

    fn layer(&self, inner: S) -> Reading<S> {
        Reading {
            inner,
            time: self.0.clone(),
        }
    }
}

/// Sends requests and reads the time from the answers.
#[derive(Clone)]
pub(crate) struct Reading<S> {
    inner: S,
    time: Arc<TimeOfDay>,
}

impl<S, A, B> Service<Request<A>> for Reading<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let path = request.uri().path();
        let time = is_its_own(path).then(|| self.time.clone());
        let sent = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            if let (Some(time), Some(date)) = (time, date_of(&answer)) {
                time.answered(date, sent, Instant::now());
            }
            Ok(answer)
        })
    }
}

/// When an answer was given. Those that are none of success may come from something before the API server.
fn date_of<B>(answer: &Response<B>) -> Option<Timestamp> {
    if !answer.status().is_success() {
        return None;
    }
    let date = answer.headers().get(header::DATE)?;
    DateTimeParser::new().parse_timestamp(date.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::StatusCode;
    use tower::{ServiceExt as _, service_fn};

    use super::*;

    /// Sunday, 22 November 2026, 11:00:00.
    const START: i64 = 1_795_345_200;
    const MINUTE: Duration = Duration::from_mins(1);

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(START + second).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn time_passes_whatever_becomes_of_the_clock_of_the_machine() {
        let time = TimeOfDay::starting(second(0));
        tokio::time::advance(MINUTE).await;
        assert_eq!(time.now(), second(60));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_cannot_have_been_given_then_puts_it_right() {
        for (answered, after) in [
            // What is known is kept, to the fraction of a second.
            (60, 60),
            (59, 60),
            (61, 60),
            (70, 60),
            (49, 60),
            // The machine is behind, or ahead.
            (71, 71),
            (48, 48),
            (60 + 24 * 3600, 60 + 24 * 3600),
            (60 - 90 * 60, 60 - 90 * 60),
        ] {
            let time = TimeOfDay::starting(second(0));
            tokio::time::advance(MINUTE).await;
            let now = Instant::now();
            time.answered(second(answered), now, now);
            assert_eq!(time.now(), second(after), "{answered}");
            tokio::time::advance(MINUTE).await;
            assert_eq!(time.now(), second(after + 60), "{answered}");
        }
    }

    /// It may have been given at any moment since the request was sent, and have been held up for the rest of the time.
    #[tokio::test(start_paused = true)]
    async fn an_answer_that_was_long_under_way_says_little() {
        let time = TimeOfDay::starting(second(0));
        let sent = Instant::now();
        tokio::time::advance(5 * MINUTE).await;
        for answered in [-10, 0, 150, 300, 310] {
            time.answered(second(answered), sent, Instant::now());
            assert_eq!(time.now(), second(300), "{answered}");
        }
        time.answered(second(-12), sent, Instant::now());
        assert_eq!(time.now(), second(-12));
    }

    /// What the time is after an answer to this path, with this status and date.
    async fn after(path: &str, status: StatusCode, date: &'static str) -> Timestamp {
        let time = Arc::new(TimeOfDay::starting(second(0)));
        let answers = service_fn(move |_: Request<()>| async move {
            let answer = Response::builder().status(status).header("date", date);
            Ok::<_, Infallible>(answer.body(()).unwrap())
        });
        let client = ReadTime(time.clone()).layer(answers);
        let request = Request::get(path).body(()).unwrap();
        client.oneshot(request).await.unwrap();
        time.now()
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_the_api_server_itself_answers_counts() {
        const NOON: &str = "Sun, 22 Nov 2026 12:00:00 GMT";
        let core = "/api/v1/namespaces/dev/configmaps/app";
        assert_eq!(after(core, StatusCode::OK, NOON).await, second(3600));
        for ours in [
            "/apis/carto.run/v1alpha1/workloads",
            "/apis/conventions.carto.run/v1alpha1/podintents",
        ] {
            assert_eq!(after(ours, StatusCode::CREATED, NOON).await, second(3600));
        }
        for (path, status, date) in [
            ("/apis/notcarto.run/v1/pods", StatusCode::OK, NOON),
            ("/apis/metrics.k8s.io/v1beta1/pods", StatusCode::OK, NOON),
            (core, StatusCode::BAD_GATEWAY, NOON),
            (core, StatusCode::OK, "noon"),
        ] {
            assert_eq!(after(path, status, date).await, second(0), "{path} {date}");
        }
    }
}
