//! Answers the questions of `hack/oracle`: JSON documents on stdin, one answer a line on stdout.

use std::io::{BufRead as _, BufWriter, Write as _};

use serde::Deserialize;
use serde_json::{Value, json};
use template_language::interpolate::Compiled;
use template_language::jsonpath::{Path, check_unwrapped};
use template_language::{go_format, yaml_digest};

#[derive(Deserialize)]
struct Case {
    kind: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    data: Value,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let case: Case = serde_json::from_str(&line?)?;
        let answer = match answer(&case)? {
            Ok(value) => json!({"ok": value}),
            Err(text) => json!({"error": text}),
        };
        writeln!(out, "{answer}")?;
    }
    Ok(out.flush()?)
}

fn answer(case: &Case) -> Result<Result<Value, String>, String> {
    Ok(match case.kind.as_str() {
        "path" => Path::compile(&case.text)
            .evaluate(&case.data)
            .map(std::borrow::Cow::into_owned)
            .map_err(|error| error.to_string()),
        "unwrapped" => check_unwrapped(&case.text).map(|()| Value::Null),
        "tags" => Compiled::compile(&Value::from(case.text.as_str()))
            .render(&mut |path| path.evaluate(&case.data))
            .map_err(|error| error.cause.to_string()),
        "yaml" => Ok(yaml_digest::to_yaml(&case.data).into()),
        "json" => Ok(go_format::json(&case.data).into()),
        "display" => Ok(go_format::display(&case.data).into()),
        other => return Err(format!("unknown kind {other}")),
    })
}
