//! CPU time of several processes.

use std::collections::BTreeMap;

/// Seconds, by process.
pub(crate) type CpuSeconds = BTreeMap<String, f64>;

/// Adds what was used between two readings.
pub(crate) fn add_spent(to: &mut CpuSeconds, before: &CpuSeconds, after: CpuSeconds) {
    for (name, seconds) in after {
        let before = before.get(&name).copied().unwrap_or(0.0);
        *to.entry(name).or_default() += seconds - before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_from_the_first_reading_and_added_up() {
        let of = |name: &str, seconds| (name.to_owned(), seconds);
        let before = CpuSeconds::from([of("etcd", 2.0)]);
        let after = CpuSeconds::from([of("etcd", 3.5), of("controller", 1.0)]);
        let mut spent = CpuSeconds::new();
        add_spent(&mut spent, &before, after.clone());
        assert_eq!(spent, [of("etcd", 1.5), of("controller", 1.0)].into());
        add_spent(&mut spent, &before, after);
        assert_eq!(spent, [of("etcd", 3.0), of("controller", 2.0)].into());
    }
}
