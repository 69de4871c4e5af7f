//! Reading counters from a Prometheus text exposition.

/// The sum of a metric over all its series that have these labels; `None` when there is no such series.
pub(crate) fn sum(text: &str, metric: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let values = text.lines().filter_map(|line| value(line, metric, labels));
    values.reduce(|sum, value| sum + value)
}

fn value(line: &str, metric: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let rest = line.strip_prefix(metric)?;
    let (series, number) = match rest.strip_prefix('{') {
        Some(labelled) => labelled.rsplit_once("} ")?,
        None => ("", rest.strip_prefix(' ')?),
    };
    let wanted = |(name, value): &(&str, &str)| {
        let pair = format!("{name}=\"{value}\"");
        series
            .match_indices(&pair)
            .any(|(at, _)| at == 0 || series[..at].ends_with(','))
    };
    if !labels.iter().all(wanted) {
        return None;
    }
    number.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# HELP carto_reconcile_total Reconciles.
# TYPE carto_reconcile_total counter
carto_reconcile_total{kind="Workload",outcome="done"} 40
carto_reconcile_total{kind="Workload",outcome="retry"} 2
carto_reconcile_total{kind="ClusterSupplyChain",outcome="done"} 1
carto_reconcile_total_created{kind="Workload"} 7
other{subkind="Workload",kind="x"} 5 1700000000000
plain 1.5e3
"#;

    #[test]
    fn series_with_the_wanted_labels_are_added_up() {
        let reconciles = |labels: &[(&str, &str)]| sum(TEXT, "carto_reconcile_total", labels);
        assert_eq!(reconciles(&[("kind", "Workload")]), Some(42.0));
        assert_eq!(
            reconciles(&[("kind", "Workload"), ("outcome", "retry")]),
            Some(2.0)
        );
        assert_eq!(reconciles(&[]), Some(43.0));
        assert_eq!(reconciles(&[("kind", "Deliverable")]), None);
    }

    #[test]
    fn labels_are_whole_names_and_timestamps_are_no_values() {
        assert_eq!(sum(TEXT, "other", &[("kind", "Workload")]), None);
        assert_eq!(sum(TEXT, "other", &[]), Some(5.0));
        assert_eq!(sum(TEXT, "plain", &[]), Some(1500.0));
    }
}
