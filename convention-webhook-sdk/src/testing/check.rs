//! What every convention must be.

use std::fmt;
use std::pin::Pin;

use serde_json::Value;

use super::Given;
use super::difference::{difference, is_filled, leaves};
use crate::convention::{AnyConvention, Convention};
use crate::template::Template;

/// What a convention is not, and what showed it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It failed.
    Failed(String),
    /// The same request got another answer; the lines say what differs.
    NotDeterministic(String),
    /// Applied to its own answer it changed something; the lines say what.
    NotConvergent(String),
    /// It changed what the author of the template wrote; the lines say what. Where it is there for
    /// that, say so by [`Check::may_change`].
    NotConservative(String),
    /// Before and after another convention it comes to something else; the lines say what differs.
    OrderMatters(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::NotDeterministic(lines) => {
                write!(f, "answers the same request otherwise:\n{lines}")
            }
            Self::NotConvergent(lines) => write!(f, "changes its own answer:\n{lines}"),
            Self::NotConservative(lines) => {
                write!(f, "changes what the author of the template wrote:\n{lines}")
            }
            Self::OrderMatters(lines) => {
                write!(f, "comes to something else behind another:\n{lines}")
            }
        }
    }
}

/// A check of a convention, once it has something to be tried on.
pub struct Check<'c> {
    convention: &'c dyn AnyConvention,
    others: Vec<&'c dyn AnyConvention>,
    may_change: Vec<String>,
}

/// Checks that a convention is deterministic, convergent and conservative.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use convention_webhook_sdk::testing::{Fault, check, given};
/// use convention_webhook_sdk::{Applied, ConventionError, Images, Template};
///
/// async fn one_more(template: &mut Template, _: &Images) -> Result<Applied, ConventionError> {
///     let arguments = template.container("web").and_then(|web| web.get(&["args"]).cloned());
///     let mut arguments = arguments.unwrap_or_else(|| serde_json::json!([]));
///     arguments.as_array_mut().unwrap().push("--fast".into());
///     template.container_mut("web").unwrap().set_at(&["args"], arguments)?;
///     Ok(Applied::from("fast"))
/// }
///
/// let pod = given("spec: {containers: [{name: web}]}");
/// let fault = check(&one_more).faults(&pod).await.remove(0);
/// assert_eq!(fault, Fault::NotConvergent("+ spec.containers[web].args[1]: \"--fast\"\n".to_owned()));
/// # });
/// ```
pub fn check(convention: &impl Convention) -> Check<'_> {
    Check {
        convention,
        others: Vec::new(),
        may_change: Vec::new(),
    }
}

impl<'c> Check<'c> {
    /// Also that it may come before and after another one.
    #[must_use]
    pub fn beside(mut self, other: &'c impl Convention) -> Self {
        self.others.push(other);
        self
    }

    /// What it is there to change although somebody wrote it: all that begins so, as in
    /// `spec.containers[web].image`.
    #[must_use]
    pub fn may_change(mut self, path: &str) -> Self {
        self.may_change.push(path.to_owned());
        self
    }

    /// Tries it on a pod.
    ///
    /// # Panics
    ///
    /// The convention is not what it must be. The message says what it is not, and what showed it.
    #[expect(clippy::panic, reason = "called by tests")]
    pub async fn on(&self, given: &Given) {
        let faults = self.faults(given).await;
        if !faults.is_empty() {
            let told: Vec<String> = faults.iter().map(Fault::to_string).collect();
            panic!("the convention\n- {}", told.join("\n- "));
        }
    }

    /// Tries it on a pod, and says what is wrong.
    pub async fn faults(&self, given: &Given) -> Vec<Fault> {
        match self.look(given).await {
            Ok(faults) => faults,
            Err(error) => vec![Fault::Failed(error)],
        }
    }

    async fn look(&self, given: &Given) -> Result<Vec<Fault>, String> {
        let mut faults = Vec::new();
        let before = given.template().to_value();
        let (once, receipts) = apply(self.convention, given, given.template()).await?;
        let (again, same_receipts) = apply(self.convention, given, given.template()).await?;
        if again != once || receipts != same_receipts {
            let lines = exact(&once, &again);
            faults.push(Fault::NotDeterministic(format!(
                "{lines}{receipts:?}, then {same_receipts:?}\n"
            )));
        }
        let (twice, _) = apply(self.convention, given, &once).await?;
        if twice != once {
            faults.push(Fault::NotConvergent(exact(&once, &twice)));
        }
        let lost = self.lost(&before, &once.to_value());
        if !lost.is_empty() {
            faults.push(Fault::NotConservative(lost));
        }
        for other in &self.others {
            let (first, _) = apply(*other, given, &once).await?;
            let (last, _) = apply(*other, given, given.template()).await?;
            let (last, _) = apply(self.convention, given, &last).await?;
            let lines = difference(&first.to_value(), &last.to_value());
            if !lines.is_empty() {
                faults.push(Fault::OrderMatters(lines));
            }
        }
        Ok(faults)
    }

    /// What was there and is not, or is otherwise.
    fn lost(&self, before: &Value, after: &Value) -> String {
        let (before, after) = (leaves(before), leaves(after));
        let may = |path: &String| self.may_change.iter().any(|may| path.starts_with(may));
        let mut lines = String::new();
        for (path, value) in &before {
            let now = after.get(path);
            if now == Some(value) || may(path) || is_filled(path, value, &after) {
                continue;
            }
            let now = now.map_or_else(|| "gone".to_owned(), ToString::to_string);
            lines = format!("{lines}{path}: {value}, now {now}\n");
        }
        lines
    }
}

/// What differs; where it is only the order of a list, both.
fn exact(one: &Template, other: &Template) -> String {
    let (one, other) = (one.to_value(), other.to_value());
    let lines = difference(&one, &other);
    if lines.is_empty() && one != other {
        return format!("only in order:\n- {one}\n+ {other}\n");
    }
    lines
}

type Applying<'c> =
    Pin<Box<dyn Future<Output = Result<(Template, Vec<String>), String>> + Send + 'c>>;

fn apply<'c>(
    convention: &'c dyn AnyConvention,
    given: &'c Given,
    template: &'c Template,
) -> Applying<'c> {
    Box::pin(async move {
        let mut template = template.clone();
        let images = given.images();
        let applied = convention.apply_any(&mut template, &images).await;
        match applied {
            Ok(applied) => Ok((template, applied.into_names())),
            Err(error) => Err(error.to_string()),
        }
    })
}
