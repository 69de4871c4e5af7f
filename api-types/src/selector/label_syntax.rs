//! What Kubernetes accepts as label keys and values, with its messages (those of apimachinery 0.25).

const MAX_NAME: usize = 63;
const MAX_PREFIX: usize = 253;

const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
     '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
     used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
     '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// What is wrong with the key of a label; empty when nothing is.
///
/// ```
/// use api_types::selector::label_key_errors;
///
/// assert!(label_key_errors("example.com/part").is_empty());
/// assert!(!label_key_errors("a,b").is_empty());
/// ```
pub fn label_key_errors(key: &str) -> Vec<String> {
    let parts: Vec<&str> = key.split('/').collect();
    let mut errors = Vec::new();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            errors.extend(prefix_errors(prefix));
            name
        }
        _ => {
            return vec![format!(
                "a qualified name {NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_NAME {
        errors.push(format!(
            "name part must be no more than {MAX_NAME} characters"
        ));
    }
    if !is_name(name) {
        errors.push(format!("name part {NAME_RULE}"));
    }
    errors
}

fn prefix_errors(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    let errors = subdomain_errors(prefix).into_iter();
    errors.map(|error| format!("prefix part {error}")).collect()
}

/// What is wrong with a text as a subdomain of DNS; empty when nothing is.
///
/// ```
/// use api_types::selector::subdomain_errors;
///
/// assert!(subdomain_errors("a.b-c").is_empty());
/// assert_eq!(subdomain_errors("A").len(), 1);
/// ```
pub fn subdomain_errors(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > MAX_PREFIX {
        errors.push(format!("must be no more than {MAX_PREFIX} characters"));
    }
    if !is_subdomain(text) {
        errors.push(SUBDOMAIN_RULE.to_owned());
    }
    errors
}

/// What is wrong with a label value; empty when nothing is.
pub(crate) fn value_errors(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > MAX_NAME {
        errors.push(format!("must be no more than {MAX_NAME} characters"));
    }
    if !value.is_empty() && !is_name(value) {
        errors.push(VALUE_RULE.to_owned());
    }
    errors
}

/// `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`
fn is_name(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(edge)
        && text.ends_with(edge)
        && text
            .chars()
            .all(|c| edge(c) || matches!(c, '-' | '_' | '.'))
}

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*`
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
pub(crate) fn is_dns_label(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(edge) && text.ends_with(edge) && text.chars().all(|c| edge(c) || c == '-')
}
