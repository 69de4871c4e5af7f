//! Golden files: `UPDATE_GOLDEN=1` writes them, otherwise they are compared.

use std::path::Path;

use serde_json::Value;

/// Compares a value with `tests/golden/<name>`.
pub(crate) fn check(name: &str, value: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    let text = serde_saphyr::to_string(value).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the switch of the golden tests")]
    let update = std::env::var("UPDATE_GOLDEN").is_ok_and(|update| update == "1");
    if update {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(
        text,
        expected,
        "{} differs; UPDATE_GOLDEN=1 writes it",
        path.display()
    );
}
