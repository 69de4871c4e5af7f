//! Reconciles that a test asks for, and what is requested meanwhile.
#![expect(
    clippy::unwrap_used,
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

impl Stage {
    /// Has the owner reconciled once more, and waits for the end of it: of the first reconcile that saw this touch, and of
    /// those after it that write a status which is held back. Counting reconciles would not do: another one may be on.
    pub async fn reconcile(&self, owner: &str) {
        let touch = self.touches.fetch_add(1, Ordering::Relaxed);
        let patch = json!({"metadata": {"annotations": {"touch": touch.to_string()}}});
        let touched = self
            .edited("carto.run/v1alpha1", self.cast.owner_kind, owner, patch)
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
