//! What a convention is.

use std::pin::Pin;

use crate::change::Applied;
use crate::error::ConventionError;
use crate::images::Images;
use crate::template::Template;

/// A convention: it changes a pod template by what it knows of it and of its images.
///
/// Any `async` function of this shape is one, and any type that implements the trait, for instance
/// one with settings.
///
/// It must be
/// - **deterministic**: the same template and images give the same answer;
/// - **convergent**: applied to its own answer it changes nothing;
/// - **conservative**: what the author of the template wrote stays, unless the convention is there
///   to change just that;
/// - **free of effects**: it is called as often as anybody likes.
///
/// The module `testing` (feature `testing`) checks this.
///
/// ```
/// use convention_webhook_sdk::{Applied, Convention, ConventionError, Images, Template};
///
/// /// A convention with settings.
/// struct Team(String);
///
/// impl Convention for Team {
///     async fn apply(&self, template: &mut Template, _: &Images) -> Result<Applied, ConventionError> {
///         let mut applied = Applied::nothing();
///         applied.record("team", template.default_label("example.com/team", &self.0));
///         Ok(applied)
///     }
/// }
///
/// /// A convention without.
/// async fn web(template: &mut Template, _: &Images) -> Result<Applied, ConventionError> {
///     let mut applied = Applied::nothing();
///     applied.record("web", template.default_label("example.com/tier", "web"));
///     Ok(applied)
/// }
///
/// fn takes(_: impl Convention) {}
/// takes(Team("blue".to_owned()));
/// takes(web);
/// takes(async |template: &mut Template, _: &Images| {
///     template.set_label("a", "b");
///     Ok(Applied::from("label"))
/// });
/// ```
pub trait Convention: Send + Sync + 'static {
    /// Changes the template, and says what it did.
    ///
    /// # Errors
    ///
    /// Why the template cannot be served. The author of the PodIntent reads it.
    fn apply(
        &self,
        template: &mut Template,
        images: &Images,
    ) -> impl Future<Output = Result<Applied, ConventionError>> + Send;
}

/// An `async` function that is a [`Convention`]. Nobody implements this by hand.
pub trait ConventionFn<'c>: Send + Sync + 'static {
    /// What the function returns.
    type Applying: Future<Output = Result<Applied, ConventionError>> + Send + 'c;

    /// Calls the function.
    fn call(&self, template: &'c mut Template, images: &'c Images) -> Self::Applying;
}

impl<'c, F, R> ConventionFn<'c> for F
where
    F: Fn(&'c mut Template, &'c Images) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Applied, ConventionError>> + Send + 'c,
{
    type Applying = R;

    fn call(&self, template: &'c mut Template, images: &'c Images) -> R {
        self(template, images)
    }
}

impl<F> Convention for F
where
    F: for<'c> ConventionFn<'c>,
{
    async fn apply(
        &self,
        template: &mut Template,
        images: &Images,
    ) -> Result<Applied, ConventionError> {
        self.call(template, images).await
    }
}

/// A convention whose type is not known.
pub(crate) trait AnyConvention: Send + Sync + 'static {
    fn apply_any<'c>(
        &'c self,
        template: &'c mut Template,
        images: &'c Images,
    ) -> Pin<Box<dyn Future<Output = Result<Applied, ConventionError>> + Send + 'c>>;
}

impl<C: Convention> AnyConvention for C {
    fn apply_any<'c>(
        &'c self,
        template: &'c mut Template,
        images: &'c Images,
    ) -> Pin<Box<dyn Future<Output = Result<Applied, ConventionError>> + Send + 'c>> {
        Box::pin(self.apply(template, images))
    }
}
