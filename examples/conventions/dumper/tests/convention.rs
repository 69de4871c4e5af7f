//! What is written, and that nothing is changed.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use convention_webhook_sdk::testing::{check, given};
use dumper::Dumper;
use serde_json::{Value, json};

/// What was written so far.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_is_asked_is_written_as_yaml_and_the_template_stays() {
    let paper = Paper::default();
    let dumper = Dumper::to(paper.clone());
    let pod = given(
        "
        metadata: {labels: {app: web, number: '1e3', answer: 'yes'}}
        spec: {containers: [{name: web, image: web, args: ['a: b', '---', '']}]}
        ",
    )
    .image("web", "{config: {User: '1000'}}")
    .bom("cnb-app:/a.json", "{}");
    pod.run(&dumper).await.expect("").expect_applied(["dumper"]);

    let written = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
    let document = written.strip_prefix("---\n").unwrap();
    let read: Value = serde_saphyr::from_str(document).unwrap();
    assert_eq!(read["spec"]["template"], pod.template().to_value());
    let image = json!({
        "image": "web",
        "boms": [{"name": "cnb-app:/a.json", "bytes": 2}],
        "config": {"config": {"User": "1000"}},
    });
    assert_eq!(read["spec"]["imageConfig"], json!([image]));
}

#[tokio::test]
async fn it_is_what_a_convention_must_be() {
    let dumper = Dumper::to(io::sink());
    check(&dumper)
        .on(&given("spec: {containers: [{name: web}]}"))
        .await;
}
