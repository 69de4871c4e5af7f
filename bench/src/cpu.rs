//! CPU time of several processes.

use std::collections::BTreeMap;

/// Seconds, by process.
pub(crate) type CpuSeconds = BTreeMap<String, f64>;

/// What was used between two readings.
pub(crate) fn spent(before: &CpuSeconds, after: CpuSeconds) -> CpuSeconds {
    let since = |name: &str| before.get(name).copied().unwrap_or(0.0);
    let spent = after.into_iter();
    spent
        .map(|(name, seconds)| (name.clone(), seconds - since(&name)))
        .collect()
}

/// Adds what was used at another time.
pub(crate) fn add(to: &mut CpuSeconds, more: &CpuSeconds) {
    for (name, seconds) in more {
        *to.entry(name.clone()).or_default() += seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_from_the_first_reading() {
        let of = |name: &str, seconds| (name.to_owned(), seconds);
        let before = CpuSeconds::from([of("etcd", 2.0)]);
        let after = CpuSeconds::from([of("etcd", 3.5), of("controller", 1.0)]);
        let mut expected = CpuSeconds::from([of("etcd", 1.5), of("controller", 1.0)]);
        assert_eq!(spent(&before, after), expected);
        add(&mut expected, &before);
        assert_eq!(expected["etcd"].to_string(), "3.5");
    }
}
