//! What users of this library may name. A name that goes, or means something else, breaks this test
//! before it breaks them.
//!
//! `golden` lists all of it, so that whoever reviews a change sees what it means for them;
//! `UPDATE_GOLDEN=1` writes the list. A line that goes, or is another one, is for the next version that
//! may break; a line more is not.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test says what went wrong by panicking, and is told by a variable to write what it compares with"
)]

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use convention_webhook_sdk::protocol::{Bom, ImageConfig, PodConventionContext, PodTemplate};
use convention_webhook_sdk::semver::{Version, VersionReq};
use convention_webhook_sdk::testing::{
    Check, Done, Fault, Given, Replayed, check, difference, given, replay,
};
use convention_webhook_sdk::{
    Answer, Applied, BoundServer, Change, Container, ContainerMut, Convention, ConventionError,
    ConventionFn, Dependencies, Dependency, Image, Images, KeyPairError, Limits, Mount, Outcome,
    Port, Probe, ProbeKind, Protocol, Purl, PurlError, Sbom, SbomError, SbomFormat, ServeError,
    Server, ServerBuilder, Settings, Template, TemplateError, Volume, answer, init_logs,
    read_version, router,
};
use serde_json::{Map, Value};

type Changed = Result<Change, TemplateError>;

async fn nothing(_: &mut Template, _: &Images) -> Result<Applied, ConventionError> {
    Ok(Applied::nothing())
}

/// What rustdoc knows of a crate. The form in which it tells it is not stable, so rustdoc is told that
/// this is meant: rustdoc alone, as a change of this variable has many crates compiled anew.
fn described(package: &str, scratch: &Path) -> PathBuf {
    let rustdoc = Path::new(env!("CARGO")).with_file_name("rustdoc");
    let wrapper = scratch.join("rustdoc");
    let script = format!(
        "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec '{}' \"$@\"\n",
        rustdoc.display()
    );
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    // The test is in `target/debug/deps`.
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(3).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["rustdoc", "--offline", "--lib", "--all-features"]);
    cargo.args(["--package", package]);
    cargo.args(["--", "-Zunstable-options", "--output-format", "json"]);
    cargo.env("CARGO_TARGET_DIR", target);
    let output = cargo.env("RUSTDOC", &wrapper).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let file = format!("doc/{}.json", package.replace('-', "_"));
    target.join(file)
}

fn hold_listing(package: &str) {
    let scratch = tempfile::tempdir().unwrap();
    let api = public_api::Builder::from_rustdoc_json(described(package, scratch.path()))
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()
        .unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(format!("{package}.txt"));
    if std::env::var("UPDATE_GOLDEN").is_ok_and(|update| update == "1") {
        fs::write(&golden, api.to_string()).unwrap();
    }
    let listed = fs::read_to_string(&golden).unwrap_or_default();
    let change = difference(&lines(&listed), &lines(&api.to_string()));
    assert_eq!(
        change,
        "",
        "{}: UPDATE_GOLDEN=1 writes it",
        golden.display()
    );
}

/// By line, so that of two lists only what differs is told.
fn lines(text: &str) -> Value {
    let mut lines = Map::new();
    for line in text.lines() {
        let times = lines.entry(line).or_insert(Value::from(0));
        *times = Value::from(times.as_u64().unwrap_or_default() + 1);
    }
    Value::Object(lines)
}

#[test]
fn the_public_api_is_what_is_listed() {
    hold_listing("convention-webhook-sdk");
    hold_listing("convention-protocol");
}

/// Each name once, by what it takes and what it gives.
#[test]
fn names_mean_what_they_meant() {
    let _: fn(&mut Template, &str, &str) -> Change = Template::default_label;
    let _: fn(&mut Template, &str, &str) -> Change = Template::set_annotation;
    let _: fn(&mut Template, &Volume) -> Changed = Template::default_volume;
    let _: fn(&mut Template, Value) -> Changed = Template::default_sidecar;
    let _: fn(&mut Template, Value) -> Changed = Template::set_init_container;
    let _: for<'t> fn(&'t Template, &str) -> Option<Container<'t>> = Template::container;
    let _: for<'t> fn(&'t mut Template, &str) -> Option<ContainerMut<'t>> = Template::container_mut;
    let _: fn(Value) -> Result<Template, serde_json::Error> = Template::from_value;
    let _: fn(&Template) -> Value = Template::to_value;
    let _: fn(&mut Template) -> &mut Map<String, Value> = Template::spec_mut;
    let _: fn(&mut ContainerMut<'static>, &str, &str) -> Changed = ContainerMut::default_env;
    let _: fn(&mut ContainerMut<'static>, &str, Value) -> Changed = ContainerMut::set_env_from;
    let _: fn(&mut ContainerMut<'static>, &Mount) -> Changed = ContainerMut::default_mount;
    let _: fn(&mut ContainerMut<'static>, &Port) -> Changed = ContainerMut::default_port;
    let _: fn(&mut ContainerMut<'static>, ProbeKind, &Probe) -> Changed =
        ContainerMut::default_probe;
    let _: fn(&mut ContainerMut<'static>, &str, &str) -> Changed = ContainerMut::default_limit;
    let _: fn(Container<'static>, &str) -> Option<&'static str> = Container::env;
    let _: fn(Container<'static>, u16, Protocol) -> bool = Container::has_port;
    let _: for<'i> fn(&'i Images, Container<'_>) -> Option<&'i Image> = Images::of;
    let _: fn(&Image) -> Settings<'_> = Image::settings;
    let _: fn(&Image) -> &Dependencies = Image::dependencies;
    let _: fn(&Image) -> &[SbomError] = Image::unreadable_sboms;
    let _: for<'d> fn(&'d Dependencies, &str) -> Option<&'d Dependency> = Dependencies::named;
    let _: for<'d> fn(&'d Dependencies, &Purl) -> Option<&'d Dependency> = Dependencies::by_purl;
    let _: fn(&Dependency, &VersionReq) -> bool = Dependency::is_in;
    let _: fn(&Bom) -> Result<Sbom, SbomError> = Sbom::read;
    let _: fn(&str) -> Option<Version> = read_version;
    let _: fn(&str) -> Result<Purl, PurlError> = str::parse;
    let _: fn(&mut Applied, &'static str, Change) -> Change = Applied::record;
    let _: fn() -> ServerBuilder = Server::builder;
    let _: fn() -> Result<ServerBuilder, ServeError> = Server::from_env;
    let _: fn(ServerBuilder, u16) -> ServerBuilder = ServerBuilder::port;
    let _: fn(ServerBuilder, Limits) -> ServerBuilder = ServerBuilder::limits;
    let _: fn(&BoundServer) -> SocketAddr = BoundServer::address;
    let _: fn() = init_logs;
    let _: fn(&str) -> Given = given;
    let _: fn(&Value, &Value) -> String = difference;
    let _: for<'d> fn(&'d Done, &str) -> &'d Done = Done::expect;
    let _: axum::Router = router(nothing);
    let _: Check<'_> = check(&nothing);
}

/// Everything that is read of these, and that all of it can be made by whoever needs it in a test.
#[tokio::test]
async fn values_are_made_of_what_they_were_made_of() {
    fn is_convention(_: impl Convention) {}
    fn is_function(_: impl for<'c> ConventionFn<'c>) {}
    is_convention(nothing);
    is_function(nothing);
    let Answer {
        status,
        content_type,
        body,
        outcome,
    } = answer(&nothing, b"{}").await;
    assert_eq!((status, content_type), (200, "application/json"));
    assert_eq!(outcome, Outcome::Applied(Vec::new()));
    assert!(!body.is_empty());
    let Replayed { exchanges, changed } = Replayed::default();
    assert_eq!((exchanges, changed.len()), (0, 0));
    assert!(replay("no such folder", "/", &nothing).await.is_err());
    let _ = (SbomFormat::CycloneDx, SbomFormat::Spdx, SbomFormat::Syft);
    let _ = [Change::Made, Change::Already, Change::Kept];
    let _ = (Fault::Failed(String::new()), KeyPairError::Mismatch);
    let context = PodConventionContext::default();
    let _: (PodTemplate, Vec<ImageConfig>) = (context.spec.template, context.spec.image_config);
}
