//! Recorded exchanges.

use std::os::unix::fs::PermissionsExt as _;

use convention_webhook_sdk::testing::replay;
use convention_webhook_sdk::{Applied, ConventionError, Images, Server, Template};

use crate::scene::{REQUEST, Scene, env, limits};

async fn other(template: &mut Template, _: &Images) -> Result<Applied, ConventionError> {
    template.set_label("a", "b");
    Ok(Applied::from("label"))
}

#[tokio::test]
async fn exchanges_are_recorded_for_their_owner_only_and_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let records = directory.path().join("records");
    let builder = Server::builder()
        .limits(limits())
        .record_to(&records)
        .convention("/", env)
        .convention("/other", other);
    let scene = Scene::new(builder).await;
    for (path, body) in [
        ("/", REQUEST),
        ("/other", REQUEST),
        ("/", "{}"),
        ("/", "no request"),
    ] {
        scene.post(path, body).await;
    }
    let files: Vec<_> = std::fs::read_dir(&records)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(files.len(), 3);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&records), 0o700);
    assert!(files.iter().all(|file| mode(&file.path()) == 0o600));

    let same = replay(&records, "/", &env).await.unwrap();
    assert_eq!((same.exchanges, same.changed.len()), (2, 0), "{same:?}");
    let changed = replay(&records, "/", &other).await.unwrap();
    assert_eq!((changed.exchanges, changed.changed.len()), (2, 2));
    let (_, lines) = &changed.changed[0];
    assert!(
        lines.contains("+ status.template.metadata.labels.a: \"b\""),
        "{lines}"
    );
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_is_told_before_serving() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let directory = tempfile::tempdir().unwrap();
    crate::scene::Identity::new().mount(directory.path(), "first");
    let builder = Server::builder()
        .convention("/", env)
        .tls_directory(directory.path())
        .record_to(file.path().join("records"));
    let error = builder.bind().await.err().unwrap();
    assert!(
        error.to_string().starts_with("record exchanges in "),
        "{error}"
    );
}
