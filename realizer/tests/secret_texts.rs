//! A hundred thousand random secrets through every path on which the engine says something; none of them is told.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "fixtures are written where they are used"
)]

#[expect(
    dead_code,
    reason = "shared with the scenarios of tests/engine.rs, which use more of it"
)]
#[path = "engine/scenario.rs"]
mod scenario;
#[expect(
    dead_code,
    reason = "shared with the Runnables of tests/runnable.rs, which use more of it"
)]
#[path = "runnable/stage.rs"]
mod stage;

#[path = "secret_texts/canary.rs"]
mod canary;
#[path = "secret_texts/paths.rs"]
mod paths;

use canary::Canaries;

// Most of what is computed here would be the C library's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many secrets there are in one scenario, and how many scenarios on each of three kinds of paths: 100,200 secrets.
const SECRETS: usize = 100;
const SCENARIOS: u64 = 334;

fn spread(walks: fn(&Canaries)) {
    let threads = 2;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for seed in (0..SCENARIOS).filter(|seed| seed % threads == thread) {
                    walks(&Canaries::new(seed, SECRETS));
                }
            });
        }
    });
}

#[test]
fn no_supply_chain_tells_a_secret() {
    spread(paths::supply_chain);
}

#[test]
fn no_delivery_tells_a_secret() {
    spread(paths::delivery);
}

#[test]
fn no_runnable_tells_a_secret() {
    spread(paths::runnable);
}

#[test]
fn the_search_finds_a_canary_in_each_of_its_spellings() {
    let canaries = Canaries::new(1, 20);
    for spelled in canaries.each_spelled() {
        assert!(canaries.is_told_in(&format!("<{spelled}>")), "{spelled:?}");
    }
    assert!(!canaries.is_told_in(&Canaries::harmless()));
}
