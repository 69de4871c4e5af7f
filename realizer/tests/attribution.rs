//! Attribution, proven by trying everything: a chain of two resources that keep their latest good output, as the proposal
//! for reading only good outputs describes them, with commits, a world that changes, controllers that lag, a watch that lags,
//! walks that are cut off after any of their writes, status writes that are lost, and a tenant who rewrites specs.
//!
//! ```text
//!  world.rs     the state of a small cluster, and what can happen to it
//!  shell.rs     one walk of the real engine over it
//!  checker.rs   breadth-first over all states; the six properties
//!  runs.rs      the same of a step that makes a run for each rendering, and of values of a Secret
//! ```
//!
//! What the engine decides by is the persisted part of a state and nothing else, as after kill -9.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

#[path = "attribution/checker.rs"]
mod checker;
#[path = "attribution/runs.rs"]
mod runs;
#[path = "attribution/shell.rs"]
mod shell;
#[path = "attribution/world.rs"]
mod world;

use checker::{Checker, Explored};
use runs::Runs;
use shell::{Compares, Fault};

// Most of what is computed here would be the C library's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The first of two bounds; `make test-models` takes the other, with which all this takes ten minutes.
#[expect(
    clippy::disallowed_methods,
    reason = "a test has no command line of its own"
)]
fn short_or_long<T>(short: T, long: T) -> T {
    match std::env::var("CARTO_MODELS").as_deref() {
        Ok("long") => long,
        _ => short,
    }
}

#[expect(clippy::print_stderr, reason = "the numbers are told with the tests")]
fn explored(name: &str, checker: Checker) -> Explored {
    let explored = checker
        .explore()
        .unwrap_or_else(|violation| panic!("{violation}"));
    eprintln!("{name}: {explored:?}");
    assert!(
        explored.states > 300 && explored.deployed > 0 && explored.kept > 0,
        "{name}: {explored:?}"
    );
    explored
}

#[test]
fn outputs_are_attributed_to_what_made_them_while_commits_come() {
    explored("commits", Checker::new(short_or_long(2, 3)));
}

#[test]
fn outputs_are_attributed_to_what_made_them_while_the_world_changes() {
    explored("world", Checker::new(1).with_world_changes(1));
}

#[test]
fn nothing_of_a_tenant_who_rewrites_specs_goes_downstream() {
    explored("tenant", Checker::new(1).with_tampering(1));
}

#[test]
fn annotations_and_labels_of_a_tenant_are_believed_nowhere() {
    let checker = || {
        let tenant = Checker::new(1).with_tampering_at_the_source(2);
        tenant.without_failures().with_forged_marks()
    };
    explored("forged marks", checker());
    let found = checker().with_fault(Fault::MarksBelieved).explore();
    let violation = found.expect_err("what says of itself that it is ours is taken for it");
    assert!(violation.contains("of the tenant"), "{violation}");
}

#[test]
fn nothing_that_is_made_of_refused_fields_goes_downstream() {
    let checker = Checker::new(1).with_foreign_fields(1);
    explored("foreign fields", checker);
    let checker = Checker::new(2).with_waiting().with_foreign_fields(1);
    explored("waiting, foreign fields", checker.without_lag());
}

/// Of a builder that a tenant has asked for, with rules that compare the revision alone.
#[test]
fn nothing_that_a_tenant_has_built_of_our_inputs_goes_downstream() {
    for rule in [Compares::Matches, Compares::Inputs] {
        let name = |what: &str| format!("{rule:?}, tenant{what}");
        explored(&name(", lag"), Checker::new(1).comparing(rule, 1));
        let commits = Checker::new(2).comparing(rule, 1);
        explored(&name(""), commits.without_lag());
        let waiting = Checker::new(2).comparing(rule, 1).with_waiting();
        explored(&name(", waiting"), waiting.without_lag());
    }
}

#[test]
fn a_process_that_is_killed_does_not_forget_what_a_tenant_has_built() {
    let changes = short_or_long(1, 2);
    let checker = Checker::new(1).comparing(Compares::Matches, changes);
    explored("compared, crashes", checker.with_crashes().without_lag());
}

#[test]
fn nothing_of_a_tenant_goes_downstream_while_commits_come() {
    let checker = Checker::new(2).with_tampering_at_the_source(1);
    explored("tenant and commits", checker.without_lag());
}

#[test]
fn crashes_and_lost_status_writes_change_nothing_of_it() {
    explored("crashes", Checker::new(2).with_crashes());
}

/// What was good is under way again after a kill, as a Flux source is whenever it fetches.
fn crashes_while_the_world_changes() -> Checker {
    let checker = Checker::new(1).with_world_changes(2);
    checker.with_crashes().without_lag().without_failures()
}

#[test]
fn nothing_is_taken_back_wherever_a_walk_is_cut_off_while_the_world_changes() {
    explored("crashes, world", crashes_while_the_world_changes());
}

#[test]
fn updates_that_wait_are_neither_overtaken_nor_hidden_nor_starved() {
    let commits = short_or_long(3, 4);
    let explored = explored(
        "waiting",
        Checker::new(commits).with_waiting().without_lag(),
    );
    assert!(explored.waited > 0, "{explored:?}");
}

#[test]
fn updates_wait_whatever_a_tenant_writes_and_wherever_a_walk_is_cut_off() {
    explored(
        "waiting, tenant",
        Checker::new(2)
            .with_waiting()
            .with_tampering(1)
            .without_lag(),
    );
    explored(
        "waiting, crashes",
        Checker::new(2).with_waiting().with_crashes(),
    );
}

#[expect(clippy::print_stderr, reason = "the numbers are told with the tests")]
fn sampled(name: &str, checker: Checker) {
    let ways = short_or_long(15, 100);
    let sampled = checker.sample(ways, 100);
    let sampled = sampled.unwrap_or_else(|violation| panic!("{name}: {violation}"));
    eprintln!("{name}: {sampled:?}");
    assert!(
        sampled.states > 30 * ways && sampled.deployed > ways / 5 && sampled.kept > ways / 2,
        "{name}: {sampled:?}"
    );
}

/// Too many states to visit them all, so that some ways are followed.
#[test]
fn all_of_it_at_once_is_followed_on_ways_chosen_by_lot() {
    let all = || Checker::new(4).with_crashes().with_world_changes(1);
    sampled("all", all().with_tampering(2));
    sampled("all, waiting", all().with_waiting().with_tampering(2));
    sampled("all, foreign", all().with_foreign_fields(2));
    sampled(
        "all, waiting, foreign",
        all().with_waiting().with_foreign_fields(2),
    );
    for rule in [Compares::Matches, Compares::Inputs] {
        let name = |what: &str| format!("all, {rule:?}{what}");
        sampled(&name(""), all().comparing(rule, 2));
        sampled(&name(", waiting"), all().comparing(rule, 2).with_waiting());
    }
    for (fault, expected) in [
        (Fault::ValuesNotCompared, "of the tenant"),
        (Fault::ReplyIsOld, "of the tenant"),
        (Fault::LastGoodLost, "nothing to deploy"),
    ] {
        let checker = all().with_tampering(2).with_fault(fault);
        let violation = checker.sample(100, 100).err().unwrap_or_default();
        assert!(violation.contains(expected), "{fault:?}: {violation}");
    }
}

#[test]
fn updates_wait_while_the_world_changes() {
    explored(
        "waiting, world",
        Checker::new(2)
            .with_waiting()
            .with_world_changes(1)
            .without_lag(),
    );
}

#[expect(clippy::print_stderr, reason = "the numbers are told with the tests")]
fn ran(name: &str, runs: Runs) {
    let explored = runs.explore();
    let explored = explored.unwrap_or_else(|violation| panic!("{violation}"));
    eprintln!("{name}: {explored:?}");
    assert!(
        explored.states > 100 && explored.deployed > 0 && explored.runs > 1,
        "{name}: {explored:?}"
    );
}

#[test]
fn outputs_of_runs_are_attributed_to_what_made_them_and_no_run_is_made_twice() {
    let revisions = 3;
    let commits = Runs {
        revisions,
        ..Runs::default()
    };
    ran("runs, commits", commits);
    let crashes = Runs {
        revisions: 2,
        crashes: true,
        deletions: 1,
        ..Runs::default()
    };
    ran("runs, crashes and deletions", crashes);
    let changed = Runs {
        tampering: 1,
        deletions: 0,
        ..crashes
    };
    ran("runs, crashes and a tenant", changed);
}

#[test]
fn nothing_of_a_tenant_who_changes_runs_goes_downstream() {
    let tenant = Runs {
        revisions: 2,
        tampering: 1,
        deletions: 1,
        ..Runs::default()
    };
    ran("runs, tenant", tenant);
    let foreign = Runs {
        revisions: 2,
        foreign: 2,
        deletions: 1,
        ..Runs::default()
    };
    ran("runs, foreign fields", foreign);
}

#[test]
fn values_of_a_secret_go_through_runs_and_are_told_nowhere() {
    let secret = Runs {
        revisions: 2,
        tampering: 1,
        crashes: true,
        is_secret: true,
        ..Runs::default()
    };
    ran("runs, Secret", secret);
}

#[test]
fn the_checker_of_runs_finds_every_planted_fault() {
    use runs::Fault;
    for (fault, is_secret, expected) in [
        (Fault::ValuesNotCompared, false, "the tenant asked for"),
        (Fault::LastGoodLost, false, "nothing to deploy"),
        (Fault::SecretKept, true, "is told"),
        (Fault::ProvenanceOfFormer, false, "two outputs"),
        (Fault::RunsHidden, false, "run again"),
        (Fault::ForeignNotCompared, false, "the tenant asked for"),
        (Fault::StatusBelieved, false, "is taken back"),
    ] {
        let runs = Runs {
            crashes: fault == Fault::StatusBelieved,
            foreign: u8::from(fault == Fault::ForeignNotCompared),
            revisions: 2,
            tampering: 1,
            is_secret,
            fault: Some(fault),
            ..Runs::default()
        };
        match runs.explore() {
            Err(violation) => assert!(violation.contains(expected), "{fault:?}: {violation}"),
            Ok(explored) => panic!("{fault:?} is not found: {explored:?}"),
        }
    }
}

/// The checker is worth something only if it finds what is wrong.
#[test]
fn the_checker_finds_every_planted_fault() {
    let faults = [
        (Fault::ValuesNotCompared, "of the tenant"),
        (Fault::StatusForged, "[evil]"),
        (Fault::GenerationNotCompared, "attributed"),
        (Fault::ConditionNotAsked, "attributed"),
        (Fault::ReplyIsOld, "attributed"),
        (Fault::ProvenanceOfFormer, "two outputs"),
        (Fault::ValueOfAnotherStep, "two outputs"),
        (Fault::LastGoodLost, "nothing to deploy"),
        (Fault::StatusNeverWritten, "does not come to rest"),
        (Fault::WatchStands, "no progress"),
    ];
    let of_updates = [
        (Fault::WaitingLost, "no progress"),
        (Fault::Overtaken, "overtaken"),
        (Fault::MadeFromNewest, "attributed"),
        (Fault::ValuesNotCompared, "of the tenant"),
        (Fault::GenerationNotCompared, "attributed"),
    ];
    let foreign = Checker::new(1).with_foreign_fields(1);
    let foreign = foreign.with_fault(Fault::ForeignNotCompared).explore();
    let violation = foreign.err().unwrap_or_default();
    assert!(violation.contains("of the tenant"), "{violation}");
    let crashes = crashes_while_the_world_changes();
    let crashes = crashes.with_fault(Fault::StatusBelieved).explore();
    let violation = crashes.err().unwrap_or_default();
    assert!(violation.contains("is taken back"), "{violation}");
    for (fault, rule) in [
        (Fault::DoubtForgotten, Compares::Matches),
        (Fault::DoubtNotWritten, Compares::Inputs),
    ] {
        let checker = Checker::new(1).comparing(rule, 1).with_fault(fault);
        let violation = checker.explore().err().unwrap_or_default();
        assert!(
            violation.contains("of the tenant"),
            "{fault:?}: {violation}"
        );
    }
    let faults = faults.map(|(fault, expected)| (fault, expected, Checker::new(2)));
    let of_updates =
        of_updates.map(|(fault, expected)| (fault, expected, Checker::new(2).with_waiting()));
    for (fault, expected, checker) in faults.into_iter().chain(of_updates) {
        let checker = checker.with_tampering(1).with_fault(fault);
        match checker.explore() {
            Err(violation) => assert!(violation.contains(expected), "{fault:?}: {violation}"),
            Ok(explored) => panic!("{fault:?} is not found: {explored:?}"),
        }
    }
}
