//! How often a rendering is followed that changes because of our own status writes alone
//! (docs/behaviour/context.md#own-status).
//!
//! Such a template makes a circle: its object changes the status, the status its rendering, and the rendering the object;
//! where it is immutable, each round starts one more run. One such change may be meant and is followed at once. The
//! following ones wait ever longer, and somebody is told.

use std::time::Duration;

use api_types::{EventReason, labels};
use realizer::Submission;
use tokio::time::Instant;

use super::Applicant;
use super::backoff::{KeyedBackoff, Repeatable, Spacing, hash_of};

const SPACING: Spacing = Spacing {
    // A template that publishes the status sees it settle within this.
    first: Duration::from_secs(1),
    // It goes on publishing, and within the time in which we look again at anything.
    longest: Duration::from_mins(1),
    // Longer than most runs take: a circle that goes through one is slow by itself, but it is one.
    calm: Duration::from_mins(10),
};

/// From this many changes in a row on somebody is told.
const TOLD_FROM: u32 = 2;

/// The latest writes of templates that may see our status writes, by step; the note is the rendering. All others have no
/// basis, and nothing is remembered of them.
#[derive(Debug)]
pub(super) struct RenderLoopGuard(KeyedBackoff<u64>);

impl Default for RenderLoopGuard {
    fn default() -> Self {
        Self(KeyedBackoff::new(SPACING))
    }
}

impl RenderLoopGuard {
    /// How long this rendering has to wait because nothing but our own status writes made it another one.
    pub(super) fn held_back(
        &self,
        owner: &str,
        submission: &Submission,
        now: Instant,
    ) -> Option<Duration> {
        let (wait, rendering) = self.0.last(write_of(owner, submission)?, now)?;
        let is_another = rendering != hash_of(&submission.digest);
        (is_another && !wait.is_zero()).then_some(wait)
    }

    /// Records a write; returns what to tell when this was not the first change in a row.
    pub(super) fn written(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        now: Instant,
    ) -> Option<(EventReason, String)> {
        let changes = self.record(applicant.uid, submission, now);
        (changes >= TOLD_FROM).then(|| {
            let message = warning(&applicant.kind.to_lowercase(), submission);
            (EventReason::RenderingUnstable, message)
        })
    }

    /// How often in a row the rendering became another one; one that was written again is none.
    fn record(&self, owner: &str, submission: &Submission, now: Instant) -> u32 {
        let Some(write) = write_of(owner, submission) else {
            return 0;
        };
        let rendering = hash_of(&submission.digest);
        match self.0.last(write, now) {
            Some((_, last)) if last == rendering => 0,
            _ => self.0.written(write, now, |_| rendering),
        }
    }
}

fn write_of(owner: &str, submission: &Submission) -> Option<Repeatable> {
    let basis = submission.basis.as_ref()?;
    Some(Repeatable::new(&(owner, &submission.resource), basis))
}

fn warning(owner: &str, submission: &Submission) -> String {
    let held = &submission.object["metadata"]["labels"];
    let label = |key: &str| held[key].as_str().unwrap_or_default();
    let template = match label(labels::RUN_TEMPLATE_NAME) {
        "" => [
            label(labels::TEMPLATE_KIND),
            label(labels::CLUSTER_TEMPLATE_NAME),
        ],
        name => ["ClusterRunTemplate", name],
    };
    format!(
        "[{}] template [{}] renders something else after each status of ours, because it reads the status or the \
         resourceVersion of the {owner}; its object is written ever less often; read the value from an input instead",
        submission.resource,
        template.join("/"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn submission(basis: Option<&str>, digest: &str) -> Submission {
        let labels = BTreeMap::from(
            [
                (labels::TEMPLATE_KIND, "ClusterTemplate"),
                (labels::CLUSTER_TEMPLATE_NAME, "t"),
            ]
            .map(|(key, value)| (key, value.parse().unwrap())),
        );
        Submission {
            resource: "step".into(),
            object: json!({"metadata": {"labels": labels}}),
            digest: digest.to_owned(),
            name_seed: None,
            basis: basis.map(str::to_owned),
            lifecycle: realizer::Lifecycle::Mutable,
            family: labels,
            reads: Vec::new().into(),
            precondition: realizer::Precondition::None,
            recorded: realizer::Recorded::default(),
            adopt: false,
            refuses_foreign_fields: false,
            asks_whose_values: false,
        }
    }

    /// Writes each rendering as soon as it may be; returns how long each waited, in seconds, and the changes in a row.
    fn follow(
        render_loops: &RenderLoopGuard,
        renderings: &[(Option<&str>, &str)],
    ) -> Vec<(u64, u32)> {
        let mut now = Instant::now();
        let mut write = |(basis, digest): &(Option<&str>, &str)| {
            let submission = submission(*basis, digest);
            let wait = render_loops.held_back("uid", &submission, now);
            now += wait.unwrap_or_default();
            assert_eq!(render_loops.held_back("uid", &submission, now), None);
            let changes = render_loops.record("uid", &submission, now);
            (wait.unwrap_or_default().as_secs(), changes)
        };
        renderings.iter().map(&mut write).collect()
    }

    #[test]
    fn the_first_change_is_followed_at_once_and_later_ones_ever_less_often() {
        let renderings: Vec<String> = (0..9).map(|round| round.to_string()).collect();
        let renderings: Vec<_> = renderings
            .iter()
            .map(|rendering| (Some("same"), rendering.as_str()))
            .collect();
        let waits = follow(&RenderLoopGuard::default(), &renderings);
        assert_eq!(
            waits,
            [
                (0, 0),
                (0, 1),
                (2, 2),
                (4, 3),
                (8, 4),
                (16, 5),
                (32, 6),
                (60, 7),
                (60, 8)
            ]
        );
    }

    #[test]
    fn two_renderings_in_turn_are_a_circle_too() {
        let (a, b) = ((Some("same"), "a"), (Some("same"), "b"));
        let waits = follow(&RenderLoopGuard::default(), &[a, b, a, b]);
        assert_eq!(waits, [(0, 0), (0, 1), (2, 2), (4, 3)]);
    }

    #[test]
    fn what_has_another_basis_or_none_is_followed_at_once() {
        let bases = ["x", "y", "z", "x"];
        let renderings = bases.map(|basis| (Some(basis), basis));
        assert_eq!(
            follow(&RenderLoopGuard::default(), &renderings),
            [(0, 0); 4]
        );
        let renderings = bases.map(|digest| (None, digest));
        let render_loops = RenderLoopGuard::default();
        assert_eq!(follow(&render_loops, &renderings), [(0, 0); 4]);
        assert_eq!(render_loops.0.remembered(), 0);
    }

    #[test]
    fn a_changed_input_ends_the_circle() {
        let circle = [
            (Some("same"), "1"),
            (Some("same"), "2"),
            (Some("same"), "3"),
            (Some("new"), "4"),
            (Some("new"), "5"),
        ];
        let waits = follow(&RenderLoopGuard::default(), &circle);
        assert_eq!(waits, [(0, 0), (0, 1), (2, 2), (0, 0), (0, 1)]);
    }

    #[test]
    fn the_same_rendering_written_again_is_no_change() {
        let (a, b) = ((Some("same"), "a"), (Some("same"), "b"));
        let waits = follow(&RenderLoopGuard::default(), &[a, a, a, b, b]);
        assert_eq!(waits, [(0, 0), (0, 0), (0, 0), (0, 1), (0, 0)]);
    }

    #[test]
    fn a_rendering_that_was_stable_for_long_may_change_at_once() {
        let render_loops = RenderLoopGuard::default();
        let now = Instant::now();
        let write =
            |digest: &str, now| render_loops.record("uid", &submission(Some("s"), digest), now);
        assert_eq!(
            [write("a", now), write("b", now), write("c", now)],
            [0, 1, 2]
        );
        let later = now + SPACING.calm;
        let changed = submission(Some("s"), "d");
        assert_eq!(render_loops.held_back("uid", &changed, later), None);
        assert_eq!(write("d", later), 0);
    }

    #[test]
    fn steps_and_owners_are_counted_apart() {
        let render_loops = RenderLoopGuard::default();
        let now = Instant::now();
        for digest in ["a", "b", "c"] {
            render_loops.record("uid", &submission(Some("s"), digest), now);
        }
        let next = submission(Some("s"), "d");
        assert!(render_loops.held_back("uid", &next, now).is_some());
        assert_eq!(render_loops.held_back("other", &next, now), None);
        let other = Submission {
            resource: "other".into(),
            ..next
        };
        assert_eq!(render_loops.held_back("uid", &other, now), None);
    }

    #[test]
    fn the_warning_names_step_and_template_and_says_what_to_do() {
        assert_eq!(
            warning("workload", &submission(Some("s"), "d")),
            "[step] template [ClusterTemplate/t] renders something else after each status of ours, because it reads the \
             status or the resourceVersion of the workload; its object is written ever less often; read the value from an \
             input instead"
        );
    }
}
