//! What may stand in a command that somebody is going to paste into a shell. Names in statuses and messages may be made by
//! whoever wrote the owner, and not every kind restricts its names to harmless characters.

/// Longest name of an object.
const LONGEST: usize = 253;

/// A name that an API server takes for an ordinary object, or what is put together from such names: letters, digits and
/// `-._:/`, the first one a letter or digit.
pub(super) fn is_plain(text: &str) -> bool {
    text.len() <= LONGEST
        && text.starts_with(|char: char| char.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || "-._:/".contains(char))
}

/// A label of DNS-1123, as namespaces and plurals are named.
pub(super) fn is_label(text: &str) -> bool {
    let is_inner = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    (1..=63).contains(&text.len())
        && text.chars().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// A subdomain of DNS-1123, as groups and most objects are named.
pub(super) fn is_subdomain(text: &str) -> bool {
    text.len() <= LONGEST && text.split('.').all(is_label)
}

/// The command with these words after its first ones, unless one of them is no name.
pub(in crate::tree) fn command(words: &str, names: &[&str], command: String) -> String {
    if names.iter().all(|name| is_plain(name)) {
        command
    } else {
        words.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_what_a_shell_would_run() {
        for name in [
            "app",
            "web-app.v1",
            "configmaps",
            "deployments.apps/app",
            "system:node",
        ] {
            assert!(is_plain(name), "{name}");
        }
        for other in [
            "", "-n", "a b", "$(id)", "`id`", "a;b", "a&b", "a|b", "a\nb", "a'b", "a\"b", "ä", "~",
            "a*",
        ] {
            assert!(!is_plain(other), "{other}");
        }
        assert!(!is_plain(&"a".repeat(254)));
    }

    #[test]
    fn labels_and_subdomains_are_those_of_dns() {
        for name in ["a", "a-b", "1", &"a".repeat(63)] {
            assert!(is_label(name) && is_subdomain(name), "{name}");
        }
        assert!(is_subdomain("apps.example.com") && !is_label("apps.example.com"));
        for other in ["", "A", "-a", "a-", "a..b", ".", &"a".repeat(64)] {
            assert!(!is_label(other) && !is_subdomain(other), "{other}");
        }
    }
}
