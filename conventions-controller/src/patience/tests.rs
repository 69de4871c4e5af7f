use super::*;

fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(namespace, name)
}

fn enter<'p>(patience: &'p Patience, intent: &ObjectKey) -> Option<Turn<'p>> {
    patience.enter("a", "1".to_owned(), intent)
}

/// Nobody answers these, who asked at the same time. Returns who is to try next.
fn time_out(patience: &Patience, intents: &[ObjectKey]) -> Vec<ObjectKey> {
    let turns: Vec<_> = intents.iter().map(|it| enter(patience, it)).collect();
    let turns = turns.into_iter();
    turns.filter_map(|turn| turn.unwrap().timed_out()).collect()
}

/// One each of several namespaces.
fn several() -> Vec<ObjectKey> {
    ["x", "y", "z"]
        .map(|namespace| key(namespace, "late"))
        .to_vec()
}

fn own(count: usize) -> Vec<ObjectKey> {
    (0..count).map(|it| key("own", &it.to_string())).collect()
}

#[test]
fn while_a_webhook_does_not_answer_only_a_few_ask_it_and_the_others_are_woken_afterwards() {
    let patience = Patience::default();
    assert_eq!(time_out(&patience, &several()), []);
    let first = enter(&patience, &key("x", "1")).unwrap();
    assert!(enter(&patience, &key("x", "2")).is_none(), "one of each");
    let second = enter(&patience, &key("y", "1")).unwrap();
    assert!(enter(&patience, &key("z", "1")).is_none());
    assert!(enter(&patience, &key("z", "2")).is_none());
    let other = patience.enter("b", "1".to_owned(), &key("z", "1"));
    assert!(other.is_some(), "another convention is asked");
    // Who waits longest in another namespace is next.
    assert_eq!(second.timed_out(), Some(key("z", "1")));
    let third = enter(&patience, &key("z", "1")).unwrap();
    patience.forget_intent(&key("z", "2"));
    patience.forget_intent(&key("z", "late"));
    // Those that were put off, and those that nobody answered.
    let woken = [("x", "2"), ("x", "late"), ("y", "1"), ("y", "late")];
    let woken = woken.map(|(namespace, name)| key(namespace, name));
    assert_eq!(first.answered(), BTreeSet::from(woken));
    let many: Vec<_> = (0..5)
        .map(|_| enter(&patience, &key("x", "1")).unwrap())
        .collect();
    assert_eq!(many.len(), 5);
    // One from before ends late.
    drop(third);
    assert!(enter(&patience, &key("x", "5")).is_some());
}

#[test]
fn no_tenant_has_a_webhook_look_dead_to_others() {
    let patience = Patience::default();
    time_out(&patience, &own(100));
    let turns: Vec<_> = (0..5)
        .map(|it| enter(&patience, &key("other", &it.to_string())).unwrap())
        .collect();
    // His own ask one by one.
    let of_own = enter(&patience, &key("own", "0")).unwrap();
    assert!(enter(&patience, &key("own", "1")).is_none());
    drop(of_own);
    // Answers to others tell nothing of his.
    for turn in turns {
        assert_eq!(turn.answered(), BTreeSet::new());
    }
    let of_own = enter(&patience, &key("own", "0")).unwrap();
    assert!(enter(&patience, &key("own", "1")).is_none());
    let woken = of_own.answered();
    assert_eq!(woken.len(), 99, "all but the one that was answered");
    assert!(enter(&patience, &key("own", "1")).is_some());
}

#[test]
fn one_who_has_three_namespaces_is_alone_as_long_as_others_are_answered() {
    let patience = Patience::default();
    for _ in 0..3 {
        for late in several() {
            assert!(enter(&patience, &late).unwrap().timed_out().is_none());
            let fine = enter(&patience, &key("other", "1")).unwrap();
            assert_eq!(fine.answered(), BTreeSet::new());
        }
    }
    let turns: Vec<_> = (0..5)
        .map(|it| enter(&patience, &key("other", &it.to_string())))
        .collect();
    assert!(turns.iter().all(Option::is_some));
}

#[test]
fn one_podintent_that_is_never_answered_is_not_several() {
    let patience = Patience::default();
    let one = key("own", "1");
    time_out(&patience, &[one.clone(), one.clone(), one.clone()]);
    let turns: Vec<_> = (0..5).map(|_| enter(&patience, &one)).collect();
    assert!(turns.iter().all(Option::is_some));
}

#[test]
fn those_who_wait_take_turns_by_namespace() {
    let patience = Patience::default();
    time_out(&patience, &several());
    let x = enter(&patience, &key("x", "1")).unwrap();
    let y = enter(&patience, &key("y", "1")).unwrap();
    for late in [key("w", "1"), key("x", "2"), key("z", "1")] {
        assert!(enter(&patience, &late).is_none());
    }
    assert_eq!(y.timed_out(), Some(key("z", "1")));
    // Behind the last namespace comes the first one; its own is not next.
    assert_eq!(x.timed_out(), Some(key("w", "1")));
    let w = enter(&patience, &key("w", "1")).unwrap();
    assert_eq!(w.timed_out(), Some(key("x", "2")));
}

#[test]
fn where_only_one_namespace_has_no_answer_its_own_take_turns() {
    let patience = Patience::default();
    time_out(&patience, &own(3));
    let last = enter(&patience, &key("own", "9")).unwrap();
    for late in [key("own", "5"), key("own", "7")] {
        assert!(enter(&patience, &late).is_none());
    }
    assert_eq!(last.timed_out(), Some(key("own", "5")));
    let next = enter(&patience, &key("own", "5")).unwrap();
    assert_eq!(next.timed_out(), Some(key("own", "7")));
    let next = enter(&patience, &key("own", "7")).unwrap();
    assert_eq!(next.timed_out(), None);
}

#[test]
fn who_asked_a_convention_that_was_corrected_meanwhile_says_nothing_of_it() {
    let patience = Patience::default();
    let early = own(3);
    let early: Vec<_> = early
        .iter()
        .map(|it| enter(&patience, it).unwrap())
        .collect();
    time_out(&patience, &several());
    assert_eq!(patience.forget("a").len(), 3);
    let corrected = |patience: &Patience| {
        let turns = ["1", "2", "3", "4"].map(|name| key("own", name));
        let turns = turns.map(|it| patience.enter("a", "2".to_owned(), &it));
        turns.iter().all(Option::is_some)
    };
    assert!(corrected(&patience));
    for name in ["1", "2", "3"] {
        let turn = patience.enter("a", "2".to_owned(), &key("own", name));
        turn.unwrap().timed_out();
    }
    // Nor does an answer of what it was before.
    for turn in early {
        assert_eq!(turn.answered(), BTreeSet::new());
    }
    assert!(!corrected(&patience));
}

#[test]
fn a_call_that_is_broken_off_gives_its_turn_back() {
    let patience = Patience::default();
    time_out(&patience, &several());
    for _ in 0..3 {
        drop(enter(&patience, &key("x", "1")).unwrap());
    }
    let _first = enter(&patience, &key("x", "1")).unwrap();
    let _second = enter(&patience, &key("y", "1")).unwrap();
    assert!(enter(&patience, &key("z", "1")).is_none());
    patience.begin_term();
    assert!(enter(&patience, &key("z", "1")).is_some());
}
