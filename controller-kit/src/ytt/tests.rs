//! One behaviour per test, with the real ytt unless the test is about processes.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::*;

fn ytt() -> Ytt {
    let binary = test_support::assets().unwrap().binary("ytt").unwrap();
    with(binary, 2)
}

/// With the default limit of memory. However slow this machine is: no process is killed for that.
fn with(binary: PathBuf, concurrency: usize) -> Ytt {
    let memory = MemoryLimit::new(512).unwrap();
    Ytt {
        limit: Duration::from_mins(5),
        ..Ytt::new(binary, concurrency, memory, Arc::new(Metrics::new()))
    }
}

/// For a program that looks at more than its template and its values.
fn unconfined(binary: PathBuf, concurrency: usize) -> Ytt {
    Ytt {
        confinement: Confinement::off(),
        ..with(binary, concurrency)
    }
}

fn call(template: &str, values: &Value) -> YttCall {
    let values: BTreeMap<String, Value> = serde_json::from_value(values.clone()).unwrap();
    YttCall {
        resource: "step".into(),
        template: template.into(),
        template_digest: format!("digest of {template}"),
        values_digest: format!("digest of {values:?}"),
        values,
    }
}

const ECHO: &str =
    "#@ load(\"@ytt:data\", \"data\")\n---\nvalue: #@ data.values.v\n---\nsecond: document\n";

#[tokio::test]
async fn only_the_first_document_counts_and_integers_stay_integers() {
    let rendered = ytt()
        .render("ns", &call(ECHO, &json!({"v": 12_345_678_901_i64})))
        .await;
    assert_eq!(rendered, Ok(json!({"value": 12_345_678_901_i64})));
}

const KEYS: &str = r#"#@ load("@ytt:data", "data")
---
kind: ConfigMap
data:
  8080: web
  true: "yes"
  1.5: 1.5
  big: #@ 10000000 * 1.0
  texts: ["012", "2001-01-01", "1e3", "0o14", "NaN", "inf", ".inf", "1e", "=", "~", "0x1f", "a\tb"]
  none: ~
  v: #@ data.values.v
---
2: second
"#;

/// The Go controller reads YAML, where any scalar may be a key, and makes text of it.
#[tokio::test]
async fn keys_that_are_no_text_become_text() {
    let rendered = ytt()
        .render("ns", &call(KEYS, &json!({"v": "a\nb: c\n"})))
        .await;
    let data = json!({
        "8080": "web", "true": "yes", "1.5": 1.5, "big": 10_000_000,
        "texts": ["012", "2001-01-01", "1e3", "0o14", "NaN", "inf", ".inf", "1e", "=", "~", "0x1f", "a\tb"],
        "none": null, "v": "a\nb: c\n",
    });
    assert_eq!(rendered, Ok(json!({"kind": "ConfigMap", "data": data})));
}

#[tokio::test]
async fn a_process_that_fails_silently_is_told_as_go_tells_it() {
    let ytt = with("/bin/false".into(), 1);
    let failure = ytt.render("ns", &call(ECHO, &json!({}))).await.unwrap_err();
    assert_eq!(
        failure.message,
        "unable to apply ytt template: exit status 1"
    );
}

#[tokio::test]
async fn a_wrong_template_is_explained_by_ytt() {
    let template = ECHO.replace("data.values.v", "data.values.nope");
    let failure = ytt()
        .render("ns", &call(&template, &json!({"v": 1})))
        .await
        .unwrap_err();
    assert!(!failure.passes_by_itself, "somebody has to mend it");
    let error = failure.message;
    assert!(
        error.starts_with("unable to apply ytt template: ytt: Error: \n"),
        "{error}"
    );
    assert!(
        error.contains("struct has no .nope field or method"),
        "{error}"
    );
    assert!(error.contains("in <toplevel>"), "{error}");
    assert!(
        error.contains("stdin.yml:3 | value: #@ data.values.nope"),
        "{error}"
    );
}

#[tokio::test]
async fn a_template_that_does_not_end_is_killed() {
    let template = "#@ def loop():\n#@   x = 0\n#@   for a in range(100000):\n#@     for b in range(100000):\n#@       x = x + 1\n#@     end\n#@   end\n#@   return x\n#@ end\n---\nv: #@ loop()\n";
    let started = tokio::time::Instant::now();
    let ytt = Ytt {
        limit: LIMIT,
        ..ytt()
    };
    let failure = ytt
        .render("ns", &call(template, &json!({})))
        .await
        .unwrap_err();
    assert_eq!(
        failure,
        passing("unable to apply ytt template: signal: killed")
    );
    assert!(started.elapsed() >= LIMIT);
}

fn narrow() -> Ytt {
    Ytt {
        memory: MemoryLimit::new(128).unwrap(),
        ..ytt()
    }
}

/// A template whose value is what `body`, with `x` to begin with, makes of `x`.
fn computed(x: &str, body: &str) -> String {
    let body = body.replace('\n', "\n#@   ");
    format!(
        "#@ load(\"@ytt:data\", \"data\")\n#@ def f():\n#@   x = {x}\n#@   {body}\n#@   return x\n#@ end\n---\nv: #@ f()\n"
    )
}

const TOO_MUCH: &str = "unable to apply ytt template: ytt needs more than 128 MiB of memory: make what the template builds \
                        smaller, or the parameters and inputs that its loops follow; or have the controller's \
                        --ytt-memory-limit raised";

/// The kernel would end the container for it, and the controller with it.
#[tokio::test]
async fn a_template_that_fills_the_memory_dies_alone_and_is_told_what_to_do() {
    let doubled = "for i in range(data.values.times):\n  x = x + x\nend";
    let appended = "for i in range(data.values.times * 1000000):\n  x.append(\"item %d\" % i)\nend";
    let ytt = narrow();
    for (x, body) in [
        ("data.values.secret", doubled),
        ("[data.values.secret]", doubled),
        ("[]", appended),
        ("data.values.secret * 100000000", ""),
    ] {
        let template = computed(x, body);
        let values = json!({"times": 60, "secret": "hunter2"});
        let failure = ytt.render("ns", &call(&template, &values)).await;
        assert_eq!(failure, Err(TOO_MUCH.to_owned().into()), "{template}");
        // The parameter is mended.
        let few = json!({"times": 0, "secret": "x"});
        let rendered = ytt.render("ns", &call(&computed("1", body), &few)).await;
        assert_eq!(rendered, Ok(json!({"v": 1})));
    }
}

#[tokio::test]
async fn a_rendering_of_a_mebibyte_fits() {
    // As a ConfigMap has it: some large texts. And as a custom resource may: tens of thousands of nodes.
    let texts = "for i in range(64):\n  x[\"key-%d\" % i] = \"x\" * 16384\nend";
    let nodes = "for i in range(30000):\n  x.append({\"name\": \"item-%d\" % i, \"value\": \"abcdefgh\"})\nend";
    let ytt = ytt();
    for (x, body, count) in [("{}", texts, 64), ("[]", nodes, 30_000)] {
        let rendered = ytt
            .render("ns", &call(&computed(x, body), &json!({})))
            .await;
        let rendered = rendered.unwrap();
        let value = &rendered["v"];
        let items = value.as_object().map(serde_json::Map::len);
        assert_eq!(
            items.or_else(|| value.as_array().map(Vec::len)),
            Some(count)
        );
        assert!(value.to_string().len() > 1 << 20);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_limit_is_there_before_the_template_is() {
    let folder = tempfile::tempdir().unwrap();
    // The first read returns with the template.
    let body = r#"read -r first; limit=$(sed -n "s/^Max data size *//p" /proc/self/limits); echo "\"$GOMEMLIMIT ${limit%bytes*}\"""#;
    let ytt = |mebibytes| Ytt {
        memory: MemoryLimit::new(mebibytes).unwrap(),
        ..unconfined(script(folder.path(), body), 1)
    };
    let said = async |mebibytes| {
        let rendered = ytt(mebibytes).render("ns", &call(ECHO, &json!({}))).await;
        let said = rendered.unwrap().as_str().unwrap_or_default().to_owned();
        said.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(said(512).await, ["392MiB", "536870912", "536870912"]);
    assert_eq!(said(128).await, ["56MiB", "134217728", "134217728"]);
    assert!(!said(0).await.contains(&"0".to_owned()), "0 is no limit");
}

#[test]
fn only_a_lack_of_memory_is_told_as_one() {
    use std::os::unix::process::ExitStatusExt as _;
    let verdict = |mebibytes, status, complained| {
        let limit = MemoryLimit::new(mebibytes).unwrap();
        limit.verdict(ExitStatus::from_raw(status), complained)
    };
    // As wait(2) tells it: exit status 2, a segmentation fault, a kill.
    let (exited, faulted, killed) = (2 << 8, 11, 9);
    for lack in [
        "fatal error: runtime: out of memory\n\nruntime stack:\nruntime.throw({0xa7f1be?, 0x27d8?})\n",
        "runtime: out of memory: cannot allocate 4194304-byte block (533 in use)\nfatal error: out of memory\n",
        "fatal error: out of memory allocating heap arena metadata\n",
        "fatal error: runtime: cannot allocate memory\n",
        "SIGSEGV: segmentation violation\nPC=0x436e3d m=3 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0xd98e3b70d20 m=3 [idle]:\n",
        "fatal error: unexpected signal during runtime execution\n[signal SIGSEGV: segmentation violation code=0x1]\n",
    ] {
        assert!(
            verdict(512, exited, lack).unwrap().contains("512 MiB"),
            "{lack}"
        );
        assert_eq!(verdict(0, exited, lack), None, "{lack}");
    }
    for other in [
        "",
        "ytt: Error: \n- fail: out of memory\n",
        "runtime: failed to create new OS thread (have 5 already; errno=11)\nfatal error: newosproc\n",
        "fatal error: all goroutines are asleep - deadlock!\n",
        "panic: Expected key to be string\n",
        "panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation]\n",
    ] {
        assert_eq!(verdict(512, exited, other), None, "{other}");
    }
    assert!(verdict(512, faulted, "").is_some());
    assert_eq!(verdict(512, killed, ""), None);
}

#[tokio::test]
async fn a_missing_binary_is_named() {
    let missing = with("/nowhere/ytt".into(), 1);
    let failure = missing
        .render("ns", &call(ECHO, &json!({"v": 1})))
        .await
        .unwrap_err();
    assert!(failure.message.contains("/nowhere/ytt"), "{failure:?}");
    assert!(failure.passes_by_itself);
}

/// Upstream passes each value as an argument; arguments are readable by others and end at 128 KiB.
#[tokio::test]
async fn values_by_file_equal_values_by_argument() {
    let values = [
        json!("text"),
        json!(""),
        json!("yes"),
        json!("0x1F"),
        json!("a: b\n- c\n"),
        json!("é \u{1f600}"),
        json!("#@ data"),
        json!("(@ x @)"),
        json!(5),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!([
            0,
            -0.0,
            0.1,
            1e6,
            9_007_199_254_740_993_i64,
            i64::MAX,
            i64::MIN,
            u64::MAX
        ]),
        json!(true),
        json!([
            "no", "on", "null", "~", "1e3", "0o7", "1_000", ".inf", "!!str x", "&a *a", "%a", "@a",
            "`a`", "- x", "# x", " x ", "\tx"
        ]),
        json!([
            "\"quoted\"",
            "'single'",
            "back\\slash",
            "{{x}}",
            "#! x",
            "a\r\nb\n\n",
            "<&>"
        ]),
        json!(null),
        json!([]),
        json!({}),
        json!([1, "two", {"three": [null, {}]}]),
        json!({"a-b": 1, "a.b/c": {"x": "2001-01-01"}, "null": "~"}),
        json!({"": 1, "1": 2, "true": null, "<<": {"x": 1}, "é": 7, "gone": null, "empty": {"a": []}}),
    ];
    let ytt = ytt();
    for value in values {
        let by_file = ytt
            .render("ns", &call(ECHO, &json!({"v": value})))
            .await
            .unwrap();
        let by_argument = by_argument(&ytt.binary, &value).await;
        assert_eq!(by_file, by_argument, "{value}");
    }
}

async fn by_argument(binary: &Path, value: &Value) -> Value {
    let mut child = Command::new(binary)
        .args(["-f", "-", "-o", "json", "--data-value-yaml"])
        .arg(format!("v={value}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(ECHO.as_bytes())
        .await
        .unwrap();
    Form::Json
        .first_document(&child.wait_with_output().await.unwrap().stdout)
        .unwrap()
}

/// Upstream fails on these: its argument is read as YAML, which refuses them.
#[tokio::test]
async fn control_characters_arrive() {
    let text = "a\u{7f}b\u{85}c\u{feff}d\u{2028}e\u{2029} f";
    let rendered = ytt().render("ns", &call(ECHO, &json!({"v": text}))).await;
    assert_eq!(rendered, Ok(json!({"value": text})));
}

#[tokio::test]
async fn a_large_value_needs_no_argument() {
    let large = "x".repeat(300 * 1024);
    let rendered = ytt()
        .render("ns", &call(ECHO, &json!({"v": large})))
        .await
        .unwrap();
    assert_eq!(rendered["value"].as_str().map(str::len), Some(300 * 1024));
}

#[tokio::test]
async fn the_same_call_runs_once() {
    let ytt = ytt();
    let call = call(ECHO, &json!({"v": 1}));
    let first = ytt.render("ns", &call).await;
    let cached = Ytt {
        binary: "/nowhere/ytt".into(),
        ..ytt
    };
    assert_eq!(cached.render("ns", &call).await, first);
}

#[tokio::test]
async fn a_rendering_that_never_ends_is_cut_before_it_fills_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let endless = script(folder.path(), "exec yes");
    let ytt = with(endless, 1);
    let failure = ytt.render("ns", &call(ECHO, &json!({}))).await.unwrap_err();
    assert_eq!(
        failure,
        "unable to apply ytt template: the output is longer than 4 MiB"
            .to_owned()
            .into()
    );
}

/// As the kernel does when memory is short.
#[tokio::test]
async fn a_process_that_somebody_killed_may_succeed_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let once = r#"
test -e "${0%/*}/killed" && { echo '"done"'; exit; }
touch "${0%/*}/killed"
kill -KILL $$"#;
    let ytt = unconfined(script(folder.path(), once), 1);
    let call = call(ECHO, &json!({}));
    let failure = ytt.render("ns", &call).await.unwrap_err();
    assert!(failure.passes_by_itself, "{failure:?}");
    assert_eq!(
        failure.message,
        "unable to apply ytt template: signal: killed"
    );
    assert_eq!(
        ytt.render("ns", &call).await,
        Ok(json!("done")),
        "a failure is not remembered"
    );
}

/// A program in ytt's place. Another process writes the file: what this one has open, a process that another test starts at
/// the same moment has open, too, and nobody can run a file that somebody may still write ("Text file busy").
fn script(folder: &Path, body: &str) -> PathBuf {
    let (text, path) = (folder.join("text"), folder.join("ytt"));
    std::fs::write(&text, format!("#!/bin/sh\n{body}\n")).unwrap();
    let installed = std::process::Command::new("install")
        .args(["--mode=700", "--"])
        .args([&text, &path])
        .status();
    assert!(installed.unwrap().success());
    path
}

/// Renders like ytt, but only what has the word `quick` in it at once: everything else waits for the end
/// of the pipe `gate` in its folder, after it has said so in `begun`.
const SLOW: &str = r#"
template=$(cat)
echo x >> "${0%/*}/begun"
case $template in *quick*) ;; *) read -r line < "${0%/*}/gate" ;; esac
echo '"done"'"#;

async fn begun(folder: &Path, count: usize) {
    let file = folder.join("begun");
    let what = format!("{count} processes have begun");
    test_support::eventually(&what, Duration::from_mins(1), async || {
        let seen = std::fs::read_to_string(&file).map_or(0, |text| text.lines().count());
        if seen >= count {
            Ok(())
        } else {
            Err(format!("{seen} have"))
        }
    })
    .await;
}

#[tokio::test]
async fn slow_templates_of_one_namespace_leave_a_process_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&gate)
            .status()
            .unwrap()
            .success()
    );
    let ytt = Arc::new(unconfined(script(folder.path(), SLOW), 4));
    let mut slow = tokio::task::JoinSet::new();
    for number in 0..10 {
        let ytt = ytt.clone();
        slow.spawn(async move {
            let call = call(&format!("slow {number}"), &json!({}));
            ytt.render("big", &call).await
        });
    }
    begun(folder.path(), 3).await;
    assert_eq!(ytt.gate.waiting(), 7, "the fourth is kept for others");
    let quick = ytt.render("small", &call("quick", &json!({}))).await;
    assert_eq!(quick, Ok(json!("done")), "while three of big still run");
    assert!(slow.try_join_next().is_none());
    slow.shutdown().await;
    let after = ytt.render("big", &call("quick again", &json!({}))).await;
    assert_eq!(
        after,
        Ok(json!("done")),
        "what was cancelled holds no process"
    );
    assert_eq!(ytt.gate.waiting(), 0);
}

/// What a program in ytt's place that is asked for it could get hold of.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_in_its_place_reads_no_token_no_environment_and_reaches_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::fs::write(folder.path().join("token"), "secret-token\n").unwrap();
    let curious = format!(
        r#"exec bash -c '
folder=$1 port=$2
token=$(< "$folder/token")
connected=no; exec 3<> "/dev/tcp/127.0.0.1/$port" && connected=yes
asked=no; exec 4<> "/dev/udp/127.0.0.1/$port" && asked=yes
written=no; echo x > "$folder/written" && written=yes
killed=no; kill -0 "$PPID" && killed=yes
echo "{{\"token\": \"$token\", \"env\": \"${{HOME-}}${{CARGO_MANIFEST_DIR-}}\", \"connected\": \"$connected\", \
\"asked\": \"$asked\", \"written\": \"$written\", \"killed\": \"$killed\"}}"
' bash "{}" {port}"#,
        folder.path().display()
    );
    let program = script(folder.path(), &curious);
    let found = async |ytt: Ytt| ytt.render("ns", &call(ECHO, &json!({}))).await.unwrap();
    // Without the confinement it could: otherwise this test says nothing.
    let mut could = found(unconfined(program.clone(), 1)).await;
    assert_eq!(could["env"], "", "its environment is its own");
    could["env"] = json!(null);
    let all = json!({"token": "secret-token", "env": null, "connected": "yes", "asked": "yes", "written": "yes", "killed": "yes"});
    assert_eq!(could, all);
    let none = json!({"token": "", "env": "", "connected": "no", "asked": "no", "written": "no", "killed": "no"});
    assert_eq!(found(with(program, 1)).await, none);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_reads_no_values_but_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let of_others = folder.path().join("values-of-others.yml");
    std::fs::write(&of_others, "v: theirs\n").unwrap();
    // Its last argument is the file with its values.
    let body = format!(
        r#"for last; do :; done; read -r own < "$last"; read -r other < "{}"; echo "{{\"own\": \"${{own:+read}}\", \"other\": \"$other\"}}""#,
        of_others.display()
    );
    let ytt = with(script(folder.path(), &body), 1);
    let found = ytt.render("ns", &call(ECHO, &json!({"v": 1}))).await;
    assert_eq!(found, Ok(json!({"own": "read", "other": ""})));
}
