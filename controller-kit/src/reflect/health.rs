//! How a watch fares: whether it is listed, refused, or answered with nothing but errors, decided
//! by what the API server answered and when; and what of that the log was told.

use std::collections::BTreeSet;
use std::time::Duration;

use http::StatusCode;
use kube::core::Status;
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::backoff::UNABLE;
use crate::cluster::{ANSWER_BEGINS, chain, tells_of_etcd};

/// Refusals for less than this are believed to be a moment's: an API server that starts answers 403 and 404 for a while.
pub(super) const MOMENT: Duration = Duration::from_secs(5);

/// A watch that fails does so again within this: the longest pause between two tries, and the time
/// that an answer may take.
const NEXT_FAILURE: Duration = UNABLE.saturating_add(ANSWER_BEGINS);

/// The most texts that are remembered of one watch; a text may hold a time or a number of its own.
const MOST_LOGGED: usize = 16;

/// What the answers so far say about one watch.
#[derive(Debug, Default)]
pub(crate) struct WatchHealth {
    /// Whether somebody relies on it.
    listed: bool,
    refused_since: Option<Instant>,
    /// When the last object of a listing arrived.
    progressed: Option<Instant>,
    failing: Option<Failing>,
    /// What it was refused with last.
    refused: Option<String>,
    /// What the watch of the kind's definition was refused with: whether there is such a kind is not
    /// known then.
    definition_refused: Option<String>,
    /// What the log was told. Once is enough: it is tried again and again.
    logged: BTreeSet<String>,
}

/// Tries in a row that the API server answered with errors.
#[derive(Debug)]
struct Failing {
    since: Instant,
    last: Instant,
}

/// An answer that refuses a watch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused<'a> {
    /// What the API server says.
    pub(crate) why: &'a str,
    /// Whether the watch counts as refused: nobody relied on it yet, or this is no longer a moment's refusal.
    pub(crate) counts: bool,
}

impl WatchHealth {
    /// Of a watch that takes the place of another one, whose users rely on it from the start.
    pub(crate) fn of_a_successor() -> Self {
        Self {
            listed: true,
            ..Self::default()
        }
    }

    /// Of a watch that takes the place of a refused one: it is refused until the contrary is known.
    pub(super) fn after(refused: &Self) -> Self {
        Self {
            refused: refused.refused.clone(),
            ..Self::default()
        }
    }

    /// What the API server says, while it refuses; as [`Self::note`] was told.
    pub(super) fn refused(&self) -> Option<&str> {
        let refused = self.refused.as_deref();
        refused.or(self.definition_refused.as_deref())
    }

    /// Notes what came of the watch of the kind's definition.
    pub(super) fn note_definition(&mut self, event: &watcher::Result<Event<Value>>) {
        match event {
            Ok(Event::Init | Event::InitApply(_)) => {}
            Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_)) => {
                self.definition_refused = None;
            }
            Err(error) => {
                let status = answer(error).filter(|status| is_refusal(status));
                if let Some(status) = status {
                    self.definition_refused = Some(status.message.clone());
                }
            }
        }
    }

    /// Notes what came of a watch; whether it is refused now, for another reason, or no longer.
    pub(super) fn note(&mut self, event: &watcher::Result<Event<Value>>) -> bool {
        match event {
            Ok(event) => self.shows(event) && self.refused.take().is_some(),
            Err(error) => {
                let refused = self.fails(error, Instant::now());
                let counts = refused.filter(|refused| refused.counts);
                counts.is_some_and(|Refused { why, .. }| {
                    let before = self.refused.replace(why.to_owned());
                    before.as_deref() != Some(why)
                })
            }
        }
    }

    /// A kind that is never listed leaves the process idle and not ready: the log is where its
    /// operator looks then.
    pub(super) fn log(&mut self, error: &watcher::Error) {
        let text = chain(error);
        match advice(error) {
            Some(advice) if self.is_news(&text) => warn!(error = %text, "{advice}"),
            _ => debug!(error = %text, "watch interrupted"),
        }
    }

    /// Whether this was not logged yet.
    pub(crate) fn is_news(&mut self, text: &str) -> bool {
        self.logged.len() < MOST_LOGGED && self.logged.insert(text.to_owned())
    }

    /// It came about; the next trouble is another one.
    pub(crate) fn forget_logged(&mut self) {
        self.logged.clear();
    }

    /// When a listing got on last, though it may have failed since.
    pub(crate) fn progressed(&self) -> Option<Instant> {
        self.progressed
    }

    /// Notes an event; whether it shows that the watch goes on. A listing that has just begun may yet be refused.
    pub(crate) fn shows(&mut self, event: &Event<Value>) -> bool {
        match event {
            Event::Init => false,
            Event::InitApply(_) => {
                self.progressed = Some(Instant::now());
                false
            }
            Event::InitDone | Event::Apply(_) | Event::Delete(_) => {
                self.listed = true;
                self.refused_since = None;
                self.failing = None;
                true
            }
        }
    }

    /// Notes an error; what it says if it is a refusal that a user can mend. Any other heals by the watcher's back-off.
    pub(crate) fn fails<'a>(
        &mut self,
        error: &'a watcher::Error,
        now: Instant,
    ) -> Option<Refused<'a>> {
        let status = answer(error).filter(|status| is_refusal(status))?;
        let since = *self.refused_since.get_or_insert(now);
        let is_momentary = now.duration_since(since) < MOMENT;
        Some(Refused {
            why: &status.message,
            counts: !self.listed || !is_momentary,
        })
    }

    /// Whether somebody relies on what was listed before.
    pub(crate) fn is_relied_upon(&self) -> bool {
        self.listed
    }

    /// Notes an error that is no refusal: since when there was nothing but such. `None` when it
    /// says nothing of this kind: nobody answered, or the API server as a whole is in trouble, as
    /// it is when others are not heard either.
    pub(crate) fn fails_since(
        &mut self,
        error: &watcher::Error,
        now: Instant,
        hears_others: impl Fn() -> bool,
    ) -> Option<Instant> {
        let before = self.failing.take();
        answer(error).filter(|status| concerns_the_kind(status) && hears_others())?;
        // A watch that goes on says nothing of it.
        let row = before.filter(|before| now.duration_since(before.last) <= NEXT_FAILURE);
        let since = row.map_or(now, |row| row.since);
        self.failing = Some(Failing { since, last: now });
        Some(since)
    }
}

/// Whether the API server says that this cannot be had, and would say so again.
pub(super) fn is_refusal(status: &Status) -> bool {
    matches!(status.code, 403..=405)
}

/// Whether an answer tells of what was asked for, and not of the API server or of us.
fn concerns_the_kind(status: &Status) -> bool {
    match status.code {
        // Our credentials; a version so old that the kind is listed anew; no time.
        401 | 410 | 504 => false,
        // The store of a kind says so while it cannot read what it holds, as without its conversion
        // webhook. A server that is asked too much says it in plain text, which has no such reason.
        429 => status.reason == "TooManyRequests",
        code => !StatusCode::from_u16(code).is_ok_and(|code| tells_of_etcd(code, status)),
    }
}

/// What the API server said, if it is the API server that ended the watch.
pub(crate) fn answer(error: &watcher::Error) -> Option<&Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => None,
    }
}

/// What the operator can do about it; nothing about what passes by itself.
fn advice(error: &watcher::Error) -> Option<&'static str> {
    let code = answer(error).map(|status| status.code);
    match (code, error) {
        (Some(403), _) => {
            Some("a kind cannot be watched: grant the controller get, list and watch on it")
        }
        (Some(401), _) => Some(
            "the API server does not accept our credentials: see the kubeconfig, or the pod's service account",
        ),
        (Some(404), _) => Some(
            "a kind is not served: ours come with the CRDs (kubectl apply --server-side -f deploy/crds)",
        ),
        (None, watcher::Error::InitialListFailed(_)) => Some(
            "the API server does not answer: see that it runs at the address told at the start",
        ),
        (Some(_), watcher::Error::InitialListFailed(_)) => Some(
            "a kind cannot be listed: see what the API server says; it is tried again ever less often",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(code: u16) -> Box<Status> {
        Box::new(Status::failure("no", "Reason").with_code(code))
    }

    fn refusal() -> watcher::Error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status(403)))
    }

    #[test]
    fn only_what_a_user_can_mend_is_a_refusal() {
        use watcher::Error::{
            InitialListFailed, NoResourceVersion, WatchError, WatchFailed, WatchStartFailed,
        };
        let api = |code| kube::Error::Api(status(code));
        let silent = || kube::Error::LinesCodecMaxLineLengthExceeded;
        for (error, is_refusal) in [
            (InitialListFailed(api(403)), true),
            (WatchStartFailed(api(403)), true),
            (WatchFailed(api(403)), true),
            (WatchError(status(403)), true),
            (WatchStartFailed(api(404)), true),
            (WatchStartFailed(api(405)), true),
            (WatchStartFailed(api(401)), false),
            (WatchError(status(410)), false),
            (InitialListFailed(api(429)), false),
            (InitialListFailed(api(503)), false),
            (InitialListFailed(silent()), false),
            (WatchFailed(silent()), false),
            (NoResourceVersion, false),
        ] {
            let mut health = WatchHealth::default();
            let refused = health.fails(&error, Instant::now());
            assert_eq!(refused.is_some(), is_refusal, "{error:?}");
            assert_eq!(health.refused_since.is_some(), is_refusal, "{error:?}");
        }
    }

    #[test]
    fn what_the_api_server_as_a_whole_suffers_from_says_nothing_of_a_kind() {
        let with = |code: u16, reason: &str, message: &str| {
            let status = Status::failure(message, reason).with_code(code);
            watcher::Error::InitialListFailed(kube::Error::Api(Box::new(status)))
        };
        let silent = kube::Error::LinesCodecMaxLineLengthExceeded;
        let broken = "conversion webhook for test.run/v1, Kind=Test failed";
        for (error, concerns_it) in [
            (with(500, "InternalError", broken), true),
            (
                with(503, "ServiceUnavailable", "error trying to reach service"),
                true,
            ),
            (
                with(429, "TooManyRequests", "storage is (re)initializing"),
                true,
            ),
            // As kube's client makes it of plain text.
            (
                with(429, "Failed to parse error data", "Too many requests"),
                false,
            ),
            (
                with(500, "InternalError", "etcdserver: request timed out"),
                false,
            ),
            (with(504, "Timeout", "no time"), false),
            (with(401, "Unauthorized", "who"), false),
            (with(410, "Expired", "too old"), false),
            (watcher::Error::WatchFailed(silent), false),
            (watcher::Error::NoResourceVersion, false),
        ] {
            for hears_others in [true, false] {
                let mut health = WatchHealth::default();
                let since = health.fails_since(&error, Instant::now(), || hears_others);
                assert_eq!(since.is_some(), concerns_it && hears_others, "{error:?}");
            }
        }
    }

    #[test]
    fn errors_count_since_the_first_in_a_row() {
        let (mut health, began) = (WatchHealth::default(), Instant::now());
        let error = watcher::Error::WatchStartFailed(kube::Error::Api(status(500)));
        let mut now = began;
        let mut since = |health: &mut WatchHealth, passes: Duration| {
            now += passes;
            let since = health.fails_since(&error, now, || true).unwrap();
            now.duration_since(since)
        };
        assert_eq!(since(&mut health, Duration::ZERO), Duration::ZERO);
        assert_eq!(since(&mut health, NEXT_FAILURE), NEXT_FAILURE);
        assert_eq!(since(&mut health, UNABLE), NEXT_FAILURE + UNABLE);
        // It went on meanwhile, and nothing happened in it.
        let later = NEXT_FAILURE + Duration::from_secs(1);
        assert_eq!(since(&mut health, later), Duration::ZERO);
        assert_eq!(since(&mut health, UNABLE), UNABLE);
        // It was listed, or something happened in it.
        health.shows(&Event::InitDone);
        assert_eq!(since(&mut health, UNABLE), Duration::ZERO);
        // Then nobody answered.
        health.fails_since(&watcher::Error::NoResourceVersion, began, || true);
        assert_eq!(since(&mut health, UNABLE), Duration::ZERO);
    }

    /// Answers as letters: a listing (b)egins, has a (p)age, is comp(l)ete; an object (c)hanges, (g)oes; an (i)nterruption;
    /// a (r)efusal. `-` is a moment that passes, `~` is not quite one. Of each: `+` the watch goes on, `?` it is refused for a
    /// moment, `!` it counts as refused, `.` says nothing.
    fn said(mut health: WatchHealth, answers: &str) -> String {
        let (mut now, mut said) = (Instant::now(), String::new());
        for answer in answers.chars() {
            let event = match answer {
                '-' => {
                    now += MOMENT;
                    continue;
                }
                '~' => {
                    now += MOMENT.saturating_sub(Duration::from_millis(1));
                    continue;
                }
                'b' => Ok(Event::Init),
                'p' => Ok(Event::InitApply(json!({}))),
                'l' => Ok(Event::InitDone),
                'c' => Ok(Event::Apply(json!({}))),
                'g' => Ok(Event::Delete(json!({}))),
                'i' => Err(watcher::Error::NoResourceVersion),
                _ => Err(refusal()),
            };
            said.push(match event {
                Ok(event) if health.shows(&event) => '+',
                Ok(_) => '.',
                Err(error) => match health.fails(&error, now) {
                    Some(refused) if refused.counts => '!',
                    Some(_) => '?',
                    None => '.',
                },
            });
        }
        said
    }

    #[test]
    fn a_watch_that_somebody_relies_on_is_refused_after_a_moment() {
        for (answers, expected) in [
            ("rr", "!!"),
            ("bpr", "..!"),
            ("lr~r", "+??"),
            ("l-r", "+?"),
            ("lr-r", "+?!"),
            ("lr-rr", "+?!!"),
            // Another listing that has only begun changes nothing; whatever shows that the watch goes on begins anew.
            ("lr-bpr", "+?..!"),
            ("lr-lr", "+?+?"),
            ("lr-cr", "+?+?"),
            ("lr-gr", "+?+?"),
            ("lr-rcr-r", "+?!+?!"),
            ("lr-ir", "+?.!"),
            ("li-r", "+.?"),
        ] {
            assert_eq!(said(WatchHealth::default(), answers), expected, "{answers}");
        }
        for (answers, expected) in [("r-r", "?!"), ("bpr~r", "..??"), ("br-lr", ".?+?")] {
            let successor = WatchHealth::of_a_successor();
            assert_eq!(said(successor, answers), expected, "{answers}");
        }
    }

    #[test]
    fn what_an_operator_can_mend_is_told_and_what_passes_by_itself_is_not() {
        let answered = |code: u16| {
            kube::Error::Api(Box::new(kube::core::Status {
                code,
                ..kube::core::Status::default()
            }))
        };
        for (code, word) in [
            (401, "credentials"),
            (403, "grant"),
            (404, "deploy/crds"),
            (429, "ever less often"),
            (500, "ever less often"),
        ] {
            let told = advice(&watcher::Error::InitialListFailed(answered(code))).unwrap();
            assert!(told.contains(word), "{code}: {told}");
        }
        let silent = || kube::Error::LinesCodecMaxLineLengthExceeded;
        assert!(advice(&watcher::Error::InitialListFailed(silent())).is_some());
        for passing in [
            watcher::Error::WatchFailed(silent()),
            watcher::Error::WatchFailed(answered(410)),
        ] {
            assert_eq!(advice(&passing), None, "{passing}");
        }
    }

    #[test]
    fn each_text_is_told_once_until_the_watch_has_come_about() {
        let mut health = WatchHealth::default();
        let told = |health: &mut WatchHealth, texts: &[&str]| -> Vec<bool> {
            texts.iter().map(|text| health.is_news(text)).collect()
        };
        assert_eq!(
            told(&mut health, &["a", "a", "b", "a", "b"]),
            [true, false, true, false, false]
        );
        health.forget_logged();
        assert_eq!(told(&mut health, &["b", "b"]), [true, false]);
        let numbered: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let numbered: Vec<&str> = numbered.iter().map(String::as_str).collect();
        let news = told(&mut health, &numbered)
            .into_iter()
            .filter(|news| *news);
        assert!(news.count() < MOST_LOGGED);
    }
}
