use proptest::prelude::*;
use serde_json::{Map, Value, json};
use template_language::interpolate::Compiled;
use template_language::tags::faults;

use super::*;

fn problems(template: &Value, vocabulary: &'static Vocabulary) -> Vec<(String, String, String)> {
    faults(&Compiled::compile(template), vocabulary)
        .into_iter()
        .map(|fault| (fault.at, fault.tag, fault.problem))
        .collect()
}

fn problem(text: &str, vocabulary: &'static Vocabulary) -> Option<String> {
    let mut found = problems(&json!({"x": text}), vocabulary);
    assert!(found.len() < 2, "{text}: {found:?}");
    found.pop().map(|(_, _, problem)| problem)
}

const STEP_WORDS: &str = "workload, deliverable, params, sources, images, configs, deployment, labels, source, image, config";

#[test]
fn a_name_that_no_context_has_is_told_with_the_one_that_was_meant() {
    for (tag, expected) in [
        (
            "worklod.metadata.name",
            "there is no [worklod]; did you mean [workload]?",
        ),
        (
            "wrokload.metadata.name",
            "there is no [wrokload]; did you mean [workload]?",
        ),
        (
            "delivrable.spec",
            "there is no [delivrable]; did you mean [deliverable]?",
        ),
        ("param.port", "there is no [param]; did you mean [params]?"),
        ("imgae", "there is no [imgae]; did you mean [image]?"),
        ("sorce.url", "there is no [sorce]; did you mean [source]?"),
        (
            "source.ulr",
            "there is no [ulr] in source; did you mean [url]?",
        ),
        (
            "sources.code.uri",
            "there is no [uri] in sources.code; did you mean [url]?",
        ),
        ("images.app.name.x.imag", ""),
        (
            "images.app.imag",
            "there is no [imag] in images.app; did you mean [image]?",
        ),
        (
            "deployment.rev",
            "there is no [rev] in deployment; there are url, revision, name",
        ),
        (
            "workload.name",
            "there is no [name] in workload; there are apiVersion, kind, metadata, spec, status",
        ),
        (
            "Workload.metadata.name",
            "there is no [Workload]; did you mean [workload]?",
        ),
        (
            "$.worklod.spec",
            "there is no [worklod]; did you mean [workload]?",
        ),
        (
            "$['source']['ulr']",
            "there is no [ulr] in source; did you mean [url]?",
        ),
        (
            "worklod.spec.env[?(@.name=='A')].value",
            "there is no [worklod]; did you mean [workload]?",
        ),
    ] {
        let expected = (!expected.is_empty()).then(|| format!("never has a value: {expected}"));
        assert_eq!(problem(&format!("$({tag})$"), &STEP), expected, "{tag}");
        let in_text = format!("a-$({tag})$ b");
        assert_eq!(problem(&in_text, &STEP), expected, "{tag}");
    }
    let unknown = format!("never has a value: there is no [runnable]; there are {STEP_WORDS}");
    let tag = "$(runnable.spec.inputs.a)$";
    assert_eq!(problem(tag, &STEP), Some(unknown));
}

#[test]
fn a_run_template_has_a_context_of_its_own() {
    for (tag, expected) in [
        ("runnable.spec.inputs.x", None),
        ("selected.spec.anything", None),
        ("selected", None),
        (
            "runable.spec",
            Some("there is no [runable]; did you mean [runnable]?"),
        ),
        (
            "workload.metadata.name",
            Some("there is no [workload]; there are runnable, selected"),
        ),
        (
            "params.x",
            Some("there is no [params]; there are runnable, selected"),
        ),
        (
            "runnable.inputs.x",
            Some(
                "there is no [inputs] in runnable; there are apiVersion, kind, metadata, spec, status",
            ),
        ),
    ] {
        let expected = expected.map(|expected| format!("never has a value: {expected}"));
        assert_eq!(problem(&format!("$({tag})$"), &RUN), expected, "{tag}");
    }
}

#[test]
fn a_path_that_every_evaluation_fails_on_is_told() {
    for (text, expected) in [
        ("$()$", "it is empty"),
        ("x$()$", "it is empty"),
        ("$(params.a[)$", "unterminated array"),
        (
            "$( params.a )$",
            "unrecognized identifier params; write it without spaces",
        ),
        (
            "$(params.a and)$",
            "unrecognized identifier and; write it without spaces",
        ),
        (
            "$({.params.a}{.params.b})$",
            "there is more than one path in it",
        ),
        (
            "$(params.a)-$(params.b)$",
            "there is another $( in it; close each with )$",
        ),
        (
            "$($(params.a)$)$",
            "there is another $( in it; close each with )$",
        ),
    ] {
        let expected = format!("is not a valid path: {expected}");
        assert_eq!(problem(text, &STEP), Some(expected), "{text}");
    }
}

#[test]
fn what_some_context_can_fill_is_not_told() {
    for text in [
        "$(workload.metadata.name)$",
        "$(deliverable.spec.source.git.url)$",
        "$(.params.any)$",
        "$({.params.any})$",
        "$(params)$",
        "$(params.a-b)$",
        "$(params['a','b'])$",
        "$(sources)$",
        "$(sources.any.url)$",
        "$(sources.*.url)$",
        "$(sources.any)$",
        "$(source)$",
        "$(source.url)$",
        "$(source.revision.deeper)$",
        "$(image)$",
        "$(image.deeper)$",
        "$(images.any.image)$",
        "$(config.data)$",
        "$(configs.any.config.data)$",
        "$(deployment)$",
        "$(deployment.url)$",
        "$(labels['carto\\.run/workload-name'])$",
        "$(workload.spec.env[0].value)$",
        "$(workload.status)$",
        "$(workload.spec.params[?(@.name=='x')].value)$",
        "$(..name)$",
        "$(*.name)$",
        "$($.params.any)$",
        "$($['params']['any'])$",
        "$$(params.a)$",
        "$(params.a)$$(params.b)$",
        "$(params.a)$(params.b)$",
        // A text stands for itself, whatever is before it.
        "$(worklod 'x')$",
    ] {
        assert_eq!(problem(text, &STEP), None, "{text}");
    }
    let quoted = Compiled::compile(&json!("$(worklod 'x')$"));
    assert_eq!(quoted.render_root(&Map::new()), Ok(json!("x")));
}

#[test]
fn an_opening_that_nothing_closes_is_told_if_only_a_tag_can_be_meant() {
    for (text, tag) in [
        ("$(workload.metadata.name)", "$(workload.metadata.name)"),
        ("$(workload.metadata.name", "$(workload.metadata.name"),
        ("$(workload.metadata.name$)", "$(workload.metadata.name"),
        ("$(workload.spec.params[0].value)", "$(workload.spec.params"),
        ("x-$(params.a)$-$(source.url)", "$(source.url)"),
        ("$(sources.code.url) b", "$(sources.code.url)"),
        ("$(deployment.revision)", "$(deployment.revision)"),
    ] {
        let expected = (
            "x".to_owned(),
            tag.to_owned(),
            "is no tag and stays text: a tag ends with )$".to_owned(),
        );
        assert_eq!(problems(&json!({"x": text}), &STEP), [expected], "{text}");
    }
    assert!(problem("$(runnable.spec.inputs.a)", &RUN).is_some());
}

#[test]
fn the_variables_of_others_are_not_told() {
    for text in [
        "$(params.a)",
        "$(params.source.url)",
        "$(tasks.fetch.results.url)",
        "$(workspaces.source.path)",
        "$(context.taskRun.name)",
        "$(inputs.params.a)",
        "$(NAME)",
        "$(image)",
        "$(source)",
        "$(config)",
        "$(workload)",
        "$(date +%s)",
        "$(labels.app)",
        "$(sources.code)",
        "$(source.sh)",
        "$(selected.spec)",
        "$(worklod.metadata)",
        "$(unclosed",
        "$(",
        "#!/bin/sh\ncd $(source.url)\n",
        "a\n$(params.a)$ $(source.url)",
        "$(workload.name)",
    ] {
        assert_eq!(problem(text, &STEP), None, "{text}");
    }
    let expanded = json!({"spec": {"containers": [{
        "command": ["$(source.url)"], "args": ["--name=$(workload.metadata.name)"],
        "env": [{"name": "source.url", "value": "$(source.url)"}],
    }]}});
    assert_eq!(problems(&expanded, &STEP), []);
}

#[test]
fn every_string_is_looked_at_and_no_key() {
    let template = json!({
        "list": [[{"deep": "$(a.b)$"}], 1, null, true], "$(c.d)$": "$(params.x)$", "plain": {"text": "$(source.url)"},
    });
    let places: Vec<String> = problems(&template, &STEP)
        .into_iter()
        .map(|(at, tag, _)| format!("{at} {tag}"))
        .collect();
    assert_eq!(
        places,
        ["list[0][0].deep $(a.b)$", "plain.text $(source.url)"]
    );
    let alone = problems(&json!("$(a.b)$"), &STEP);
    assert_eq!(alone[0].0, "");
}

/// The API server drops what the schema does not name, so that no template can see it.
#[test]
fn the_kinds_of_owners_have_the_fields_of_the_vocabulary() {
    let place = |name: &str, field: &str| [name.to_owned(), field.to_owned()];
    let mut seen = 0;
    for crd in crate::crds() {
        let (name, vocabulary) = match crd.spec.names.kind.as_str() {
            "Workload" => ("workload", &STEP),
            "Deliverable" => ("deliverable", &STEP),
            "Runnable" => ("runnable", &RUN),
            _ => continue,
        };
        let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
        let schema = &schema["openAPIV3Schema"];
        assert_eq!(schema["x-kubernetes-preserve-unknown-fields"], Value::Null);
        let unknown = place(name, "nowhere");
        let unknown = vocabulary.unknown(&unknown).unwrap();
        let fields: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(unknown.known, fields);
        seen += 1;
    }
    assert_eq!(seen, 3);
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(1)),
        Just(json!("x")),
        Just(json!([]))
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("(a|x|url|name|spec|worklod)", inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Any context that the vocabulary covers, with each of its names there or not.
fn context(vocabulary: &'static Vocabulary) -> BoxedStrategy<Value> {
    match vocabulary {
        Vocabulary::Open => any_value().boxed(),
        Vocabulary::Each(below) => {
            prop::collection::btree_map("(a|url|code)", context(below), 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect()))
                .boxed()
        }
        Vocabulary::Names(names) => names
            .iter()
            .map(|(name, below)| {
                let entry = prop::option::weighted(0.8, context(below));
                entry.prop_map(|entry| entry.map(|entry| ((*name).to_owned(), entry)))
            })
            .collect::<Vec<_>>()
            .prop_map(|entries| Value::Object(entries.into_iter().flatten().collect()))
            .boxed(),
    }
}

const PIECES: &str = r"(workload|worklod|source|sources|code|url|ulr|params|labels|image|runnable|selected|spec|name|a|x|range|end|\.|\.\.|\*|\[0\]|\[\*\]|\['a'\]|\['url','ulr'\]|\[\?\(@\.a\)\]|\[\?\(@\.a=='x'\)\]|\[\?\(x\)\]| |'x'|1|true|\$\.|\$|@|\{|\}|\(|\)|\$\()";

/// A path: names with dots between them, and what else can be in one.
fn path() -> impl Strategy<Value = String> {
    let names = prop_oneof![
        Just("workload"),
        Just("worklod"),
        Just("source"),
        Just("sources"),
        Just("code"),
        Just("url"),
        Just("ulr"),
        Just("params"),
        Just("image"),
        Just("selected"),
        Just("spec"),
        Just("a"),
        Just("x"),
        Just(""),
    ];
    let dotted = || prop::collection::vec(names.clone(), 1..4).prop_map(|names| names.join("."));
    let mess = || prop::string::string_regex(&format!("{PIECES}{{0,5}}")).unwrap();
    prop_oneof![
        3 => dotted(),
        3 => (dotted(), mess()).prop_map(|(names, mess)| names + &mess),
        1 => mess(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Real contexts are covered by the vocabulary (`context/tests.rs`). So nothing is said of a template that renders somewhere.
    #[test]
    fn no_tag_that_renders_in_any_context_is_told(
        path in path(), before in "(|x|\\$)", after in "(|x|\\)\\$|\\$\\(params\\.a)", step in context(&STEP), run in context(&RUN),
    ) {
        let template = Compiled::compile(&json!([{"x": format!("{before}$({path})${after}")}]));
        for (context, vocabulary) in [(step, &STEP), (run, &RUN)] {
            let told = faults(&template, vocabulary);
            let told: Vec<_> = told.iter().filter(|fault| !fault.problem.starts_with("is no tag")).collect();
            let Value::Object(context) = context else { unreachable!("a context is an object") };
            if let Ok(rendered) = template.render_root(&context) {
                prop_assert!(told.is_empty(), "{told:?} but {rendered}");
            }
        }
    }
}
