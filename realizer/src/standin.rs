// TEMPORARY until the peers' modules are there.
use serde_json::Value;
use std::borrow::Cow;
pub(crate) fn read<'v>(text: &str, root: &'v Value) -> Result<Cow<'v, Value>, (bool, String)> {
    let mut at = root;
    for part in text
        .trim_matches(['{', '}'])
        .trim_start_matches('.')
        .split('.')
    {
        at = at
            .get(part)
            .ok_or_else(|| (true, format!("jsonpath returned empty list: {text}")))?;
    }
    Ok(Cow::Borrowed(at))
}
pub(crate) fn render(
    t: &Value,
    at: &str,
    f: &dyn Fn(&str) -> Result<Value, String>,
) -> Result<Value, String> {
    Ok(match t {
        Value::String(s) if s.starts_with("$(") && s.ends_with(")$") && s.matches("$(").count() == 1 => f(&s[2..s.len()-2]).map_err(|e| format!("failed to recursively evaluate template: failed to interpolate template at path [{at}]: evaluate tag {s}: {e}"))?,
        Value::String(s) => {
            let mut out = String::new();
            let mut rest = s.as_str();
            while let Some(i) = rest.find("$(") {
                let Some(j) = rest[i..].find(")$") else { break };
                out.push_str(&rest[..i]);
                let v = f(&rest[i + 2..i + j]).map_err(|e| format!("failed to recursively evaluate template: failed to interpolate template at path [{at}]: interpolate tag: evaluate jsonpath: {e}"))?;
                match v { Value::String(s) => out.push_str(&s), v => out.push_str(&v.to_string()) }
                rest = &rest[i + j + 2..];
            }
            out.push_str(rest);
            Value::String(out)
        }
        Value::Array(a) => Value::Array(a.iter().enumerate().map(|(i, v)| render(v, &format!("{at}.[{i}]"), f)).collect::<Result<_, _>>()?),
        Value::Object(o) => Value::Object(o.iter().map(|(k, v)| Ok((k.clone(), render(v, &if at.is_empty() { k.clone() } else { format!("{at}.{k}") }, f)?))).collect::<Result<_, String>>()?),
        v => v.clone(),
    })
}
pub(crate) mod go_format {
    use serde_json::Value;
    pub(crate) fn display(v: &Value) -> String {
        match v {
            Value::String(s) => s.clone(),
            Value::Object(o) => {
                let mut e: Vec<_> = o.iter().collect();
                e.sort_by_key(|(k, _)| *k);
                format!(
                    "map[{}]",
                    e.into_iter()
                        .map(|(k, v)| format!("{k}:{}", display(v)))
                        .collect::<Vec<_>>()
                        .join(" ")
                )
            }
            Value::Array(a) => format!("[{}]", a.iter().map(display).collect::<Vec<_>>().join(" ")),
            Value::Null => "<nil>".into(),
            v => v.to_string(),
        }
    }
}
pub(crate) mod yaml_digest {
    use serde_json::Value;
    pub(crate) fn to_yaml(v: &Value) -> String {
        match v {
            Value::String(s) => format!("{s}\n"),
            v => format!("{v}\n"),
        }
    }
    pub(crate) fn preview(v: &Value) -> String {
        to_yaml(v)
    }
    pub(crate) fn digest(v: &Value) -> String {
        crate::canonical::digest_bytes(to_yaml(v).as_bytes())
    }
}
#[derive(Clone, Debug)]
pub(crate) struct Compiled(Value);
impl Compiled {
    pub(crate) fn new(v: &Value) -> Self {
        Self(v.clone())
    }
    pub(crate) fn template(&self) -> &Value {
        &self.0
    }
}
