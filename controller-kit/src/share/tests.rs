//! Who takes what, for any replicas and namespaces.

mod explorer;
pub(crate) mod gaining;

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

pub(super) fn name(text: &str) -> Identity {
    text.into()
}

/// The first process of this name.
pub(super) fn myself(text: &str) -> Myself {
    Myself {
        name: name(text),
        process: "1".to_owned(),
        patience: Duration::from_secs(10),
    }
}

fn view(names: &[&str]) -> View {
    View::of(names.iter().copied().map(name))
}

fn nobody() -> BTreeSet<Identity> {
    BTreeSet::new()
}

pub(super) fn teams() -> impl Iterator<Item = String> {
    (1..=99).map(|number| format!("team-{number:02}"))
}

/// Names as a ReplicaSet gives them.
fn pods(seed: u64, count: usize) -> Vec<Identity> {
    let suffix = |number: usize| {
        (seed.wrapping_mul(6_364_136_223_846_793_005) >> 33) as usize + number * 7919
    };
    (0..count)
        .map(|number| {
            name(&format!(
                "supplychain-controller-6f7d9c-{:05x}",
                suffix(number) & 0xf_ffff
            ))
        })
        .collect()
}

#[test]
fn namespaces_whose_names_are_alike_are_spread_evenly() {
    for count in 2..=5 {
        let mut fullest = 0;
        for seed in 0..50 {
            let pods = pods(seed, count);
            let all = View::of(pods.iter().cloned());
            for pod in &pods {
                let taken = teams().filter(|team| all.holder(team) == Some(pod)).count();
                fullest = fullest.max(taken);
            }
        }
        // Of the fullest of hundreds of replicas, with 99 namespaces each: four deviations of a fair throw.
        let [count, fullest] = [count, fullest].map(|it| f64::from(u32::try_from(it).unwrap()));
        let fair = 99.0 / count;
        let bound = fair + 4.0 * (fair * (1.0 - 1.0 / count)).sqrt();
        assert!(fullest < bound, "{count}: {fullest} of {bound}");
    }
}

proptest! {
    #[test]
    fn who_goes_moves_only_what_it_had_and_who_comes_takes_only_for_itself(
        seed in any::<u64>(), count in 2_usize..8, team in "[a-z]{1,12}-[0-9]{1,3}"
    ) {
        let pods = pods(seed, count);
        let all = View::of(pods.iter().cloned());
        let rest = View::of(pods[1..].iter().cloned());
        let (before, after) = (all.holder(&team).unwrap(), rest.holder(&team).unwrap());
        prop_assert!(before == after || *before == pods[0]);
    }

    /// Whatever views there are: what is said without looking at namespaces is so for each of them.
    #[test]
    fn a_share_within_another_has_no_namespace_that_the_other_has_not(
        views in proptest::collection::vec(proptest::collection::btree_set("[abcd]", 1..4), 1..4),
        claims in proptest::collection::vec(("[abcd]", 0_usize..4), 0..4),
        others in proptest::collection::vec(("[abcd]", 0_usize..4), 0..4),
    ) {
        let views: Vec<View> = views.iter().map(|names| View::of(names.iter().map(|it| name(it)))).collect();
        let at = |number: usize| views[number % views.len()].clone();
        let me = name("a");
        let share = |view: usize, claims: &[(String, usize)]| {
            let claims = claims.iter().filter(|(other, _)| other != "a");
            Share::of(&me, &at(view), claims.map(|(other, number)| (name(other), at(*number))))
        };
        let (left, right) = (share(0, &claims), share(1, &others));
        let both = left.and(&right);
        for number in 0..40 {
            let team = format!("team-{number:02}");
            let takes = |view: usize, claims: &[(String, usize)]| {
                at(view).holder(&team) == Some(&me)
                    && !claims.iter().any(|(other, number)| other != "a" && at(*number).holder(&team) == Some(&name(other)))
            };
            prop_assert_eq!(left.takes(&team), takes(0, &claims));
            prop_assert_eq!(both.takes(&team), takes(0, &claims) && takes(1, &others));
            prop_assert!(!left.is_within(&right) || !left.takes(&team) || right.takes(&team));
        }
        prop_assert!(both.is_within(&left) && both.is_within(&right));
    }

    #[test]
    fn no_text_in_the_lease_makes_anybody_panic(text in "\\PC*") {
        if let Some(record) = Record::parse(&text) {
            let _ = record.renewed(&myself("a"), &nobody(), None).share(&name("a"));
        }
    }
}

#[test]
fn the_first_one_takes_everything_and_the_second_one_waits_until_it_has_stopped() {
    let (a, b) = (name("a"), name("b"));
    let record = Record::founded(7).renewed(&myself("a"), &nobody(), None);
    assert_eq!(record.share(&a), Share::of(&a, &view(&["a"]), []));
    let record = record.renewed(&myself("b"), &nobody(), None);
    assert_eq!(record.share(&b), Share::Nothing);
    let newest = record.awaited_of("a").unwrap();
    assert_eq!((newest.number, &newest.view), (10, &view(&["a", "b"])));
    let record = record.renewed(&myself("a"), &nobody(), Some(&newest));
    for me in [&a, &b] {
        assert_eq!(record.awaited_of(me), None);
        assert_eq!(record.share(me), Share::of(me, &view(&["a", "b"]), []));
    }
    assert_eq!(Record::parse(&record.text()), Some(record));
}

#[test]
fn what_a_silent_one_had_is_taken_without_waiting_for_the_rest() {
    let names = ["a", "b", "c"].map(name);
    let mut record = Record::founded(0);
    for me in &names {
        record = record.renewed(&myself(me), &nobody(), None);
    }
    for me in &names {
        let newest = record.awaited_of(me);
        record = record.renewed(&myself(me), &nobody(), newest.as_ref());
    }
    let silent = BTreeSet::from([names[2].clone()]);
    let newest = record.renewed(&myself("a"), &silent, None);
    let stopped = newest.awaited_of("a");
    let record = newest.renewed(&myself("a"), &silent, stopped.as_ref());
    assert!(record.awaited_of("b").is_some(), "b has not looked yet");
    assert_eq!(
        record.share(&names[0]),
        Share::of(&names[0], &view(&["a", "b"]), [])
    );
}

#[test]
fn what_is_no_record_is_not_read() {
    let full: String = (0..=MOST_REPLICAS)
        .map(|number| format!(r#""r{number}":{{"process":"1","beat":1,"lasts":9,"claims":0}}"#))
        .collect::<Vec<_>>()
        .join(",");
    let long = "x".repeat(254);
    for text in [
        "",
        "[]",
        "{}",
        r#"{"view":1,"views":{},"replicas":{"a":{"process":"1","beat":1,"lasts":9,"claims":3}}}"#,
        r#"{"view":1,"views":{},"replicas":{"":{"process":"1","beat":1,"lasts":9,"claims":0}}}"#,
        r#"{"view":1,"views":{},"replicas":{"a":{"process":"1","beat":1,"lasts":90000,"claims":0}}}"#,
        r#"{"view":18446744073709551615,"views":{},"replicas":{}}"#,
        r#"{"view":1,"views":{},"replicas":{},"more":1}"#,
        &format!(r#"{{"view":1,"views":{{"1":["{long}"]}},"replicas":{{}}}}"#),
        &format!(r#"{{"view":1,"views":{{}},"replicas":{{{full}}}}}"#),
    ] {
        assert_eq!(Record::parse(text), None, "{text}");
    }
}

#[test]
fn a_lost_record_leaves_nobody_anything_until_whoever_was_in_it_is_silent() {
    let a = name("a");
    let record = Record::founded_anew(3).renewed(&myself("a"), &nobody(), None);
    assert_eq!(record.share(&a), Share::Nothing);
    let unknown: BTreeSet<Identity> = record
        .replicas()
        .map(|(name, _)| name.clone())
        .filter(|name| *name != a)
        .collect();
    assert_eq!(unknown.len(), 1);
    let record = record.renewed(&myself("a"), &unknown, None);
    assert_eq!(record.share(&a), Share::of(&a, &view(&["a"]), []));
}

#[test]
fn a_share_tells_among_how_many_replicas_all_is_divided() {
    let share = |names: &[&str]| Share::of(&name("a"), &view(names), []);
    assert_eq!(share(&["a", "b", "c"]).replicas(), 3);
    assert_eq!(share(&["a"]).replicas(), 1);
    // While one comes, what is held falls to it before and after.
    let both = share(&["a", "b"]).and(&share(&["a", "b", "c"]));
    assert_eq!(both.replicas(), 3);
    assert_eq!((Share::All.replicas(), Share::Nothing.replicas()), (1, 1));
}
