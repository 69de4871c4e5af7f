//! When a watch counts as refused, decided by what the API server answered and when.

use std::time::Duration;

use kube::core::Status;
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use tokio::time::Instant;

/// Refusals for less than this are believed to be a moment's: an API server that starts answers 403 and 404 for a while.
pub(super) const MOMENT: Duration = Duration::from_secs(5);

/// What the answers so far say about one watch.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// Whether somebody relies on it.
    listed: bool,
    refused_since: Option<Instant>,
    /// When the last object of a listing arrived.
    progressed: Option<Instant>,
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
