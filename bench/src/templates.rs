//! The folder `templates`: how objects look that are written, how figures are told, and the bars
//! for them.

use std::sync::LazyLock;

use anyhow::Context as _;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value, context, path_loader};
use serde::Serialize;
use serde_json::Value as Json;

use crate::report;

static ALL: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut all = Environment::new();
    all.set_loader(path_loader(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/templates"
    )));
    all.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    report::add_filters(&mut all);
    all
});

/// Values for a template or an expression.
pub(crate) fn value(values: impl Serialize) -> Value {
    Value::from(Serde(values))
}

/// A file of the folder with these values put in, which have `figures` as the name of the whole.
pub(crate) fn render(file: &str, values: impl Serialize) -> anyhow::Result<String> {
    let values = value(values);
    let text = ALL
        .get_template(file)
        .and_then(|template| template.render(context! { figures => values.clone(), ..values }));
    text.with_context(|| file.to_owned())
}

/// A text with these values put in.
pub(crate) fn fill(text: &str, values: &Value) -> anyhow::Result<String> {
    let filled = ALL.render_str(text, values.clone());
    filled.with_context(|| text.to_owned())
}

/// What an expression over these values comes to, which may be a number.
pub(crate) fn evaluate(expression: &Json, values: &Value) -> anyhow::Result<Value> {
    let text = expression.as_str();
    let text = text.map_or_else(|| expression.to_string(), str::to_owned);
    let found = ALL.compile_expression(&text);
    let found = found.and_then(|expression| expression.eval(values.clone()));
    found.with_context(|| text.clone())
}
