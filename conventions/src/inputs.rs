//! What a template is made from, as one digest: as long as it stays the same, nobody is asked
//! again.
//!
//! It stands in status, which tenants cannot write, so it is believed after a restart. Versions of
//! objects stand for what is in them: no text of a Secret goes into it.

use std::fmt::Write as _;

use convention_protocol::PodTemplate;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// Changes with how templates are made, so that another version of the program makes them anew
/// where that matters.
const FORM: u8 = 1;

/// All that a pass is made of.
#[derive(Clone, Debug, Serialize)]
pub struct Inputs<'i> {
    /// The template as its author wrote it.
    pub template: &'i PodTemplate,
    /// The pull secrets in the order in which they are asked: name, and version if it is there.
    pub credentials: &'i [(String, Option<u64>)],
    /// The conventions in their order.
    pub conventions: &'i [Called],
    /// How images are resolved: the flags that matter.
    pub resolution: &'i str,
}

/// A convention that is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Called {
    /// Its name.
    pub name: String,
    /// Its uid: one that was made anew is another one.
    pub uid: String,
    /// Its generation: it stands for its spec.
    pub generation: i64,
    /// Its annotation [`crate::REVISION`].
    pub revision: String,
    /// What stands for the authority that is trusted, if it is not part of the spec.
    pub authority: String,
}

impl Called {
    /// A digest of this convention and the template that it is given. As long as it is the same, so
    /// is what its webhook would answer.
    pub fn digest_with(&self, template: &PodTemplate) -> String {
        digest_of(&(FORM, self, template))
    }
}

impl Inputs<'_> {
    /// The digest.
    ///
    /// ```
    /// use conventions::inputs::Inputs;
    ///
    /// let template = Default::default();
    /// let inputs = Inputs { template: &template, credentials: &[], conventions: &[], resolution: "" };
    /// let digest = inputs.digest();
    /// assert!(digest.starts_with("sha256:"));
    /// let more = [("pull".to_owned(), Some(7))];
    /// assert_ne!(Inputs { credentials: &more, ..inputs }.digest(), digest);
    /// ```
    pub fn digest(&self) -> String {
        digest_of(&(FORM, self))
    }

    /// The digest of what a template becomes: credentials and authorities aside, which are
    /// exchanged without anybody wanting another template.
    ///
    /// ```
    /// use conventions::inputs::Inputs;
    ///
    /// let template = Default::default();
    /// let inputs = Inputs { template: &template, credentials: &[], conventions: &[], resolution: "" };
    /// let more = [("pull".to_owned(), Some(7))];
    /// let digest = inputs.digest_of_contents();
    /// assert_ne!(digest, inputs.digest());
    /// assert_eq!(Inputs { credentials: &more, ..inputs }.digest_of_contents(), digest);
    /// ```
    pub fn digest_of_contents(&self) -> String {
        let bare = |called: &Called| Called {
            authority: String::new(),
            ..called.clone()
        };
        let conventions: Vec<Called> = self.conventions.iter().map(bare).collect();
        digest_of(&(FORM, self.template, conventions, self.resolution))
    }
}

/// The digest of a template.
pub fn template_digest(template: &PodTemplate) -> String {
    digest_of(template)
}

fn digest_of(value: &impl Serialize) -> String {
    // Only texts, numbers and lists: it cannot fail.
    digest_of_bytes(&serde_json::to_vec(value).unwrap_or_default())
}

/// The digest of bytes.
pub fn digest_of_bytes(bytes: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whatever_a_template_is_made_from_changes_the_digest() {
        let template = |name: &str| -> PodTemplate {
            serde_json::from_value(json!({"spec": {"containers": [{"name": name}]}})).unwrap()
        };
        let called = || Called {
            name: "a".to_owned(),
            uid: "u".to_owned(),
            generation: 1,
            revision: String::new(),
            authority: String::new(),
        };
        let digest = |template: &PodTemplate, called: Vec<Called>, secret: Option<u64>| {
            let credentials = [("pull".to_owned(), secret)];
            let inputs = Inputs {
                template,
                credentials: &credentials,
                conventions: &called,
                resolution: "",
            };
            inputs.digest()
        };
        let (a, b) = (template("a"), template("b"));
        let first = digest(&a, vec![called()], Some(1));
        assert_eq!(first, digest(&a, vec![called()], Some(1)));
        let other = |change: fn(&mut Called)| {
            let mut called = called();
            change(&mut called);
            vec![called]
        };
        for changed in [
            digest(&b, vec![called()], Some(1)),
            digest(&a, vec![called()], Some(2)),
            digest(&a, vec![called()], None),
            digest(&a, Vec::new(), Some(1)),
            digest(&a, vec![called(), called()], Some(1)),
            digest(&a, other(|it| it.name = "b".to_owned()), Some(1)),
            digest(&a, other(|it| it.uid = "v".to_owned()), Some(1)),
            digest(&a, other(|it| it.generation = 2), Some(1)),
            digest(&a, other(|it| it.revision = "2".to_owned()), Some(1)),
            digest(&a, other(|it| it.authority = "x".to_owned()), Some(1)),
        ] {
            assert_ne!(changed, first);
        }
    }

    #[test]
    fn what_a_convention_was_given_and_which_it_is_tell_one_call_from_another() {
        let template = |name: &str| -> PodTemplate {
            serde_json::from_value(json!({"spec": {"containers": [{"name": name}]}})).unwrap()
        };
        let called = |generation| Called {
            name: "a".to_owned(),
            uid: "u".to_owned(),
            generation,
            revision: String::new(),
            authority: String::new(),
        };
        let first = called(1).digest_with(&template("a"));
        assert_eq!(called(1).digest_with(&template("a")), first);
        assert_ne!(called(1).digest_with(&template("b")), first);
        assert_ne!(called(2).digest_with(&template("a")), first);
    }
}
