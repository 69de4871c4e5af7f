//! What a webhook answered.

use convention_protocol::{API_VERSION, KIND, PodConventionAnswer, PodTemplate, has_more_values};
use serde_json::Value;

/// The most values in an answer, keys included. A template that can be stored has far fewer.
const MOST_VALUES: usize = 100_000;
/// The most bytes that aliases of YAML may make.
const MOST_REPEATED: usize = 64 << 20;

/// The template that a convention made, and what it says that it did.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The whole template; nothing if the answer has none.
    pub template: Option<PodTemplate>,
    /// Names of what was done.
    pub applied: Vec<String>,
}

/// Why the body of an answer cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// There is no body.
    #[error("the answer is empty")]
    Empty,
    /// Neither JSON nor YAML, or something of another type than the protocol has.
    #[error("the answer cannot be decoded: {0}")]
    Decode(String),
    /// So many values that nobody wrote them.
    #[error("the answer has more than {MOST_VALUES} values")]
    TooManyValues,
    /// An object of another kind.
    #[error("the answer is a {api_version:?} {kind:?}, not a {API_VERSION:?} {KIND:?}")]
    Kind {
        /// `apiVersion` of the answer.
        api_version: String,
        /// `kind` of the answer.
        kind: String,
    },
}

/// Whether a status of HTTP stands for an answer. 207 is about several, so it is none.
///
/// ```
/// use conventions::answer::is_answer;
///
/// assert!(is_answer(200) && is_answer(206));
/// assert!(!is_answer(207) && !is_answer(302) && !is_answer(500));
/// ```
pub fn is_answer(status: u16) -> bool {
    (200..=206).contains(&status)
}

/// Reads the body of an answer: JSON, or YAML as the client of the API server takes it, whatever type it claims to have.
///
/// ```
/// use conventions::answer::read;
///
/// let answer = read(br#"{"status": {"template": {"spec": {"containers": []}}, "appliedConventions": ["env"]}}"#)?;
/// assert_eq!(answer.applied, ["env"]);
/// assert!(read(b"<html>").is_err());
/// # Ok::<(), conventions::answer::AnswerError>(())
/// ```
///
/// # Errors
///
/// What is wrong with it; whoever runs the webhook must correct it.
pub fn read(body: &[u8]) -> Result<Answer, AnswerError> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let text = std::str::from_utf8(body).map_err(|error| decode(&error))?;
    let answer: PodConventionAnswer = match text.trim_start().chars().next() {
        None => return Err(AnswerError::Empty),
        // It takes far more memory than its text.
        Some('{') if has_more_values(body, MOST_VALUES) => return Err(AnswerError::TooManyValues),
        Some('{') => serde_json::from_str(text).map_err(|error| decode(&error))?,
        Some(_) => {
            let value = yaml(text)?;
            if !value.is_object() {
                return Err(AnswerError::Decode("it is no object".to_owned()));
            }
            serde_json::from_value(value).map_err(|error| decode(&error))?
        }
    };
    let is = |given: &str, wanted: &str| given.is_empty() || given == wanted;
    if !is(&answer.api_version, API_VERSION) || !is(&answer.kind, KIND) {
        return Err(AnswerError::Kind {
            api_version: answer.api_version,
            kind: answer.kind,
        });
    }
    Ok(Answer {
        template: answer.status.template,
        applied: answer.status.applied_conventions.unwrap_or_default(),
    })
}

/// A document of YAML. What it repeats by aliases is bounded as what it writes.
fn yaml(text: &str) -> Result<Value, AnswerError> {
    // Nothing that is repeated is longer than the whole text.
    let repeated = MOST_REPEATED / text.len().max(1);
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: MOST_VALUES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: repeated.min(MOST_VALUES),
        },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| decode(&error))
}

/// The first line only: a parser of YAML shows what it read, which may hold anything.
fn decode(error: &dyn std::fmt::Display) -> AnswerError {
    let text = error.to_string();
    AnswerError::Decode(text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whatever_a_server_in_go_or_another_language_writes_is_read() {
        let template: PodTemplate =
            serde_json::from_value(json!({"spec": {"containers": [{"name": "a"}]}})).unwrap();
        let expected = Answer {
            template: Some(template),
            applied: vec!["x".to_owned()],
        };
        for body in [
            r#"{"status":{"template":{"spec":{"containers":[{"name":"a"}]}},"appliedConventions":["x"]}}"#,
            "\u{feff}{\"status\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\"}]}},\"appliedConventions\":[\"x\"]}}",
            r#" {"apiVersion":"webhooks.conventions.carto.run/v1alpha1","kind":"PodConventionContext","metadata":{"name":"n","creationTimestamp":null},
                "spec":{"template":"ignored","imageConfig":7},
                "status":{"template":{"metadata":{"creationTimestamp":null},"spec":{"containers":[{"name":"a"}]}},"appliedConventions":["x"]}}
            "#,
            "status:\n  appliedConventions: [x]\n  template:\n    spec:\n      containers:\n      - name: a\n",
        ] {
            assert_eq!(read(body.as_bytes()).unwrap(), expected, "{body}");
        }
    }

    #[test]
    fn an_answer_without_template_is_read_as_one() {
        for body in [
            "{}",
            r#"{"status": null}"#,
            r#"{"status": {"template": null, "appliedConventions": null}}"#,
        ] {
            let answer = read(body.as_bytes()).unwrap();
            assert_eq!(
                (answer.template, answer.applied),
                (None, Vec::new()),
                "{body}"
            );
        }
    }

    #[test]
    fn anything_else_is_refused() {
        assert_eq!(read(b""), Err(AnswerError::Empty));
        assert_eq!(read(b" \n"), Err(AnswerError::Empty));
        for body in [
            &b"{} {}"[..],
            b"{}x",
            b"{",
            b"\"text\"",
            b"[]",
            b"5",
            b"null",
            b"<html>no</html>",
            b"a: [",
            b"\xff\xfe",
            br#"{"status": 5}"#,
            br#"{"status": {"appliedConventions": "x"}}"#,
            br#"{"status": {"template": {"spec": []}}}"#,
        ] {
            let refused = read(body);
            let text = String::from_utf8_lossy(body);
            assert!(
                matches!(refused, Err(AnswerError::Decode(_))),
                "{text}: {refused:?}"
            );
        }
    }

    #[test]
    fn another_kind_is_refused() {
        for body in [
            r#"{"kind": "Status", "apiVersion": "v1"}"#,
            r#"{"kind": "PodConventionContext", "apiVersion": "webhooks.conventions.carto.run/v2"}"#,
            r#"{"kind": "Pod"}"#,
        ] {
            let refused = read(body.as_bytes());
            assert!(
                matches!(refused, Err(AnswerError::Kind { .. })),
                "{body}: {refused:?}"
            );
        }
    }

    #[test]
    fn a_flood_of_values_is_refused_before_it_takes_memory() {
        let list = |value: &str, times| vec![value; times].join(",");
        let of =
            |list: &str| format!(r#"{{"status": {{"template": {{"spec": {{"a": [{list}]}}}}}}}}"#);
        let most = MOST_VALUES - 10;
        assert!(read(of(&list("0", most)).as_bytes()).is_ok());
        for flood in [
            list("0", MOST_VALUES),
            list(r#"{"":0}"#, most / 2),
            "[".repeat(MOST_VALUES),
        ] {
            let refused = read(of(&flood).as_bytes());
            assert_eq!(refused, Err(AnswerError::TooManyValues));
        }
        let told = AnswerError::TooManyValues.to_string();
        assert_eq!(told, "the answer has more than 100000 values");
    }

    #[test]
    fn a_flood_of_values_in_yaml_is_refused_too() {
        let of = |text: &str| {
            read(format!("status:\n  template:\n    spec:\n      a:\n{text}").as_bytes())
        };
        assert!(of(&"      - 0\n".repeat(1000)).is_ok());
        let list = format!("      - &x [{}]\n", vec!["0"; 1000].join(","));
        let text = format!("      - &x {}\n", "x".repeat(4 << 20));
        for flood in [
            "      - 0\n".repeat(MOST_VALUES),
            list + &"      - *x\n".repeat(99),
            text + &"      - *x\n".repeat(99),
        ] {
            let refused = of(&flood);
            assert!(
                matches!(refused, Err(AnswerError::Decode(_))),
                "{}",
                flood.len()
            );
        }
    }

    #[test]
    fn what_could_not_be_read_is_not_shown() {
        let error = read(b"password: hunter2\n  bad: [")
            .unwrap_err()
            .to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
