//! Whether what takes longer for more takes as much longer as there is more.
#![expect(
    clippy::panic,
    reason = "a test whose subject takes too long has failed"
)]

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Quadratic is a hundred, linear ten.
const BETWEEN: u32 = 40;
/// What the processor does for other threads slows this one down, even where only its own time is
/// counted: the best of several times counts.
const MOST_ROUNDS: usize = 30;
const LEAST_ROUNDS: usize = 3;

/// Asserts that so many items take about ten times as long as a tenth of them. What looks through
/// all items for each item takes a hundred times as long. `prepare` makes what is done for a number
/// of items; only the doing is measured.
///
/// # Panics
///
/// When it takes much longer.
pub fn takes_about_ten_times_as_long<F: FnMut()>(most: usize, prepare: impl Fn(usize) -> F) {
    let (mut of_few, mut of_many) = (prepare(most / 10), prepare(most));
    let (mut few, mut many) = (Duration::MAX, Duration::MAX);
    for round in 0..MOST_ROUNDS {
        few = few.min(time_of(&mut of_few));
        many = many.min(time_of(&mut of_many));
        if round + 1 >= LEAST_ROUNDS && many < few * BETWEEN {
            return;
        }
    }
    panic!("a tenth took {few:?}, and all {many:?}");
}

fn time_of(once: &mut impl FnMut()) -> Duration {
    let began = processor_time();
    once();
    processor_time().saturating_sub(began)
}

/// How long the processor has worked for this thread. Time on the wall goes on while a busy machine
/// does something else.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or_default());
    seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn what_looks_at_each_once_passes() {
        takes_about_ten_times_as_long(100_000, |count| {
            move || {
                let sum: usize = (0..count).map(black_box).sum();
                black_box(sum);
            }
        });
    }

    #[test]
    #[should_panic(expected = "a tenth took")]
    fn what_looks_at_all_for_each_does_not() {
        takes_about_ten_times_as_long(3_000, |count| {
            move || {
                let each = |one| (0..count).filter(|other| black_box(*other) == one).count();
                let sum: usize = (0..count).map(each).sum();
                black_box(sum);
            }
        });
    }
}
