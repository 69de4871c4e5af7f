//! The environment lock, proven by trying everything: all interleavings of arriving revisions, deployments and validations
//! that end well or badly, time that passes, walks that are cut off by a crash after any of their actions, status writes
//! that are lost, and a tenant who changes the environment's object and what it says of itself.
//!
//! ```text
//!  world.rs     the state of a small cluster, and what can happen to it
//!  shell.rs     one walk of the real engine over it; every state in between
//!  checker.rs   breadth-first over all states; the four properties
//! ```
//!
//! What the engine decides by is the persisted part of a state and nothing else, as after kill -9.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

#[path = "environment_lock/checker.rs"]
mod checker;
#[path = "environment_lock/shell.rs"]
mod shell;
#[path = "environment_lock/world.rs"]
mod world;

use checker::{Checker, Explored};
use shell::{Fault, Topology};

// Most of what is computed here would be the C library's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn explored(checker: Checker) -> Explored {
    let explored = checker
        .explore()
        .unwrap_or_else(|violation| panic!("{violation}"));
    assert!(
        explored.states > 500 && explored.promotions > 0 && explored.releases_by_time > 0,
        "{explored:?}"
    );
    explored
}

#[test]
fn the_lock_holds_for_validations_in_sequence() {
    explored(Checker::new(Topology::Sequence, 4));
}

#[test]
fn the_lock_holds_for_validations_in_parallel() {
    explored(Checker::new(Topology::Parallel, 4));
}

#[test]
fn the_lock_holds_when_the_source_cannot_be_read_now_and_then() {
    for topology in [Topology::Sequence, Topology::Parallel] {
        explored(Checker::new(topology, 3).with_failing_source());
    }
}

/// Things happen between the actions of one walk, too.
#[test]
fn the_lock_in_sequence_holds_when_the_world_moves_during_a_walk() {
    explored(Checker::new(Topology::Sequence, 2).with_moves_during_walks());
}

#[test]
fn the_lock_in_parallel_holds_when_the_world_moves_during_a_walk() {
    explored(Checker::new(Topology::Parallel, 2).with_moves_during_walks());
}

/// Somebody who may write the environment's object does so at any point.
#[test]
fn the_lock_in_sequence_holds_against_a_tenant_who_writes_the_object() {
    explored(Checker::new(Topology::Sequence, 2).with_tampering());
}

#[test]
fn the_lock_in_parallel_holds_against_a_tenant_who_writes_the_object() {
    let checker = Checker::new(Topology::Parallel, 2).with_tampering();
    // That it goes on is seen in sequence.
    explored(checker.without_futures());
}

/// That walks are the same whatever the numbers of the revisions are is not taken for granted.
#[test]
fn nothing_depends_on_the_numbers_of_revisions() {
    let renumbered = explored(Checker::new(Topology::Sequence, 2));
    let exact = explored(Checker::new(Topology::Sequence, 2).without_renumbering());
    assert_eq!(renumbered, exact);
}

/// The checker is worth something only if it finds what is wrong.
#[test]
fn the_checker_finds_every_planted_fault() {
    let faults = [
        (Fault::LockIgnored, "changed"),
        (Fault::StatusTooNew, "changed"),
        (Fault::RunsSucceedAtOnce, "promoted unvalidated"),
        (Fault::OldRunsCount, "changed"),
        (Fault::WaitingIsHandedOn, "promoted unvalidated"),
        (Fault::NeverAgain, "no progress"),
    ];
    for (fault, expected) in faults {
        let mut checker = Checker::new(Topology::Sequence, 3).with_fault(fault);
        if fault != Fault::NeverAgain {
            checker = checker.without_futures();
        }
        finds(fault, checker, expected);
    }
}

/// Each way to believe what the object says of itself.
#[test]
fn the_checker_finds_every_forgery_that_is_believed() {
    let faults = [
        (Fault::ForgeryBelieved, 1, "promoted unvalidated"),
        (Fault::ForgeryBelieved, 2, "changed"),
        (Fault::AnnouncedIsDeployed, 2, "changed"),
        (Fault::MissingIsFree, 2, "changed"),
    ];
    for (fault, revisions, expected) in faults {
        let checker = Checker::new(Topology::Sequence, revisions);
        let checker = checker.with_tampering().without_futures();
        finds(fault, checker.with_fault(fault), expected);
    }
}

fn finds(fault: Fault, checker: Checker, expected: &str) {
    let violation = checker
        .explore()
        .err()
        .unwrap_or_else(|| panic!("{fault:?} was not found"));
    assert!(violation.starts_with(expected), "{fault:?}: {violation}");
}
