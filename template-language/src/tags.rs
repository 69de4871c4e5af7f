//! Tags of a simple template that no rendering can fill, whatever owner, parameters and inputs there are.
//!
//! A template is judged alone, so only what holds for every context counts: a parameter may come from
//! the blueprint or the owner, an input from any blueprint. Each verdict on a tag is an evaluation of
//! it, by what evaluates it at stamping, so that no verdict can differ from what happens later.
//!
//! | written | verdict |
//! |---|---|
//! | `$(params[)$` | is not a valid path |
//! | `$(parms.name)$` | never has a value: there is no `parms`; did you mean `params`? |
//! | `$(workload.metadata.name)` | is no tag and stays text: a tag ends with `)$` |
//! | `$(params.name)` | nothing to say: it is Tekton's |
//! | `$(params.name)$` | nothing to say: the parameter may come |
//! | `$(name)` in `command`, `args`, `env` | nothing to say: Kubernetes expands it |
//! | texts of several lines | nothing to say of what is no tag: it is a script |
//!
//! These are warnings. A template with faults is stored and works as far as it goes.

use serde_json::{Map, Value};

use crate::interpolate::{CLOSE, Compiled, Found, OPEN};
use crate::jsonpath::{Path, PathError};
use crate::vocabulary::{Unknown, Vocabulary};

/// What is wrong with a tag, at one place of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagFault {
    /// Where in the template, such as `spec.containers[0].image`.
    pub at: String,
    /// The tag as it is written, as far as it goes.
    pub tag: String,
    /// What is wrong with it, as the rest of a sentence whose subject is the tag.
    pub problem: String,
}

/// The tags of a template that no rendering can fill, and those that are none for want of an end; in the
/// order of sorted keys.
///
/// Each place of the template has its own fault. A template without any may fail all the same, by what
/// it is rendered with.
///
/// ```
/// use serde_json::json;
/// use template_language::{interpolate::Compiled, tags, vocabulary::Vocabulary};
///
/// static NAMES: Vocabulary = Vocabulary::Names(&[("params", Vocabulary::Open)]);
/// let template = Compiled::compile(&json!({"name": "$(parms.name)$", "port": "$(params.port)$"}));
/// let faults = tags::faults(&template, &NAMES);
/// assert_eq!(faults.len(), 1);
/// assert_eq!(faults[0].at, "name");
/// assert_eq!(faults[0].problem, "never has a value: there is no [parms]; did you mean [params]?");
/// ```
pub fn faults(template: &Compiled, vocabulary: &'static Vocabulary) -> Vec<TagFault> {
    let mut faults = Vec::new();
    template.visit(&mut |at, found| match found {
        Found::Tag(path) => {
            faults.extend(fault(path, vocabulary).map(|problem| TagFault {
                at: at.to_owned(),
                tag: format!("{OPEN}{}{CLOSE}", path.source()),
                problem,
            }));
        }
        // Texts of several lines are scripts, or pipelines of others.
        Found::Text { in_lines: true, .. } => {}
        Found::Text { text, .. } => {
            let tags = unclosed(text).filter(|(place, _)| is_meant(at, place, vocabulary));
            faults.extend(tags.map(|(_, tag)| TagFault {
                at: at.to_owned(),
                tag: format!("{OPEN}{tag}"),
                problem: format!("is no tag and stays text: a tag ends with {CLOSE}"),
            }));
        }
    });
    faults
}

/// Why a tag has no value in any context.
fn fault(path: &Path, vocabulary: &'static Vocabulary) -> Option<String> {
    if let Some(error) = path.dead_end() {
        return Some(broken(path, error));
    }
    let place = path.static_prefix();
    let unknown = vocabulary.unknown(&place)?;
    // What can be there makes no difference: nothing stands at the unknown name. All that the path yields without, such as
    // a text in quotes, it yields everywhere.
    let barest = unknown.inside.iter().rev().fold(Map::new(), |below, name| {
        Map::from_iter([(name.clone(), Value::Object(below))])
    });
    path.evaluate_root(&barest).err()?;
    Some(nowhere(&unknown))
}

/// What the author of the path has to mend.
fn broken(path: &Path, error: PathError) -> String {
    let cause = match error {
        _ if path.source().contains(OPEN) => {
            format!("there is another {OPEN} in it; close each with {CLOSE}")
        }
        PathError::Empty => "it is empty".to_owned(),
        PathError::MoreQueries(_) => "there is more than one path in it".to_owned(),
        PathError::Parse { cause, .. } | PathError::Find(cause) if path.source().contains(' ') => {
            format!("{cause}; write it without spaces")
        }
        PathError::Parse { cause, .. } | PathError::Find(cause) => cause,
        other @ (PathError::DoesNotExist(_) | PathError::EmptyList(_) | PathError::TooMany(_)) => {
            other.to_string()
        }
    };
    format!("is not a valid path: {cause}")
}

fn nowhere(unknown: &Unknown<'_>) -> String {
    let Unknown {
        inside,
        word,
        known,
    } = unknown;
    let inside = match inside {
        [] => String::new(),
        names => format!(" in {}", names.join(".")),
    };
    let nearest = known
        .iter()
        .map(|name| (strsim::osa_distance(word, name), name))
        .min_by_key(|(distance, _)| *distance)
        // A third of the letters: of short words, every other one is near.
        .filter(|(distance, name)| distance * 3 <= name.len());
    let advice = match nearest {
        Some((_, name)) => format!("did you mean [{name}]?"),
        None => format!("there are {}", known.join(", ")),
    };
    format!("never has a value: there is no [{word}]{inside}; {advice}")
}

/// The places that stand behind openings which nothing closes, each also as it is written.
fn unclosed(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let openings = text.split(OPEN).skip(1);
    openings.map(|rest| {
        let ends = |next: char| !next.is_ascii_alphanumeric() && !"._-".contains(next);
        let end = rest.find(ends).unwrap_or(rest.len());
        let bracket = usize::from(rest[end..].starts_with(')'));
        (&rest[..end], &rest[..end + bracket])
    })
}

/// Fields in which Kubernetes itself replaces `$(NAME)` by the variable of that name.
const EXPANDED: [&str; 3] = ["args", "command", "env"];

/// Whether a text that is no tag can only be meant as one: `$(params.x)` is Tekton's, and `$(x)` a shell's.
fn is_meant(at: &str, place: &str, vocabulary: &'static Vocabulary) -> bool {
    let place: Vec<&str> = place.split('.').collect();
    let expands = at.split(['.', '[']).any(|field| EXPANDED.contains(&field));
    !expands && vocabulary.names(&place)
}
