//! Reconciles that a test asks for, and what is requested meanwhile.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test whose objects or log cannot be read has failed"
)]

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{PATIENCE, Stage, asked};
use crate::{AuditEvent, eventually};

/// What the controller logs when a reconcile has ended.
#[derive(Debug, PartialEq, Eq)]
struct Reconciled {
    /// The version of the owner that it saw.
    version: u64,
    /// Whether it has a status to write later.
    held_back: bool,
}

/// One reconcile of an owner, as the controller logs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Whether something woke the owner; else only the run before asked for this one.
    pub woken: bool,
    /// How long it had to wait by design. Neither a slow machine nor a busy one makes it longer.
    pub pause: Duration,
    /// How it ended: the label `outcome` of `carto_reconcile_total`.
    pub end: String,
}

/// What gathers events waits this long at the most.
const AT_ONCE: Duration = Duration::from_secs(1);

/// What is tried again because an event came too early waits for less; what is looked at unasked, for this long or longer.
const UNASKED: Duration = Duration::from_secs(30);

impl Stage {
    /// A place in the log of the stage's own controller: how many lines there are.
    pub fn place_in_the_log(&self) -> usize {
        self.own_log().lines().count()
    }

    /// The reconciles of an owner that began after this place in the log and have ended, in their order.
    pub fn runs_since(&self, place: usize, owner: &str) -> Vec<Run> {
        let log = self.own_log();
        runs(
            log.lines().skip(place),
            &format!("{}/{owner}", self.namespace),
        )
    }

    /// Waits until a reconcile since this place in the log ended without an error, and asserts that it was an event that let
    /// the owner go on, and at once: no retry, and nothing that looks again now and then.
    ///
    /// The time that it took says little: it depends on the machine.
    pub async fn was_woken_since(&self, place: usize, owner: &str) {
        let what = format!("{owner} goes on without an error");
        let runs = eventually(&what, PATIENCE, async || {
            let mut runs = self.runs_since(place, owner);
            let is_error = |run: &Run| ["user_error", "infrastructure"].contains(&&*run.end);
            let Some(goes_on) = runs.iter().position(|run| !is_error(run)) else {
                return Err(runs);
            };
            runs.truncate(goes_on + 1);
            Ok(Some(runs))
        })
        .await;
        if let Err(why) = begun_by_an_event(&runs) {
            panic!("{owner}: {why}: {runs:?}");
        }
    }

    fn own_log(&self) -> String {
        let controller = self.controller.as_ref().unwrap();
        std::fs::read_to_string(controller.log()).unwrap()
    }

    /// Has the owner reconciled once more, and waits for the end of it: of the first reconcile that saw this touch, and of
    /// those after it that write a status which is held back. Counting reconciles would not do: another one may be on.
    pub async fn reconcile(&self, owner: &str) {
        let touch = self.touches.fetch_add(1, Ordering::Relaxed);
        let patch = json!({"metadata": {"annotations": {"touch": touch.to_string()}}});
        let touched = self
            .edited(self.cast.api_version, self.cast.owner_kind, owner, patch)
            .await;
        let version = number(&touched["metadata"]["resourceVersion"]).unwrap();
        eventually(
            &format!("{owner} is reconciled as of version {version}"),
            PATIENCE,
            async || {
                let last = self.last_reconciled(owner);
                match &last {
                    Some(last) if last.version >= version && !last.held_back => Ok(()),
                    _ => Err(last),
                }
            },
        )
        .await;
        self.idle().await;
    }

    /// Reconciles the owner some times once it has settled, and returns what was requested meanwhile, lists with an owner's
    /// token and discovery included.
    pub async fn requests_of_reconciles(&self, owner: &str, times: u32) -> Vec<String> {
        let while_reconciled =
            self.sent_while_reconciled(owner, times, Self::audited_with_discovery);
        asked::shown(&while_reconciled.await)
    }

    /// The same of all that the controller sends: also the lists that fill its caches, watches and events. Only its lease is
    /// left out, and a few watches that begin again.
    pub async fn traffic_of_reconciles(&self, owner: &str, times: u32) -> Vec<String> {
        let while_reconciled = self.sent_while_reconciled(owner, times, Self::traffic);
        asked::shown(&asked::beyond_allowance(while_reconciled.await))
    }

    async fn sent_while_reconciled(
        &self,
        owner: &str,
        times: u32,
        sent: impl Fn(&Self) -> Vec<AuditEvent>,
    ) -> Vec<AuditEvent> {
        assert!(times > 0, "nothing is proved by no reconcile");
        self.settle_by(owner, &sent).await;
        let before = sent(self).len();
        for _ in 0..times {
            self.reconcile(owner).await;
        }
        sent(self).split_off(before)
    }

    /// Reconciles the owner until that sends nothing for a while. What a test changed elsewhere must have arrived before:
    /// nothing here waits for it.
    pub async fn settle(&self, owner: &str) {
        self.settle_by(owner, &Self::audited_with_discovery).await;
    }

    async fn settle_by(&self, owner: &str, sent_so_far: &impl Fn(&Self) -> Vec<AuditEvent>) {
        let (mut sent, mut since) = (0, Instant::now());
        eventually(
            "reconciles send nothing for a while",
            PATIENCE,
            async || {
                self.reconcile(owner).await;
                let requests = asked::shown(&sent_so_far(self));
                if requests.len() != sent {
                    (sent, since) = (requests.len(), Instant::now());
                    return Err(requests.last().cloned());
                }
                // The status of another owner that moves is held back for 250 ms.
                Ok((since.elapsed() > Duration::from_millis(500)).then_some(()))
            },
        )
        .await;
    }

    /// The latest reconcile of an owner in the namespace by the stage's own controller.
    fn last_reconciled(&self, owner: &str) -> Option<Reconciled> {
        let log = std::fs::read_to_string(self.controller.as_ref()?.log()).unwrap();
        let kind = self.cast.owner_kind.to_lowercase();
        latest(&log, &kind, &format!("{}/{owner}", self.namespace))
    }
}

/// An event may come a moment before what it tells of is in force everywhere. Then the run that it wakes is tried again soon.
fn begun_by_an_event(runs: &[Run]) -> Result<(), &'static str> {
    let event = runs
        .iter()
        .position(|run| run.woken && run.pause <= AT_ONCE)
        .ok_or("nothing woke it at once")?;
    if runs[event..].iter().all(|run| run.pause < UNASKED) {
        Ok(())
    } else {
        Err("an event woke it, but a later look helped it")
    }
}

fn runs<'l>(log: impl Iterator<Item = &'l str>, key: &str) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut begun = None;
    for line in log.filter(|line| line.contains(key)) {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let span = line["span"].as_object();
        let is_within = || span.is_some_and(|span| span.values().any(|value| value == key));
        if line["message"] == "begins" && line["owner"] == key {
            let pause = line["pause_ms"].as_u64().unwrap();
            begun = Some((line["woken"] == true, Duration::from_millis(pause)));
        } else if line["message"] == "reconciled" && is_within() {
            let end = line["end"].as_str().unwrap().to_owned();
            runs.extend(begun.take().map(|(woken, pause)| Run { woken, pause, end }));
        }
    }
    runs
}

fn latest(log: &str, kind: &str, key: &str) -> Option<Reconciled> {
    let lines = log.lines().rev();
    lines
        .filter(|line| line.contains("\"reconciled\"") && line.contains(key))
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|line| line["message"] == "reconciled" && line["span"][kind] == key)
        .and_then(|line| {
            Some(Reconciled {
                version: number(&line["version"])?,
                held_back: line["held_back"].as_bool()?,
            })
        })
}

fn number(version: &Value) -> Option<u64> {
    version.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins(name: &str, woken: bool, pause_ms: u64) -> String {
        json!({"message": "begins", "owner": format!("dev/{name}"), "woken": woken, "pause_ms": pause_ms}).to_string()
    }

    fn ends(name: &str, end: &str) -> String {
        let span = json!({"name": "reconcile", "workload": format!("dev/{name}")});
        json!({"message": "reconciled", "version": "7", "held_back": false, "end": end, "span": span}).to_string()
    }

    fn run(woken: bool, pause_ms: u64, end: &str) -> Run {
        Run {
            woken,
            pause: Duration::from_millis(pause_ms),
            end: end.to_owned(),
        }
    }

    #[test]
    fn a_run_is_what_began_it_and_how_it_ended() {
        let log = [
            ends("app", "settled"),
            begins("app", true, 200),
            begins("app2", false, 44_000),
            ends("app2", "settled"),
            ends("app", "user_error"),
            "no JSON about dev/app".to_owned(),
            begins("app", false, 500),
            ends("app", "settled"),
            begins("app", true, 0),
        ];
        let expected = [run(true, 200, "user_error"), run(false, 500, "settled")];
        assert_eq!(runs(log.iter().map(|line| &**line), "dev/app"), expected);
    }

    #[test]
    fn only_what_an_event_began_counts_as_begun_by_one() {
        let (refused, settled) = ("user_error", "settled");
        for (runs, holds) in [
            (vec![run(true, 0, settled)], true),
            (
                vec![run(true, 200, refused), run(false, 600, settled)],
                true,
            ),
            (
                vec![run(false, 44_000, refused), run(true, 200, settled)],
                true,
            ),
            (vec![run(false, 44_000, settled)], false),
            (vec![run(true, 29_000, settled)], false),
            (
                vec![run(true, 0, refused), run(false, 44_000, settled)],
                false,
            ),
            (vec![run(false, 600, settled)], false),
        ] {
            assert_eq!(begun_by_an_event(&runs).is_ok(), holds, "{runs:?}");
        }
    }

    #[test]
    fn the_latest_whole_line_about_the_owner_counts() {
        let line = |name: &str, version: u8, held_back: bool| {
            let span = json!({"name": "reconcile", "workload": format!("dev/{name}")});
            json!({"message": "reconciled", "version": version.to_string(), "held_back": held_back, "span": span})
                .to_string()
        };
        let (first, other, latest_line) = (
            line("app", 7, false),
            line("app2", 8, false),
            line("app", 9, true),
        );
        let cut = &latest_line[..latest_line.len() - 3];
        let latest = |log: String| latest(&log, "workload", "dev/app");
        assert_eq!(latest(other.clone()), None);
        let seven = Reconciled {
            version: 7,
            held_back: false,
        };
        assert_eq!(
            latest(format!("{first}\n{other}\nno JSON\n{cut}")),
            Some(seven)
        );
        let nine = Reconciled {
            version: 9,
            held_back: true,
        };
        assert_eq!(
            latest(format!("{first}\n{latest_line}\n{other}\n")),
            Some(nine)
        );
    }
}
