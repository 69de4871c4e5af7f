//! What compiling and evaluating cost, for templates and paths as authors write them.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use template_language::interpolate::Compiled;
use template_language::jsonpath::Path;
use template_language::yaml_digest;

/// A Deployment with ten conditions, as its controller leaves it.
fn object() -> Value {
    let conditions: Vec<Value> = (0..10)
        .map(|number| json!({"type": format!("Type{number}"), "status": "True", "reason": "Done", "message": "all is well"}))
        .collect();
    json!({
        "metadata": {"name": "shop", "labels": {"app.kubernetes.io/name": "shop"}},
        "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "app", "image": "registry/shop:1"}]}}},
        "status": {"artifact": {"url": "http://source/1.tgz"}, "conditions": conditions},
    })
}

fn template() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "$(metadata.name)$", "labels": {"of": "a-$(metadata.name)$-b"}},
        "spec": {
            "replicas": "$(spec.replicas)$",
            "selector": {"matchLabels": {"app": "$(metadata.labels['app\\.kubernetes\\.io/name'])$"}},
            "template": {"spec": {"containers": [
                {"name": "app", "image": "$(spec.template.spec.containers[?(@.name==\"app\")].image)$", "args": ["--verbose", "--port=80"]},
            ]}},
        },
    })
}

fn paths(bench: &mut Criterion) {
    let object = object();
    for (name, source) in [
        ("plain", ".status.artifact.url"),
        ("filter", r#".status.conditions[?(@.type=="Type7")].status"#),
        ("RFC 9535", "$.status.conditions[?@.type == 'Type7'].status"),
    ] {
        bench.bench_function(&format!("compile/{name}"), |bench| {
            bench.iter(|| Path::compile(black_box(source)));
        });
        let path = Path::compile(source);
        assert!(path.evaluate(&object).is_ok(), "{source} has a value");
        bench.bench_function(&format!("evaluate/{name}"), |bench| {
            bench.iter(|| {
                path.evaluate(black_box(&object))
                    .map(|value| value.is_string())
            });
        });
    }
}

fn templates(bench: &mut Criterion) {
    let (context, template) = (object(), template());
    bench.bench_function("template/compile", |bench| {
        bench.iter(|| Compiled::compile(black_box(&template)));
    });
    let compiled = Compiled::compile(&template);
    let render = || compiled.render(&mut |path| path.evaluate(&context));
    assert!(render().is_ok(), "the template renders");
    bench.bench_function("template/render", |bench| bench.iter(render));
}

fn digests(bench: &mut Criterion) {
    let object = object();
    bench.bench_function("digest/object", |bench| {
        bench.iter(|| yaml_digest::digest(black_box(&object)));
    });
    bench.bench_function("digest/text", |bench| {
        let url = Value::from("http://source/1.tgz");
        bench.iter(|| yaml_digest::digest(black_box(&url)));
    });
}

criterion_group!(language, paths, templates, digests);
criterion_main!(language);
