//! What came of a wish to change something, and the receipts for it.

/// What came of a wish to change a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// The template was changed.
    Made,
    /// It was as wished before.
    Already,
    /// Somebody wanted it otherwise, and that was kept.
    Kept,
}

impl Change {
    /// Whether the template was changed.
    pub fn is_made(self) -> bool {
        self == Self::Made
    }

    /// Whether the template is now as it was wished: it was changed, or nothing was to be done.
    pub fn is_in_force(self) -> bool {
        self != Self::Kept
    }

    /// What came of two wishes: a change if either was one, else kept if either was.
    ///
    /// ```
    /// use convention_webhook_sdk::Change;
    ///
    /// assert_eq!(Change::Made.and(Change::Kept), Change::Made);
    /// assert_eq!(Change::Already.and(Change::Kept), Change::Kept);
    /// ```
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Made, _) | (_, Self::Made) => Self::Made,
            (Self::Kept, _) | (_, Self::Kept) => Self::Kept,
            (Self::Already, Self::Already) => Self::Already,
        }
    }
}

/// The receipts of a convention: names for what it did, in order, each once.
///
/// The controller writes them to annotation `conventions.carto.run/applied-conventions` of the
/// template, each behind the name of the ClusterPodConvention.
///
/// ```
/// use convention_webhook_sdk::{Applied, Change};
///
/// let mut applied = Applied::nothing();
/// applied.record("add-env", Change::Already);
/// assert!(applied.is_empty());
/// applied.record("add-env", Change::Made);
/// applied.record("add-env", Change::Made);
/// assert_eq!(applied.names(), ["add-env"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied(Vec<String>);

impl Applied {
    /// No receipts yet.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Adds a name if the template was changed, and hands the change on.
    pub fn record(&mut self, name: impl Into<String>, change: Change) -> Change {
        if change.is_made() {
            self.add(name);
        }
        change
    }

    /// Adds a name, unless it is there.
    pub fn add(&mut self, name: impl Into<String>) {
        let name = name.into();
        if !self.0.contains(&name) {
            self.0.push(name);
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names, in order.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The names, in order.
    pub fn into_names(self) -> Vec<String> {
        self.0
    }
}

/// ```
/// use convention_webhook_sdk::Applied;
///
/// assert_eq!(Applied::from("dumper").names(), ["dumper"]);
/// ```
impl From<&str> for Applied {
    fn from(name: &str) -> Self {
        Self(vec![name.to_owned()])
    }
}

impl<N: Into<String>> FromIterator<N> for Applied {
    fn from_iter<T: IntoIterator<Item = N>>(names: T) -> Self {
        let mut applied = Self::nothing();
        names.into_iter().for_each(|name| applied.add(name));
        applied
    }
}
