use serde_json::json;

use super::*;

/// One letter per level; `S.value` and `S.default` as in the truth table of
/// docs/behaviour/context.md#params.
fn merged(levels: &[&str]) -> Option<Value> {
    of_levels(levels, |params| {
        let param = params.get("p")?;
        Some(param.value.clone().into_owned())
    })
}

fn of_levels<T>(levels: &[&str], read: impl Fn(&BTreeMap<&str, Param<'_>>) -> T) -> T {
    let (mut template, mut chain, mut step, mut owner) = (vec![], vec![], vec![], vec![]);
    let param = |level: &str, text: &str| {
        let value = Some(json!(text));
        let (value, default) = if level[1..] == *".value" {
            (value, None)
        } else {
            (None, value)
        };
        BlueprintParam {
            name: "p".to_owned(),
            value,
            default,
        }
    };
    for level in levels {
        match &level[..1] {
            "T" => template.push(TemplateParam {
                name: "p".to_owned(),
                default: json!("T"),
            }),
            "S" => chain.push(param(level, "S")),
            "R" => step.push(param(level, "R")),
            _ => owner.push(OwnerParam {
                name: "p".to_owned(),
                value: json!("W"),
            }),
        }
    }
    read(&merge(&template, &chain, &step, &owner))
}

fn value(params: &BTreeMap<&str, Param<'_>>) -> Value {
    params["p"].value.clone().into_owned()
}

#[test]
fn precedence_is_that_of_the_truth_table() {
    let cases: [(&[&str], &str); 13] = [
        (&["T"], "T"),
        (&["T", "W"], "W"),
        (&["T", "S.default", "R.default", "W"], "W"),
        (&["T", "S.default", "W"], "W"),
        (&["T", "R.default", "W"], "W"),
        (&["T", "S.default", "R.default"], "R"),
        (&["T", "S.default", "R.value", "W"], "R"),
        (&["T", "S.value", "R.default", "W"], "W"),
        (&["T", "S.value", "R.value", "W"], "R"),
        (&["T", "S.value", "W"], "S"),
        (&["T", "R.value", "W"], "R"),
        (&["S.default", "R.default", "W"], "W"),
        (&["T", "S.default"], "S"),
    ];
    for (levels, expected) in cases {
        assert_eq!(merged(levels), Some(json!(expected)), "{levels:?}");
    }
}

/// The last row of the truth table.
#[test]
fn an_owner_param_that_is_an_object_passes_through_whole() {
    let object = json!({"a": {"b": [1, null, {"c": "d"}]}, "e": {}});
    let template = [TemplateParam {
        name: "p".to_owned(),
        default: json!({"a": "T", "t": 1}),
    }];
    let chain = [BlueprintParam {
        name: "p".to_owned(),
        value: None,
        default: Some(json!({"a": {"b": "S"}, "s": 1})),
    }];
    let owner = [OwnerParam {
        name: "p".to_owned(),
        value: object.clone(),
    }];
    assert_eq!(value(&merge(&template, &chain, &[], &owner)), object);
}

/// Letters as in the truth table, and whether the owner could override it.
#[test]
fn a_param_says_who_gave_it() {
    let cases: [(&[&str], Origin, bool); 6] = [
        (&["T"], Origin::Template, false),
        (&["T", "S.default"], Origin::Blueprint, false),
        (&["T", "S.value", "W"], Origin::Blueprint, true),
        (&["T", "S.value", "R.default"], Origin::Step, false),
        (&["T", "S.default", "R.value", "W"], Origin::Step, true),
        (&["T", "S.default", "R.default", "W"], Origin::Owner, false),
    ];
    for (levels, origin, is_fixed) in cases {
        let param = of_levels(levels, |params| params["p"].clone().into_owned());
        assert_eq!(
            (param.origin, param.is_fixed),
            (origin, is_fixed),
            "{levels:?}"
        );
    }
}

#[test]
fn owner_params_nobody_declares_are_added() {
    assert_eq!(merged(&["W"]), Some(json!("W")));
    assert_eq!(merged(&[]), None);
}

#[test]
fn later_duplicates_win_with_their_protection() {
    let param = |value: Option<Value>, default: Option<Value>| BlueprintParam {
        name: "p".to_owned(),
        value,
        default,
    };
    let owner = [OwnerParam {
        name: "p".to_owned(),
        value: json!("W"),
    }];
    let fixed_last = [param(None, Some(json!(1))), param(Some(json!(2)), None)];
    assert_eq!(value(&merge(&[], &fixed_last, &[], &owner)), json!(2));
    let fixed_first = [param(Some(json!(2)), None), param(None, Some(json!(1)))];
    assert_eq!(value(&merge(&[], &fixed_first, &[], &owner)), json!("W"));
    let twice = [
        owner[0].clone(),
        OwnerParam {
            name: "p".to_owned(),
            value: json!("W2"),
        },
    ];
    assert_eq!(value(&merge(&[], &[], &[], &twice)), json!("W2"));
}

#[test]
fn null_is_a_value() {
    let fixed = [BlueprintParam {
        name: "p".to_owned(),
        value: Some(Value::Null),
        default: None,
    }];
    let owner = [OwnerParam {
        name: "p".to_owned(),
        value: json!("W"),
    }];
    assert_eq!(value(&merge(&[], &fixed, &[], &owner)), Value::Null);
    let neither = [BlueprintParam {
        name: "p".to_owned(),
        value: None,
        default: None,
    }];
    assert_eq!(value(&merge(&[], &neither, &[], &[])), Value::Null);
    assert_eq!(value(&merge(&[], &neither, &[], &owner)), json!("W"));
}
