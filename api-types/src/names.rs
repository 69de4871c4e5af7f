//! Names, each kind of them a type of its own, checked where it is made.
//!
//! ```text
//!  object in etcd ─▶ typed kind (plain texts) ─▶ engine: ObjectName, NamespaceName, ResourceName
//!                                                           │ before it is stamped
//!                                                           ▼
//!                                                       LabelValue ─▶ labels and label selectors
//! ```
//!
//! The typed kinds of this crate keep plain texts: etcd may hold anything, and one object that does not fit must not stop
//! the watch of all others. Whoever works with an object checks its names once, at the boundary, and hands these types on.
//! A name of a wrong kind, or a text that no label can have, is then refused by the compiler instead of the API server.

use serde::Serialize;

use crate::selector::label_syntax;

/// Longest DNS-1123 subdomain.
const MAX_SUBDOMAIN: usize = 253;
/// The most characters of a DNS-1123 label, and of the value of a label.
pub const MOST_LABEL_CHARS: usize = 63;

/// A text that is no name of its kind: which, which rule it breaks, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("[{value}] is not a valid {}: it {rule}; {}", rule.subject(), rule.action())]
pub struct NameError {
    /// The rule that is broken.
    pub rule: NameRule,
    /// The text that breaks it.
    pub value: String,
}

/// What a name has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameRule {
    /// Lower case letters, digits, `-` and `.`, a letter or digit around each `.` and at both ends; 1 to 253 characters.
    Subdomain,
    /// As a subdomain, without `.`; 1 to 63 characters.
    DnsLabel,
    /// Letters, digits, `-`, `_` and `.`, a letter or digit at both ends, or nothing at all; up to 63 characters.
    LabelValue,
}

impl NameRule {
    /// Whether a text keeps the rule.
    pub fn is_kept_by(self, text: &str) -> bool {
        match self {
            Self::Subdomain => text.len() <= MAX_SUBDOMAIN && label_syntax::is_subdomain(text),
            Self::DnsLabel => text.len() <= MOST_LABEL_CHARS && label_syntax::is_dns_label(text),
            Self::LabelValue => label_syntax::value_errors(text).is_empty(),
        }
    }

    fn subject(self) -> &'static str {
        match self {
            Self::Subdomain => "object name",
            Self::DnsLabel => "namespace name",
            Self::LabelValue => "label value",
        }
    }

    fn action(self) -> &'static str {
        match self {
            Self::Subdomain | Self::DnsLabel => "rename it",
            Self::LabelValue => "shorten or rename what it is taken from",
        }
    }
}

/// What is asked, as the end of a sentence: `must be …`.
impl std::fmt::Display for NameRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Subdomain => {
                "must be 1 to 253 lower case letters, digits, '-' and '.', with a letter or digit at both ends and \
                 around each '.'"
            }
            Self::DnsLabel => {
                "must be 1 to 63 lower case letters, digits and '-', with a letter or digit at both ends"
            }
            Self::LabelValue => {
                "must be at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
            }
        })
    }
}

/// What all names have in common. They are read as text by [`as_str`](ObjectName::as_str) only, so that none passes for
/// another by accident.
macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// As text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, text: &str) -> bool {
                self.0 == text
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, text: &&str) -> bool {
                self.0 == *text
            }
        }
    };
}

/// A text that is made only if it keeps a rule.
macro_rules! checked {
    ($(#[$doc:meta])* $name:ident, $rule:expr) => {
        text_type!($(#[$doc])* $name);

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(value: String) -> Result<Self, NameError> {
                if $rule.is_kept_by(&value) {
                    Ok(Self(value))
                } else {
                    Err(NameError { rule: $rule, value })
                }
            }
        }

        impl TryFrom<&str> for $name {
            type Error = NameError;

            fn try_from(value: &str) -> Result<Self, NameError> {
                value.to_owned().try_into()
            }
        }

        impl std::str::FromStr for $name {
            type Err = NameError;

            fn from_str(value: &str) -> Result<Self, NameError> {
                value.try_into()
            }
        }
    };
}

checked! {
    /// Name of an object of ours: an owner, a blueprint or a template. A DNS-1123 subdomain of up to 253 characters, which
    /// is what the API server asks of every custom resource.
    ///
    /// ```
    /// use api_types::names::ObjectName;
    ///
    /// let name: ObjectName = "web.v2".parse()?;
    /// assert_eq!(name.as_str(), "web.v2");
    /// let error = "Web".parse::<ObjectName>().unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "[Web] is not a valid object name: it must be 1 to 253 lower case letters, digits, '-' and '.', with a letter or \
    ///      digit at both ends and around each '.'; rename it"
    /// );
    /// # Ok::<(), api_types::names::NameError>(())
    /// ```
    ObjectName, NameRule::Subdomain
}

checked! {
    /// Name of a namespace: a DNS-1123 label of up to 63 characters.
    ///
    /// ```
    /// use api_types::names::NamespaceName;
    ///
    /// assert!("team-a".parse::<NamespaceName>().is_ok());
    /// assert!("team.a".parse::<NamespaceName>().is_err());
    /// ```
    NamespaceName, NameRule::DnsLabel
}

checked! {
    /// Value of a label: at most 63 characters.
    ///
    /// It can stand in a label selector as it is: a `,` or `=` in it would select other objects.
    ///
    /// ```
    /// use api_types::names::{LabelValue, ObjectName};
    ///
    /// assert!("".parse::<LabelValue>().is_ok());
    /// assert!("a,b!=c".parse::<LabelValue>().is_err());
    /// // Not every name can be a label's value.
    /// let name: ObjectName = "n".repeat(64).parse()?;
    /// assert!(LabelValue::try_from(name.as_str()).is_err());
    /// # Ok::<(), api_types::names::NameError>(())
    /// ```
    LabelValue, NameRule::LabelValue
}

text_type! {
    /// Name of a resource (step) of a blueprint.
    ///
    /// Any text: the schema of blueprints asks nothing of it, and neither did the Go controller's. It goes into a label, so
    /// a step whose name cannot be a [`LabelValue`] fails when it is stamped, alone; the blueprint's other steps go on.
    ///
    /// ```
    /// use api_types::names::{LabelValue, ResourceName};
    ///
    /// let step = ResourceName::from("build the image");
    /// assert_eq!(step.to_string(), "build the image");
    /// assert!(LabelValue::try_from(step.as_str()).is_err());
    /// ```
    ResourceName
}

impl From<String> for ResourceName {
    fn from(name: String) -> Self {
        Self(name)
    }
}

impl From<&str> for ResourceName {
    fn from(name: &str) -> Self {
        Self(name.to_owned())
    }
}

#[cfg(test)]
mod tests;
