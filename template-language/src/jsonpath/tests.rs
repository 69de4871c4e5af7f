//! The vectors of docs/behaviour/paths.md#results, and laws. How it compares with the Go library is
//! in `hack/oracle`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn data() -> Value {
    json!({
        "s": "str", "n": 5, "nil": null, "m": {"k": "v"}, "l": [1, 2], "el": [],
        "lo": [{"t": "A", "s": "True"}, {"t": "B"}],
        "items": [{"x": "1"}, {"y": "2"}],
        "m2": {"a.b/c": 1, "with space": 2},
        "f": [{"v": 1.5, "i": 1}, {"v": 2.5, "i": 2}],
    })
}

fn evaluate(expression: &str) -> Result<Value, String> {
    let data = data();
    let path = Path::compile(expression);
    let value = path.evaluate(&data).map(Cow::into_owned);
    let Value::Object(entries) = &data else {
        unreachable!("it is an object")
    };
    let from_root = path.evaluate_root(entries).map(Cow::into_owned);
    assert_eq!(value, from_root, "{expression}");
    value.map_err(|error| error.to_string())
}

#[test]
fn paths_find_the_values_of_the_reference() {
    for (expression, expected) in [
        ("nil", json!(null)),
        ("s", json!("str")),
        (".s", json!("str")),
        ("{.s}", json!("str")),
        (".s}", json!("str")),
        ("l[0]", json!(1)),
        ("l[-1]", json!(2)),
        ("l[0:1]", json!(1)),
        ("l[]", json!(1)),
        ("l[::2]", json!(1)),
        (r#"lo[?(@.t=="A")].s"#, json!("True")),
        ("lo[?(@.s=='True')].t", json!("A")),
        ("lo[?(@.s)].t", json!("A")),
        (r#"lo[?(@.t!="A")].t"#, json!("B")),
        ("items[*].x", json!("1")),
        ("m.*", json!("v")),
        ("..k", json!("v")),
        ("m['k']", json!("v")),
        ("m['k','z']", json!("v")),
        (r"m2['a\.b/c']", json!(1)),
        (r"m2.a\.b/c", json!(1)),
        ("f[?(@.v > 2.0)].i", json!(2)),
        ("f[?(@.i<=1)].v", json!(1.5)),
    ] {
        assert_eq!(evaluate(expression), Ok(expected), "{expression}");
    }
}

#[test]
fn what_is_not_there_is_absent() {
    for expression in [
        "nil.x",
        "s.x",
        "n.x",
        "m.k.z",
        "l.length",
        "el[*]",
        r#"lo[?(@.t=="Z")].s"#,
        r#"lo[?(@.t=="B")].s"#,
        "m2['a.b/c']",
        "@.s",
        "$",
        "..nothing",
        "nil[0]",
        "$.m.gone",
        "$['m'].k.z",
        "$.lo[?@.t=='Z']",
    ] {
        let error = Path::compile(expression).evaluate(&data()).unwrap_err();
        assert!(error.is_absent(), "{expression}: {error}");
        assert_eq!(
            error.to_string(),
            format!("jsonpath returned empty list: {expression}")
        );
    }
}

#[test]
fn wrong_paths_have_the_texts_of_the_reference() {
    for (expression, expected) in [
        ("", "empty jsonpath not allowed"),
        (
            "l[9]",
            "evaluate: failed to find results: array index out of bounds: index 9, length 2",
        ),
        (
            "el[0]",
            "evaluate: failed to find results: array index out of bounds: index 0, length 0",
        ),
        (
            "l[-9]",
            "evaluate: failed to find results: array index out of bounds: index -7, length 2",
        ),
        ("l[*]", "too many results for the query: l[*]"),
        ("lo[0,1].t", "too many results for the query: lo[0,1].t"),
        ("$.l[*]", "too many results for the query: $.l[*]"),
        (
            "m[0]",
            "evaluate: failed to find results: map[string]interface {} is not array or slice",
        ),
        (
            "s[0]",
            "evaluate: failed to find results: string is not array or slice",
        ),
        (
            r#"m["k"]"#,
            r#"evaluate: failed to parse jsonpath '{.m["k"]}': invalid array index "k""#,
        ),
        (
            "m2['with space']",
            "evaluate: failed to find results: unrecognized identifier space",
        ),
        (
            "$s",
            "evaluate: failed to find results: unrecognized identifier s",
        ),
        (
            " s",
            "evaluate: failed to find results: unrecognized identifier s",
        ),
        (
            "a{",
            "evaluate: failed to parse jsonpath '{.a{}': unrecognized character in action: U+007B '{'",
        ),
        (
            "a\u{7}\t",
            "evaluate: failed to parse jsonpath '{.a\u{7}\t}': unrecognized character in action: U+0009",
        ),
        (
            "m[?(@.k)]",
            "evaluate: failed to find results: map[k:v] is not array or slice and cannot be filtered",
        ),
        (
            "lo[?(@.t==1)]",
            "evaluate: failed to find results: incompatible types for comparison",
        ),
        (
            "lo[?(@==1)]",
            "evaluate: failed to find results: invalid type for comparison",
        ),
        (
            r#"lo[?(@.t<>"A")]"#,
            "evaluate: failed to find results: unrecognized filter operator <>",
        ),
        (
            "lo[?(@.t",
            "evaluate: failed to parse jsonpath '{.lo[?(@.t}': unterminated filter",
        ),
        ("s}{.n", "evaluate: more queries than expected: s}{.n"),
        (
            "s}{.l[9]",
            "evaluate: failed to find results: array index out of bounds: index 9, length 2",
        ),
        (
            "l[*]}{range @",
            "evaluate: more queries than expected: l[*]}{range @",
        ),
        (
            "l end",
            "evaluate: failed to find results: not in range, nothing to end",
        ),
        (
            "....a",
            "evaluate: failed to parse jsonpath '{....a}': invalid multiple recursive descent",
        ),
    ] {
        assert_eq!(
            evaluate(expression),
            Err(expected.to_owned()),
            "{expression}"
        );
    }
}

#[test]
fn an_existence_filter_passes_what_fails_behind_a_value() {
    // The index fails on the text that `s` holds, and upstream takes the text for a result.
    assert_eq!(evaluate("lo[?(@.s[9])].t"), Ok(json!("A")));
}

#[test]
fn paths_with_a_root_are_rfc_9535() {
    for (expression, expected) in [
        ("$.s", json!("str")),
        ("$['m2']['a.b/c']", json!(1)),
        ("$.lo[?@.t=='B' || @.s=='x'].t", json!("B")),
        ("$.lo[?length(@.s)==4].t", json!("A")),
        ("$.lo[?@.t == $.lo[0].t].s", json!("True")),
        ("$..k", json!("v")),
        ("$.l[9]", json!("absent")),
    ] {
        let result = evaluate(expression);
        if expected == "absent" {
            assert!(
                result
                    .unwrap_err()
                    .starts_with("jsonpath returned empty list")
            );
        } else {
            assert_eq!(result, Ok(expected), "{expression}");
        }
    }
    for (expression, cause) in [
        ("$.s[", "expected selector at character 5"),
        ("$.s[\n", "expected selector"),
    ] {
        assert_eq!(
            evaluate(expression),
            Err(format!(
                "evaluate: failed to parse jsonpath '{expression}': {cause}"
            ))
        );
    }
    for expression in [
        "$.a-b",
        "$.a\n\n[",
        "$.a[?length(@.b]",
        "$['a'",
        "$.a[99999999999999999999]",
    ] {
        let cause = check_field(expression).unwrap_err();
        assert!(!cause.contains(char::is_control), "{cause:?}");
    }
}

#[test]
fn path_fields_take_the_old_forms_or_say_what_to_write() {
    for expression in [".m.k", "m.k", "{.m.k}", "$(m.k)$", "$(.m.k)$", " .m.k "] {
        let path = Path::compile_field(expression).unwrap();
        assert_eq!(path.evaluate(&data()), Ok(Cow::Owned(json!("v"))));
        assert_eq!(path.source(), expression);
    }
    let error =
        Path::compile_field(r#"status.conditions.#(type=="Succeeded").status"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"`status.conditions.#(type=="Succeeded").status` is not JSONPath; write `status.conditions[?(@.type=="Succeeded")].status`"#
    );
    let keyed = json!({"m": {"see #(1)": "v"}, "l": [{"t": "see.#(1)", "v": "v"}]});
    for expression in [r"m['see\ #(1)']", r#"l[?(@.t=="see.#(1)")].v"#] {
        let path = Path::compile_field(expression).unwrap();
        assert_eq!(
            path.evaluate(&keyed),
            Ok(Cow::Owned(json!("v"))),
            "{expression}"
        );
    }
    let error = Path::compile_field("$(a.b.gone)$")
        .unwrap()
        .evaluate(&data())
        .unwrap_err();
    assert_eq!(error.to_string(), "jsonpath returned empty list: a.b.gone");
    assert!(Path::compile_field("a{").is_err());
}

#[test]
fn without_wrapping_only_braces_can_be_wrong() {
    assert_eq!(
        check_unwrapped("spec.env[0].{{}}"),
        Err("unrecognized character in action: U+007B '{'".to_owned())
    );
    for expression in ["spec.env[0]..[[", "", "{.a}x{.b}"] {
        assert_eq!(check_unwrapped(expression), Ok(()), "{expression}");
    }
    assert_eq!(check_unwrapped("x{.a"), Err("unclosed action".to_owned()));
    assert_eq!(
        check_field("a{"),
        Err("unrecognized character in action: U+007B '{'".to_owned())
    );
    assert_eq!(
        check_field(""),
        Err("empty jsonpath not allowed".to_owned())
    );
    assert_eq!(check_field("a.b"), Ok(()));
    for expression in ["$(m.k)$", "$(.m.k)$", " .m.k "] {
        assert_eq!(check_field(expression), Ok(()), "{expression}");
    }
    assert_eq!(
        check_field(r#"conditions.#(type=="Ready").status"#),
        Err(r#"`conditions.#(type=="Ready").status` is not JSONPath; write `conditions[?(@.type=="Ready")].status`"#.to_owned())
    );
}

#[test]
fn the_static_prefix_is_what_must_be_kept() {
    for (expression, expected) in [
        (".status.artifact.url", &["status", "artifact", "url"][..]),
        (
            r#"status.conditions[?(@.type=="Ready")].status"#,
            &["status", "conditions"],
        ),
        ("..k", &[]),
        ("$.a['b'][0].c", &["a", "b"]),
        ("$.a[?@.x == $.b]", &[]),
        ("a{", &[]),
        (".a}{.b", &[]),
    ] {
        assert_eq!(
            Path::compile(expression).static_prefix(),
            expected,
            "{expression}"
        );
    }
}

#[test]
fn paths_that_multiply_end_soon() {
    let mut nested = json!([1, 2, 3, 4, 5, 6, 7, 8]);
    for _ in 0..6 {
        nested = json!([nested, nested, nested]);
    }
    let functions = format!("$[?{}1", "length(".repeat(100));
    let unions = "[0,0,0,0,0,0,0,0]".repeat(40);
    let start = Instant::now();
    for expression in [
        "..[*]..[*]..[*]..[*]",
        "..*..*..*..*",
        &unions,
        &functions,
        &"[".repeat(1000),
        &"..a".repeat(5000),
    ] {
        assert!(
            Path::compile(expression).evaluate(&nested).is_err(),
            "{expression}"
        );
    }
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn a_context_is_not_copied_for_a_name() {
    struct Names(BTreeMap<&'static str, Value>);
    impl Root for Names {
        fn get(&self, key: &str) -> Option<&Value> {
            self.0.get(key)
        }
        fn entries(&self) -> Vec<(&str, &Value)> {
            panic!("all entries were asked for")
        }
    }
    let root = Names(BTreeMap::from([("a", json!({"b": [1, 2]}))]));
    for (expression, expected) in [
        ("a.b[1]", json!(2)),
        ("$.a.b[0]", json!(1)),
        ("$['a']['b'][-1]", json!(2)),
    ] {
        let path = Path::compile(expression);
        let value = path.evaluate_root(&root).unwrap();
        assert!(matches!(value, Cow::Borrowed(_)), "{expression} was copied");
        assert_eq!(*value, expected);
    }
    assert!(
        Path::compile("b.c")
            .evaluate_root(&root)
            .unwrap_err()
            .is_absent()
    );
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abk]", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_expression_panics(
        expression in r#"([$().\[\]?@'"*,:{}abk0-2 =<>!\\\n-]|\.\.|\[\?\(@|\)\]|\PC){0,24}"#,
        data in document(),
    ) {
        let path = Path::compile(&expression);
        let result = path.evaluate(&data);
        prop_assert_eq!(path.evaluate(&data), result);
        let _ = (path.static_prefix(), check_unwrapped(&expression), Path::compile_field(&expression).is_ok());
    }

    #[test]
    fn keeping_the_static_prefix_keeps_the_result(
        expression in r"(\.[abk]){1,3}(\[\*\]|\[0\]|\[-1\]|\.\*|\.\.k|\[\?\(@\.a\)\]){0,2}",
        data in document(),
    ) {
        let path = Path::compile(&expression);
        let mut kept = json!({});
        let prefix = path.static_prefix();
        if let Some(value) = prefix.iter().try_fold(&data, |at, key| at.get(key)) {
            let mut slot = &mut kept;
            for key in &prefix {
                slot = &mut slot[key];
            }
            *slot = value.clone();
        }
        prop_assert_eq!(path.evaluate(&kept).ok(), path.evaluate(&data).ok());
    }

    /// Where the two dialects mean the same, the other implementation is a second opinion.
    #[test]
    fn the_shared_part_of_the_dialects_gives_the_same(
        expression in r"\.[abk](\.[abk]|\['[abk]'\]|\[0\]|\[\*\]){0,3}(\.\.[abk])?(\.[abk]|\['[abk]'\]){1,2}",
        data in document(),
    ) {
        let ours = Path::compile(&expression);
        let theirs = Path::compile(&format!("${expression}"));
        match ours.evaluate(&data) {
            // An index out of range, or of something else than a list, is an error in the old dialect only.
            Err(PathError::Find(_) | PathError::EmptyList(_)) => {}
            Ok(value) => prop_assert_eq!(Ok(value), theirs.evaluate(&data)),
            Err(error) => {
                let other = theirs.evaluate(&data).unwrap_err();
                prop_assert_eq!(error.is_absent(), other.is_absent());
            }
        }
    }
}
