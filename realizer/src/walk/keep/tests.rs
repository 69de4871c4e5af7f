use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

fn candidates(count: i64, bytes: u64, needed: &[i64]) -> Vec<Candidate<'static>> {
    let candidate = |number: i64| Candidate {
        step: 0,
        reference: ArtifactReference {
            name: format!("artifact-{number}"),
            identity: number.to_string(),
            accepted: Time(Timestamp::from_second(number).unwrap()),
            bytes,
            digest: String::new(),
        },
        is_needed: needed.contains(&number),
        output: None,
    };
    // The order in which they stand in status says nothing of their age.
    (0..count).rev().map(candidate).collect()
}

fn left(mut candidates: Vec<Candidate<'_>>) -> Vec<String> {
    bound(&mut candidates);
    let mut left: Vec<i64> = candidates
        .iter()
        .map(|it| it.reference.accepted.0.as_second())
        .collect();
    left.sort_unstable();
    left.iter().map(i64::to_string).collect()
}

#[test]
fn the_oldest_go_first_and_those_that_are_needed_last() {
    let numbers =
        |of: std::ops::Range<i64>| of.map(|number| number.to_string()).collect::<Vec<_>>();
    assert_eq!(left(candidates(200, 1, &[])), numbers(0..200));
    assert_eq!(left(candidates(203, 1, &[])), numbers(3..203));
    let most = MOST_ARTIFACT_BYTES as u64;
    assert_eq!(left(candidates(32, most, &[])), numbers(0..32));
    assert_eq!(left(candidates(34, most, &[])), numbers(2..34));
    let but_one = left(candidates(34, most, &[0]));
    assert_eq!(but_one, [numbers(0..1), numbers(3..34)].concat());
    let all = &(0..34).collect::<Vec<_>>();
    assert_eq!(
        left(candidates(34, most, all)),
        numbers(2..34),
        "there is an end to it"
    );
}
