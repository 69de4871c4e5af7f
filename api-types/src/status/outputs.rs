//! The outputs of a resource (step), as JSON: what made all of them stands with the first one only.
//!
//! The outputs of a step are read together, so the same made them. A second copy of it is a sixth of what the entry takes,
//! and the API server decodes and validates it with each write.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{OutputStatus, Provenance};

/// An output as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'o> {
    name: &'o str,
    preview: &'o str,
    digest: &'o str,
    last_transition_time: &'o Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'o Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provenance: Option<WrittenProvenance<'o>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WrittenProvenance<'o> {
    Whole(&'o Provenance),
    /// The output before has the same.
    Same {
        identity: &'o str,
    },
}

/// An output as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read {
    name: String,
    preview: String,
    digest: String,
    last_transition_time: Time,
    current: Option<bool>,
    /// As the field of an [`OutputStatus`]: `null` is no value.
    value: Option<Value>,
    provenance: Option<ReadProvenance>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ReadProvenance {
    Whole(Box<Provenance>),
    Same { identity: String },
}

pub(super) fn serialize<S: Serializer>(
    outputs: &[OutputStatus],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let before = std::iter::once(None).chain(outputs.iter().map(|it| it.provenance.as_ref()));
    serializer.collect_seq(outputs.iter().zip(before).map(|(output, before)| Written {
        name: &output.name,
        preview: &output.preview,
        digest: &output.digest,
        last_transition_time: &output.last_transition_time,
        current: output.current,
        value: output.value.as_ref(),
        provenance: output.provenance.as_ref().map(|own| {
            if before == Some(own) {
                let identity = &own.identity;
                WrittenProvenance::Same { identity }
            } else {
                WrittenProvenance::Whole(own)
            }
        }),
    }))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<OutputStatus>, D::Error> {
    let mut outputs: Vec<OutputStatus> = Vec::new();
    for read in Vec::<Read>::deserialize(deserializer)? {
        let before = outputs.last().and_then(|it| it.provenance.as_ref());
        let provenance = match read.provenance {
            None => None,
            Some(ReadProvenance::Whole(whole)) => Some(*whole),
            // Of another identity nothing else is known: such an output is none whose making is known.
            Some(ReadProvenance::Same { identity }) => {
                before.filter(|before| before.identity == identity).cloned()
            }
        };
        outputs.push(OutputStatus {
            name: read.name,
            preview: read.preview,
            digest: read.digest,
            last_transition_time: read.last_transition_time,
            current: read.current,
            value: read.value,
            provenance,
        });
    }
    Ok(outputs)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::ResourceStatus;

    fn whole(identity: &str) -> Value {
        json!({"identity": identity, "accepted": "2026-01-02T03:04:05Z", "object": {"uid": "u", "generation": 1},
            "template": "t", "readFrom": "r", "params": "p", "inputs": [{"name": "fetch", "identity": "i"}]})
    }

    fn output(name: &str, provenance: &Value) -> Value {
        json!({"name": name, "preview": "x\n", "digest": "sha256:0", "current": true, "value": "x",
            "lastTransitionTime": "2026-01-02T03:04:05Z", "provenance": provenance})
    }

    fn read(outputs: &Value) -> ResourceStatus {
        serde_json::from_value(json!({"name": "fetch", "outputs": outputs})).unwrap()
    }

    fn identities(status: &ResourceStatus) -> Vec<Option<&str>> {
        let provenances = status.outputs.iter().map(|it| it.provenance.as_ref());
        provenances
            .map(|it| it.map(|it| it.identity.as_str()))
            .collect()
    }

    #[test]
    fn what_made_all_outputs_is_written_with_the_first_one() {
        let long = json!([output("url", &whole("a")), output("revision", &whole("a"))]);
        let short = json!([
            output("url", &whole("a")),
            output("revision", &json!({"identity": "a"}))
        ]);
        let status = read(&long);
        assert_eq!(serde_json::to_value(&status).unwrap()["outputs"], short);
        assert_eq!(read(&short), status);
    }

    #[test]
    fn what_something_else_made_is_written_whole() {
        let other = {
            let mut other = whole("a");
            other["params"] = json!("q");
            other
        };
        for second in [whole("b"), other] {
            let outputs = json!([output("url", &whole("a")), output("revision", &second)]);
            let status = read(&outputs);
            assert_eq!(serde_json::to_value(&status).unwrap()["outputs"], outputs);
        }
    }

    #[test]
    fn an_output_that_refers_to_what_is_not_told_has_no_provenance() {
        let same = |identity| json!({"identity": identity});
        let status = read(&json!([
            output("url", &same("a")),
            output("revision", &same("a"))
        ]));
        assert_eq!(identities(&status), [None, None]);
        let status = read(&json!([
            output("url", &whole("a")),
            output("revision", &same("b"))
        ]));
        assert_eq!(identities(&status), [Some("a"), None]);
    }

    #[test]
    fn outputs_that_nothing_is_told_of_are_written_as_they_always_were() {
        let outputs = json!([{"name": "url", "preview": "x\n", "digest": "sha256:0",
            "lastTransitionTime": "2026-01-02T03:04:05Z"}]);
        let status = read(&outputs);
        assert_eq!(serde_json::to_value(&status).unwrap()["outputs"], outputs);
    }
}
