//! When a watch counts as refused, decided by what the API server answered and when.

use std::time::Duration;

use http::StatusCode;
use kube::core::Status;
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::{ANSWER_BEGINS, tells_of_etcd};
use crate::reflect::UNABLE;

/// Refusals for less than this are believed to be a moment's: an API server that starts answers 403 and 404 for a while.
pub(super) const MOMENT: Duration = Duration::from_secs(5);

/// A watch that fails does so again within this: the longest pause between two tries, and the time that an answer may take.
const NEXT_FAILURE: Duration = UNABLE.saturating_add(ANSWER_BEGINS);

/// What the answers so far say about one watch.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// Whether somebody relies on it.
    listed: bool,
    refused_since: Option<Instant>,
    /// When the last object of a listing arrived.
    progressed: Option<Instant>,
    failing: Option<Failing>,
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

impl Standing {
    /// Of a watch that takes the place of another one, whose users rely on it from the start.
    pub(crate) fn of_a_successor() -> Self {
        Self {
            listed: true,
            ..Self::default()
        }
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
        let status = answer(error).filter(|status| matches!(status.code, 403..=405))?;
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

    /// Notes an error that is no refusal: since when there was nothing but such. `None` when it says nothing of this kind:
    /// nobody answered, or the API server as a whole is in trouble, as it is when others are not heard either.
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

/// Whether an answer tells of what was asked for, and not of the API server or of us.
fn concerns_the_kind(status: &Status) -> bool {
    match status.code {
        // Our credentials; a version so old that the kind is listed anew; no time.
        401 | 410 | 504 => false,
        // The store of a kind says so while it cannot read what it holds, as without its conversion webhook. A server that is
        // asked too much says it in plain text, which has no such reason.
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
            let mut standing = Standing::default();
            let refused = standing.fails(&error, Instant::now());
            assert_eq!(refused.is_some(), is_refusal, "{error:?}");
            assert_eq!(standing.refused_since.is_some(), is_refusal, "{error:?}");
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
                let mut standing = Standing::default();
                let since = standing.fails_since(&error, Instant::now(), || hears_others);
                assert_eq!(since.is_some(), concerns_it && hears_others, "{error:?}");
            }
        }
    }

    #[test]
    fn errors_count_since_the_first_in_a_row() {
        let (mut standing, began) = (Standing::default(), Instant::now());
        let error = watcher::Error::WatchStartFailed(kube::Error::Api(status(500)));
        let mut now = began;
        let mut since = |standing: &mut Standing, passes: Duration| {
            now += passes;
            let since = standing.fails_since(&error, now, || true).unwrap();
            now.duration_since(since)
        };
        assert_eq!(since(&mut standing, Duration::ZERO), Duration::ZERO);
        assert_eq!(since(&mut standing, NEXT_FAILURE), NEXT_FAILURE);
        assert_eq!(since(&mut standing, UNABLE), NEXT_FAILURE + UNABLE);
        // It went on meanwhile, and nothing happened in it.
        let later = NEXT_FAILURE + Duration::from_secs(1);
        assert_eq!(since(&mut standing, later), Duration::ZERO);
        assert_eq!(since(&mut standing, UNABLE), UNABLE);
        // It was listed, or something happened in it.
        standing.shows(&Event::InitDone);
        assert_eq!(since(&mut standing, UNABLE), Duration::ZERO);
        // Then nobody answered.
        standing.fails_since(&watcher::Error::NoResourceVersion, began, || true);
        assert_eq!(since(&mut standing, UNABLE), Duration::ZERO);
    }

    /// Answers as letters: a listing (b)egins, has a (p)age, is comp(l)ete; an object (c)hanges, (g)oes; an (i)nterruption;
    /// a (r)efusal. `-` is a moment that passes, `~` is not quite one. Of each: `+` the watch goes on, `?` it is refused for a
    /// moment, `!` it counts as refused, `.` says nothing.
    fn said(mut standing: Standing, answers: &str) -> String {
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
                Ok(event) if standing.shows(&event) => '+',
                Ok(_) => '.',
                Err(error) => match standing.fails(&error, now) {
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
            assert_eq!(said(Standing::default(), answers), expected, "{answers}");
        }
        for (answers, expected) in [("r-r", "?!"), ("bpr~r", "..??"), ("br-lr", ".?+?")] {
            let successor = Standing::of_a_successor();
            assert_eq!(said(successor, answers), expected, "{answers}");
        }
    }
}
