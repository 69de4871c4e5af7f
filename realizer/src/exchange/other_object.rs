//! Objects that are asked for without being stamped.

use std::collections::BTreeMap;

/// Which object of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectChoice {
    /// The one with this name.
    Name(String),
    /// The only one with these labels.
    Labels(BTreeMap<String, String>),
}
