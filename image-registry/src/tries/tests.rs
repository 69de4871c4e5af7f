use tokio::time::Instant;

use super::*;

/// A wait is a quarter less or more.
const JITTER: f64 = 0.25;

fn settings() -> Settings {
    Settings::new("")
}

fn passing(asked: Option<Duration>) -> Trouble {
    Trouble::Passing(cause(), asked)
}

fn cause() -> Cause {
    Cause::Unknown {
        host: "registry.example".to_owned(),
        what: "app:1.0".to_owned(),
        code: String::new(),
    }
}

/// How long it is waited after each try, until there is none left.
async fn waits(tries: &mut Tries, asked: Option<Duration>) -> Vec<Duration> {
    let mut waits = Vec::new();
    loop {
        let before = Instant::now();
        if tries.after(passing(asked)).await.is_err() {
            assert_eq!(
                before.elapsed(),
                Duration::ZERO,
                "the last one is told at once"
            );
            return waits;
        }
        waits.push(before.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn there_are_five_tries_and_each_wait_is_twice_as_long_as_the_one_before() {
    let settings = settings();
    let mut seen = Vec::new();
    for _ in 0..20 {
        let waits = waits(&mut Tries::of(&settings), None).await;
        assert_eq!(waits.len(), 4, "{waits:?}");
        for (wait, times) in waits.iter().zip([1.0, 2.0, 4.0, 8.0]) {
            let ratio = wait.as_secs_f64() / settings.first_delay.as_secs_f64() / times;
            // Tokio's clock goes by milliseconds.
            let is_about = (1.0 - JITTER - 0.01..1.0 + JITTER + 0.01).contains(&ratio);
            assert!(is_about, "{ratio} of {times} times the first: {waits:?}");
        }
        seen.push(waits[3]);
    }
    seen.sort();
    seen.dedup();
    assert!(seen.len() > 5, "they are spread: {seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_asks_for_more_time_gets_it_but_none_that_asks_for_too_much() {
    let asked = Duration::from_secs(19);
    let waited = waits(&mut Tries::of(&settings()), Some(asked)).await;
    // Tokio's clock goes by milliseconds.
    let longest = asked + Duration::from_millis(2);
    let is_that = |wait: &Duration| (asked..longest).contains(wait);
    assert!(
        waited.len() == 4 && waited.iter().all(is_that),
        "{waited:?}"
    );
    let asked = Some(Duration::from_secs(21));
    assert_eq!(
        waits(&mut Tries::of(&settings()), asked).await,
        Vec::<Duration>::new()
    );
}

#[tokio::test(start_paused = true)]
async fn what_would_fail_again_is_not_tried_again_and_who_can_be_replaced_is_tried_once() {
    let before = Instant::now();
    let mut tries = Tries::of(&settings());
    assert_eq!(tries.after(Trouble::Final(cause())).await, Err(cause()));
    assert_eq!(
        waits(&mut Tries::once(), None).await,
        Vec::<Duration>::new()
    );
    assert_eq!(before.elapsed(), Duration::ZERO);
}
