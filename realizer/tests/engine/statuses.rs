//! Whole owners with the statuses that they come to, as people see them: `tests/golden/*.yaml`.

use crate::golden;
use crate::scenario::Scenario;
use crate::validation::{push, second_revision_is_validated};
use crate::worked_examples::{IMMUTABLE, finish_run, set_tag};

/// The first build succeeded and is deployed, the second one failed.
#[test]
fn a_workload_tells_of_its_builds_and_of_what_is_deployed() {
    let mut scenario = Scenario::new(IMMUTABLE);
    scenario.advance();
    finish_run(&mut scenario, "app-1", "True", Some("image-a"));
    scenario.advance();
    set_tag(&mut scenario, "B");
    scenario.advance();
    finish_run(&mut scenario, "app-2", "False", None);
    scenario.advance();
    golden::check("workload.yaml", &scenario.owner);
}

/// One revision is promoted, the next one is being validated, and a third one waits for the environment.
#[test]
fn a_deliverable_tells_of_its_environment_and_of_what_waits_for_it() {
    let mut scenario = second_revision_is_validated();
    push(&mut scenario, "C");
    scenario.advance();
    golden::check("deliverable.yaml", &scenario.owner);
}
