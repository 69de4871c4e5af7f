//! Everything the Go controller's API server accepts, ours accepts; every addition is optional and documented.

use std::path::Path;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};

use crate::facts::{Facts, Fields, fields_of, unread};
use crate::sample::{self, schema_of};
use crate::upstream;

/// A kind of template that the Go controller never had.
const NOT_UPSTREAM: &str = "ClusterDeploymentValidationTemplate";
/// Another kind that it never had.
const ARTIFACT: &str = "Artifact";

fn check_every(check: impl Fn(&CustomResourceDefinition, &Fields)) {
    let crds = api_types::crds();
    assert_eq!(crds.len(), 13);
    for crd in crds {
        check(&crd, &fields_of(&crd));
    }
}

#[test]
fn a_validation_template_has_all_fields_of_a_deployment_template() {
    let fields = |kind: &str| {
        let crds = api_types::crds();
        let crd = crds.into_iter().find(|crd| crd.spec.names.kind == kind);
        fields_of(&crd.unwrap())
    };
    let mut validation = fields(NOT_UPSTREAM);
    // A verdict on what is deployed needs an object that speaks of it.
    let is_left_out = |path: &str| {
        [
            "alwaysSuccessful",
            "foreignFields",
            "inputsOnStatus",
            "updatePolicy",
        ]
        .iter()
        .any(|field| path.starts_with(&format!("spec.{field}")))
            || path.split('.').any(|field| field == "object")
    };
    for (path, facts) in fields("ClusterDeploymentTemplate") {
        if is_left_out(&path) {
            assert_eq!(validation.get(&path), None, "{path}");
        } else {
            assert_eq!(validation.remove(&path), Some(facts), "{path}");
        }
    }
    assert_eq!(validation.into_keys().collect::<Vec<_>>(), ["spec.timeout"]);
}

#[test]
fn a_validation_template_is_named_in_the_style_of_the_others() {
    let crd = api_types::crds()
        .into_iter()
        .find(|crd| crd.spec.names.kind == NOT_UPSTREAM)
        .unwrap();
    let names = &crd.spec.names;
    assert_eq!(crd.spec.scope, "Cluster");
    assert_eq!(names.plural, "clusterdeploymentvalidationtemplates");
    assert_eq!(names.short_names, Some(vec!["cdvt".to_owned()]));
    assert_eq!(names.categories, Some(vec!["carto".to_owned()]));
}

fn check_all(check: impl Fn(&CustomResourceDefinition, &upstream::Upstream, &Fields)) {
    let crds: Vec<_> = api_types::crds()
        .into_iter()
        .filter(|crd| ![NOT_UPSTREAM, ARTIFACT].contains(&&*crd.spec.names.kind))
        .collect();
    assert_eq!(crds.len(), 11);
    for crd in crds {
        check(
            &crd,
            &upstream::read(&crd.spec.names.kind),
            &fields_of(&crd),
        );
    }
}

#[test]
fn names_scope_columns_and_subresources_are_those_of_upstream() {
    check_all(|crd, upstream, _| {
        let names = &crd.spec.names;
        assert_eq!(
            crd.metadata.name.as_deref(),
            Some(format!("{}.carto.run", names.plural).as_str())
        );
        assert_eq!(crd.spec.group, "carto.run");
        assert_eq!(crd.spec.conversion, None);
        assert_eq!(crd.spec.scope, upstream.head["scope"]);
        assert_eq!(names.plural, upstream.head["plural"]);
        assert_eq!(names.singular.as_ref(), upstream.head.get("singular"));
        assert_eq!(
            names.short_names,
            Some(vec![upstream.head["shortName"].clone()])
        );
        // One category more.
        let theirs = upstream.head.get("category").cloned();
        assert_eq!(
            names.categories,
            Some(theirs.into_iter().chain(["carto".to_owned()]).collect())
        );
        let [version] = &crd.spec.versions[..] else {
            panic!("one version")
        };
        assert_eq!(
            (version.name.as_str(), version.served, version.storage),
            ("v1alpha1", true, true)
        );
        assert_eq!(version.subresources.is_some(), upstream.status);
        let columns: Vec<_> = version
            .additional_printer_columns
            .iter()
            .flatten()
            .collect();
        // Columns of ours come last, and only `-o wide` shows them.
        let (shown, wide) = columns.split_at(upstream.columns.len());
        assert!(wide.iter().all(|column| column.priority == Some(1)));
        let columns: Vec<_> = shown
            .iter()
            .map(|c| (c.name.clone(), c.type_.clone(), c.json_path.clone()))
            .collect();
        assert_eq!(columns, upstream.columns);
    });
}

#[test]
fn metadata_and_spec_are_required_and_nothing_is_preserved_at_the_root() {
    check_all(|crd, upstream, _| {
        let root = schema_of(crd);
        assert_eq!(
            root.required,
            Some(vec!["metadata".to_owned(), "spec".to_owned()])
        );
        assert_eq!(root.x_kubernetes_preserve_unknown_fields, None);
        let has_status = root
            .properties
            .as_ref()
            .is_some_and(|properties| properties.contains_key("status"));
        assert_eq!(has_status, upstream.status);
    });
}

#[test]
fn of_metadata_nothing_is_asked_but_that_new_names_fit_into_labels() {
    // Of an Artifact no label has the name.
    check_all(|crd, _, _| {
        let root = schema_of(crd);
        let metadata = &root.properties.as_ref().unwrap()["metadata"];
        assert_eq!(
            serde_json::to_value(metadata).unwrap(),
            serde_json::json!({"type": "object", "properties": {"name": {
                "type": "string",
                "x-kubernetes-validations": [{
                    "rule": "oldSelf.hasValue() || self.size() <= 63",
                    "optionalOldSelf": true,
                    "message": "must be at most 63 characters: every object that is stamped has it in a label; \
                                choose a shorter name",
                }],
            }}}),
            "{}",
            crd.spec.names.kind
        );
    });
}

#[test]
fn every_upstream_field_fits_into_ours() {
    check_all(|crd, upstream, ours| {
        assert!(
            upstream.fields.len() > 3,
            "{} describes next to nothing",
            crd.spec.names.kind
        );
        for (path, theirs) in &upstream.fields {
            let ours = ours
                .get(path)
                .unwrap_or_else(|| panic!("{} lacks {path}", crd.spec.names.kind));
            assert_eq!(
                narrowed(theirs, ours),
                Vec::<String>::new(),
                "{} {path}",
                crd.spec.names.kind
            );
        }
    });
}

/// In which ways `ours` refuses what `theirs` accepts, or means something else.
fn narrowed(theirs: &Facts, ours: &Facts) -> Vec<String> {
    let mut problems = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            problems.push(format!("{what}: {ours:?} instead of {theirs:?}"));
        }
    };
    // A condition is what it was, or a list, or made of others.
    let is_condition = ours.kind == "condition" && theirs.kind == "object";
    must(ours.kind == theirs.kind || is_condition, "type");
    must(!ours.required || theirs.required, "required");
    let enum_fits = if theirs.one_of.is_empty() {
        ours.one_of.is_empty()
    } else {
        ours.one_of.is_superset(&theirs.one_of)
    };
    must(enum_fits, "enum");
    must(at_most(ours.min, theirs.min), "minimum");
    must(
        at_most(ours.max.map(|max| -max), theirs.max.map(|max| -max)),
        "maximum",
    );
    must(at_most(ours.min_length, theirs.min_length), "minLength");
    must(at_most(ours.min_items, theirs.min_items), "minItems");
    must(
        at_most(
            ours.max_length.map(|max| -max),
            theirs.max_length.map(|max| -max),
        ),
        "maxLength",
    );
    must(
        ours.pattern.is_none() || ours.pattern == theirs.pattern,
        "pattern",
    );
    must(ours.default == theirs.default, "default");
    must(ours.atomic == theirs.atomic, "map type");
    must(ours.list_key == theirs.list_key, "list type");
    problems
}

/// Whether the lower bound `ours` is not above `theirs`.
fn at_most<T: PartialOrd>(ours: Option<T>, theirs: Option<T>) -> bool {
    match (ours, theirs) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(ours), Some(theirs)) => ours <= theirs,
    }
}

#[test]
fn every_addition_is_optional_and_in_the_compatibility_document() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/compat.md");
    let document = std::fs::read_to_string(document).unwrap();
    let mut additions = 0;
    check_all(|crd, upstream, ours| {
        for (path, facts) in ours
            .iter()
            .filter(|(path, _)| !upstream.fields.contains_key(*path))
        {
            let parent = parent(path);
            if upstream.fields.contains_key(parent) {
                let name = format!("`{} {path}`", crd.spec.names.kind);
                assert!(
                    document.contains(&name),
                    "{name} is an addition that docs/compat.md does not mention"
                );
                assert!(!facts.required, "{name} is an addition and required");
            }
        }
    });
    // The other direction: what the document calls an addition is one.
    for name in document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
    {
        let Some((kind, path)) = name.split_once(' ') else {
            continue;
        };
        let Some(crd) = api_types::crds()
            .into_iter()
            .find(|crd| crd.spec.names.kind == kind)
        else {
            continue;
        };
        assert!(
            fields_of(&crd).contains_key(path),
            "docs/compat.md names {name}, which is not in the schema"
        );
        additions += 1;
    }
    assert!(additions > 0);
}

fn parent(path: &str) -> &str {
    path.strip_suffix("[]")
        .or_else(|| path.strip_suffix("{}"))
        .or_else(|| path.rsplit_once('.').map(|(parent, _)| parent))
        .unwrap_or_default()
}

#[test]
fn null_is_a_value_exactly_where_any_json_is() {
    check_every(|crd, ours| {
        for (path, facts) in ours {
            assert_eq!(
                facts.nullable,
                facts.kind == "any",
                "{} {path}",
                crd.spec.names.kind
            );
        }
    });
}

#[test]
fn the_comparison_notices_every_kind_of_narrowing() {
    let facts = Facts {
        kind: "string".into(),
        ..Facts::default()
    };
    let narrower = [
        Facts {
            kind: "int64".into(),
            ..facts.clone()
        },
        Facts {
            required: true,
            ..facts.clone()
        },
        Facts {
            one_of: ["a".to_owned()].into(),
            ..facts.clone()
        },
        Facts {
            min: Some(1.0),
            ..facts.clone()
        },
        Facts {
            max: Some(1.0),
            ..facts.clone()
        },
        Facts {
            min_length: Some(1),
            ..facts.clone()
        },
        Facts {
            min_items: Some(1),
            ..facts.clone()
        },
        Facts {
            max_length: Some(1),
            ..facts.clone()
        },
        Facts {
            pattern: Some("x".into()),
            ..facts.clone()
        },
        Facts {
            default: Some("x".into()),
            ..facts.clone()
        },
        Facts {
            atomic: true,
            ..facts.clone()
        },
        Facts {
            list_key: Some("x".into()),
            ..facts.clone()
        },
    ];
    for ours in narrower {
        assert_eq!(narrowed(&facts, &ours).len(), 1, "{ours:?}");
    }
    assert!(
        narrowed(
            &Facts {
                max_length: Some(5),
                ..facts.clone()
            },
            &facts
        )
        .is_empty()
    );
    assert_eq!(
        narrowed(
            &Facts {
                max_length: Some(5),
                ..facts.clone()
            },
            &Facts {
                max_length: Some(4),
                ..facts
            }
        )
        .len(),
        1
    );
}

#[test]
fn a_rule_without_a_word_is_noticed() {
    let schema = |text: &str| serde_json::from_str::<JSONSchemaProps>(text).unwrap();
    for (said, rules) in [
        (r#"{"type": "array", "maxItems": 3, "items": {}}"#, 1),
        (
            r#"{"type": "object", "maxProperties": 3, "minProperties": 1}"#,
            2,
        ),
        (
            r#"{"type": "integer", "format": "int64", "multipleOf": 2}"#,
            1,
        ),
        (
            r#"{"type": "integer", "minimum": 1, "exclusiveMinimum": true}"#,
            1,
        ),
        (r#"{"type": "array", "uniqueItems": true, "items": {}}"#, 1),
        (
            r#"{"type": "array", "x-kubernetes-list-type": "set", "items": {}}"#,
            1,
        ),
        (r#"{"type": "string", "not": {"enum": ["x"]}}"#, 1),
        (r#"{"type": "string", "oneOf": [], "allOf": []}"#, 2),
        (r#"{"type": "string", "anyOf": [{"minLength": 1}]}"#, 1),
        (
            r#"{"type": "string", "x-kubernetes-validations": [{"rule": "false"}]}"#,
            1,
        ),
        (
            r#"{"type": "object", "x-kubernetes-embedded-resource": true}"#,
            1,
        ),
        (r#"{"type": "object", "additionalProperties": false}"#, 1),
        (r#"{"type": "string", "enum": ["a", 1]}"#, 1),
        (
            r#"{"type": "array", "x-kubernetes-list-type": "atomic", "items": {}}"#,
            0,
        ),
    ] {
        assert_eq!(unread(&schema(said)).len(), rules, "{said}");
    }
}

#[test]
fn samples_break_every_rule_once() {
    check_every(|crd, ours| {
        let schema = schema_of(crd);
        let rules: Vec<String> = sample::violations(schema)
            .into_iter()
            .map(|violation| violation.rule)
            .collect();
        for (path, facts) in ours {
            let has = |rule: &str| rules.contains(&format!(".{path} {rule}"));
            assert!(
                ["any", "condition"].contains(&&*facts.kind) || has("type") || has("int or string"),
                "{path}"
            );
            assert_eq!(!facts.one_of.is_empty(), has("enum"), "{path}");
            assert_eq!(facts.min.is_some(), has("minimum"), "{path}");
            assert_eq!(facts.max.is_some(), has("maximum"), "{path}");
            assert_eq!(facts.min_length.is_some(), has("minLength"), "{path}");
            assert_eq!(facts.max_length.is_some(), has("maxLength"), "{path}");
            assert_eq!(facts.pattern.is_some(), has("pattern"), "{path}");
            assert_eq!(facts.min_items.is_some(), has("minItems"), "{path}");
            if let Some((parent, name)) = path.rsplit_once('.').filter(|_| facts.required) {
                assert!(
                    rules.contains(&format!(".{parent} required {name}")),
                    "{path}"
                );
            }
        }
        let mut object = sample::full(schema);
        assert!(sample::add_unknown_fields(schema, &mut object) > 1);
    });
}
