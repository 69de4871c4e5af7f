//! The vectors of docs/behaviour/tags.md#strings, and laws.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn context() -> Value {
    json!({"params": {
        "a-b": 1, "a_b": "us", "t": "$(params.a-b)$", "o": {"z": 1, "a": "<&>"}, "big": 1_000_000, "n": null,
    }})
}

fn render(template: &Value) -> Result<Value, String> {
    let context = context();
    Compiled::compile(template)
        .render(&mut |path| path.evaluate(&context))
        .map_err(|error| error.to_string())
}

#[test]
fn tags_take_the_values_of_the_reference() {
    for (template, expected) in [
        ("$(params.a-b)$", json!(1)),
        ("x$(params.big)$", json!("x1000000")),
        ("$(params.a_b)$$(params.a_b)$", json!("usus")),
        ("$$(params.a_b)$", json!("$us")),
        (r"\$(params.a_b)$", json!(r"\us")),
        ("$(params.a_b)$ ", json!("us ")),
        ("[$(params.a-b)$]", json!("[1]")),
        (
            "x$(params.o)$",
            json!(r#"x{"a":"\u003c\u0026\u003e","z":1}"#),
        ),
        ("$(params.t)$", json!("$(params.a-b)$")),
        ("x $(params.t)$", json!("x $(params.a-b)$")),
        ("$(unclosed", json!("$(unclosed")),
        ("$(params.a_b)$ $(unclosed", json!("us $(unclosed")),
        ("a $(params.a_b) b", json!("a $(params.a_b) b")),
        ("$(.params.a_b)$", json!("us")),
        ("$({.params.a_b})$", json!("us")),
        ("$(params.n)$", Value::Null),
        ("$(params.o)$", json!({"z": 1, "a": "<&>"})),
        ("$($.params.a_b)$", json!("us")),
    ] {
        assert_eq!(render(&json!(template)), Ok(expected), "{template}");
    }
}

#[test]
fn a_broken_tag_says_what_and_where() {
    for (template, expected) in [
        ("$()$", "evaluate tag $()$: empty jsonpath not allowed"),
        (
            "x$()$",
            "interpolate tag: evaluate jsonpath: empty jsonpath not allowed",
        ),
        (
            "$( params.a_b )$",
            "evaluate tag $( params.a_b )$: evaluate: failed to find results: unrecognized identifier params",
        ),
        (
            "$($(params.a_b)$)$",
            "interpolate tag: evaluate jsonpath: evaluate: failed to parse jsonpath '{.$(params.a_b}': unrecognized \
             character in action: U+0028 '('",
        ),
        (
            "$(params.a_b)$ and )$",
            "evaluate tag $(params.a_b)$ and )$: evaluate: failed to find results: unrecognized identifier and",
        ),
        (
            "x-$(params.n)$",
            "interpolate tag: tag must not point to nil value: params.n",
        ),
        (
            "$(params.gone)$",
            "evaluate tag $(params.gone)$: jsonpath returned empty list: params.gone",
        ),
        (
            "a$(params.gone)$",
            "interpolate tag: evaluate jsonpath: jsonpath returned empty list: params.gone",
        ),
        (
            "$(params[*])$",
            "evaluate tag $(params[*])$: evaluate: failed to find results: map[string]interface {} is not array or slice",
        ),
    ] {
        let error = render(&json!({"data": {"foo": template}})).unwrap_err();
        let expected = format!(
            "failed to recursively evaluate template: failed to interpolate template at path [data.foo]: {expected}"
        );
        assert!(error.starts_with(&expected), "{template}: {error}");
    }
}

#[test]
fn the_location_names_keys_and_indexes() {
    for (template, location) in [
        (json!({"key": "$(gone)$"}), "key"),
        (
            json!({"spec": {"list": [{"name": "$(gone)$"}]}}),
            "spec.list[0].name",
        ),
        (json!([1, ["$(gone)$"]]), "[1][0]"),
        (json!("$(gone)$"), ""),
    ] {
        let error = Compiled::compile(&template)
            .render(&mut |path| path.evaluate(&Value::Null))
            .unwrap_err();
        assert_eq!(error.at, location);
        let TagError::Single { cause, .. } = error.cause else {
            panic!("{location}: {error}");
        };
        assert!(cause.is_absent(), "{location}: {cause}");
    }
}

#[test]
fn the_first_error_is_that_of_the_smallest_key() {
    let error = render(&json!({"z": "$()$", "a": "$(gone)$", "m": "$(gone)$"})).unwrap_err();
    assert!(error.contains("[a]"), "{error}");
}

#[test]
fn keys_numbers_and_empty_lists_are_copied() {
    let template = json!({"$(params.a_b)$": "$(params.a_b)$", "empty": [], "n": 5, "f": 1.5, "b": true, "null": null});
    let expected =
        json!({"$(params.a_b)$": "us", "empty": [], "n": 5, "f": 1.5, "b": true, "null": null});
    assert_eq!(render(&template), Ok(expected));
}

#[test]
fn a_double_without_fraction_is_stamped_as_an_integer() {
    let context = json!({"a": {"x": [5.0, -0.0, 1.5, 1e300]}});
    let rendered = Compiled::compile(&json!({"tag": "$(a)$", "literal": 3.0}))
        .render(&mut |path| path.evaluate(&context))
        .unwrap();
    assert_eq!(
        rendered.to_string(),
        r#"{"literal":3,"tag":{"x":[5,0,1.5,1e+300]}}"#
    );
}

#[test]
fn the_paths_say_what_a_template_mentions() {
    let template = Compiled::compile(
        &json!({"b": "$(params.x)$", "a": ["$(workload.metadata.name)$-$(params.y)$"]}),
    );
    let sources: Vec<&str> = template.paths().into_iter().map(Path::source).collect();
    assert_eq!(sources, ["workload.metadata.name", "params.y", "params.x"]);
}

fn json_without_tags() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z$() .]{0,8}"
            .prop_filter("no tag", |text| !text.contains("$("))
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z$()]{0,4}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_template_without_tags_renders_as_it_is(template in json_without_tags()) {
        let rendered = Compiled::compile(&template).render(&mut |path| path.evaluate(&Value::Null));
        prop_assert_eq!(rendered, Ok(template));
    }

    #[test]
    fn a_single_tag_keeps_the_type(value in json_without_tags()) {
        let context = json!({"params": {"p": value}});
        let rendered = Compiled::compile(&json!(["$(params.p)$"])).render(&mut |path| path.evaluate(&context));
        prop_assert_eq!(rendered, Ok(json!([context["params"]["p"]])));
    }

    #[test]
    fn no_string_makes_rendering_panic(text in r#"([$().\[\]?@'"*,:{}a-c0-2 =\\-]|\PC){0,24}"#) {
        let context = context();
        drop(Compiled::compile(&json!({"k": text})).render(&mut |path| path.evaluate(&context)));
    }
}
