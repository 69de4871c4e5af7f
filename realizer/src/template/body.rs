//! What a template renders: a document with tags, or a ytt document.

use api_types::names::ResourceName;
use serde_json::Value;

use crate::template::context::Context;
use crate::template::{own_status, ytt};
use crate::values::canonical;
use crate::{Rendered, YttCall};
use template_language::interpolate::Compiled;

/// What a template renders.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// `spec.template`.
    Simple {
        compiled: Compiled,
        /// Digest of the text, if the rendering may depend on what our own status writes change.
        seeing_digest: Option<String>,
    },
    /// `spec.ytt`.
    Ytt {
        text: String,
        digest: String,
        /// Whether the rendering may depend on what our own status writes change.
        sees_status_writes: bool,
    },
    /// Neither; no such template is admitted.
    Absent,
}

/// What came of drawing.
pub(crate) enum Drawn {
    /// The rendering, or why there is none.
    Rendered(Rendered),
    /// This run of ytt renders.
    Ytt(Box<YttCall>),
}

impl Body {
    pub(crate) fn new(template: Option<&Value>, ytt: Option<&String>) -> Self {
        match (template.filter(|template| !template.is_null()), ytt) {
            (Some(template), _) => {
                let compiled = Compiled::compile(template);
                let seeing_digest =
                    own_status::is_seen_by(&compiled).then(|| canonical::digest(template));
                Self::Simple {
                    compiled,
                    seeing_digest,
                }
            }
            (None, Some(text)) => Self::Ytt {
                text: text.clone(),
                digest: canonical::digest_bytes(text.as_bytes()),
                sees_status_writes: ytt::sees_status_writes(text),
            },
            (None, None) => Self::Absent,
        }
    }

    /// Digest of the text, if the rendering may depend on what our own status writes change.
    fn seeing_digest(&self) -> Option<&str> {
        match self {
            Self::Simple { seeing_digest, .. } => seeing_digest.as_deref(),
            Self::Ytt {
                digest,
                sees_status_writes,
                ..
            } => sees_status_writes.then_some(digest),
            Self::Absent => None,
        }
    }

    /// Renders, or says which ytt run renders; `resource` is whose run that is.
    pub(crate) fn draw(&self, context: Context<'_>, resource: &ResourceName) -> Drawn {
        match self {
            Self::Simple { compiled, .. } => {
                Drawn::Rendered(context.render(compiled).map_err(Into::into))
            }
            Self::Absent => {
                let missing = "template has neither spec.template nor spec.ytt; set exactly one";
                Drawn::Rendered(Err(missing.to_owned().into()))
            }
            Self::Ytt {
                text,
                digest,
                sees_status_writes,
            } => {
                let values = context.into_values();
                Drawn::Ytt(Box::new(YttCall {
                    resource: resource.clone(),
                    template: text.clone(),
                    template_digest: digest.clone(),
                    values_digest: ytt::values_digest(&values, *sees_status_writes),
                    values,
                }))
            }
        }
    }

    /// What it renders from, as [`Submission::basis`](crate::Submission::basis). `context` is called only for templates
    /// that see our status writes: it digests the whole context.
    pub(crate) fn basis<'c>(&self, context: impl FnOnce() -> Context<'c>) -> Option<String> {
        let digest = self.seeing_digest()?;
        Some(own_status::basis(digest, &context().into_values()))
    }
}
