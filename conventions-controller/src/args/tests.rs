//! Each flag, with a value of its own, is found where it belongs.

use std::collections::BTreeSet;

use clap::{Args, CommandFactory as _, Parser};
use image_registry::Settings;

use super::*;

#[derive(Parser)]
struct Flags<A: Args> {
    #[command(flatten)]
    all: A,
}

fn parsed<A: Args>(flags: &[&str]) -> A {
    let flags = [""].iter().chain(flags);
    let parsed = Flags::<A>::try_parse_from(flags);
    parsed.map_err(|error| error.to_string()).unwrap().all
}

/// The names of these flags, and those that there are.
fn names<A: Args>(flags: &[&str]) -> [BTreeSet<String>; 2] {
    let name = |flag: &&str| {
        flag.trim_start_matches('-')
            .split('=')
            .next()
            .map(str::to_owned)
    };
    let command = Flags::<A>::command();
    let known = command.get_arguments().filter_map(clap::Arg::get_long);
    [
        flags.iter().filter_map(name).collect(),
        known.map(str::to_owned).collect(),
    ]
}

#[test]
fn each_flag_about_images_is_the_setting_that_it_is_named_like() {
    let flags = [
        "--image-cache=/cache",
        "--image-cache-mib=2",
        "--registry-ca=/ca",
        "--registry-hosts=/hosts",
        "--docker-config=/docker",
        "--image-credential-provider-config=/plugins",
        "--image-credential-provider-bin-dir=/programs",
        "--image-platform=plan9/riscv64/v3",
        "--pin-platform-digest",
        "--image-timeout-seconds=7",
        "--max-sbom-size=3",
        "--max-sbom-layer-size=4",
        "--sbom-attachments",
        "--registry-concurrency=5",
        "--registry-requests-per-second=6",
    ];
    let found = parsed::<ImageArgs>(&flags).settings();
    let expected = Settings {
        disk_bytes: 2 << 20,
        ca_file: Some("/ca".into()),
        hosts_folder: Some("/hosts".into()),
        docker_config: Some("/docker".into()),
        plugins: Some(("/plugins".into(), "/programs".into())),
        platform: "plan9/riscv64/v3".parse().unwrap(),
        pinned_digest: image_registry::PinnedDigest::Child,
        sbom_file_bytes: 3 << 20,
        sbom_layer_bytes: 4 << 20,
        attachments: true,
        referrers: false,
        concurrency: 5,
        requests_per_second: 6,
        budget: Duration::from_secs(7),
        ..Settings::new("/cache")
    };
    assert_eq!(format!("{found:#?}"), format!("{expected:#?}"));

    let other = parsed::<ImageArgs>(&["--sbom-referrers"]).settings();
    assert!(other.referrers && !other.attachments);
    assert_eq!(other.pinned_digest, image_registry::PinnedDigest::Index);
    assert_eq!(other.plugins, None);

    let all = [&flags[..], &["--sbom-referrers"]].concat();
    let [tried, known] = names::<ImageArgs>(&all);
    assert_eq!(tried, known, "each flag is tried");
}

/// A template is made anew when one of these is another, and with no other flag.
#[test]
fn what_decides_about_templates_is_told_apart() {
    let of = |flags: &[&str]| parsed::<ImageArgs>(flags).resolution();
    let told: BTreeSet<String> = [
        &[][..],
        &["--image-platform=linux/arm64"],
        &["--pin-platform-digest"],
        &["--sbom-attachments"],
        &["--sbom-referrers"],
        &["--pin-platform-digest", "--sbom-attachments"],
        &["--pin-platform-digest", "--sbom-referrers"],
    ]
    .map(of)
    .into();
    assert_eq!(told.len(), 7, "{told:?}");
    assert_eq!(
        of(&["--image-cache=/other", "--registry-concurrency=1"]),
        of(&[])
    );
}

#[test]
fn each_flag_of_the_controller_is_the_setting_that_it_is_named_like() {
    let args: ConventionArgs = parsed(&[
        "--mutating-webhook-configuration=mutating",
        "--webhook-configuration=validating",
        "--webhook-secret=secret",
        "--webhook-service=service",
        "--resync-seconds=2",
        "--convention-rollout-per-second=3",
        "--max-webhook-answer=4",
        "--webhook-answers-memory=5",
        "--resolve-images-at-end",
        "--registry-concurrency=7",
    ]);
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(args.mutating_webhook_configuration, text("mutating"));
    assert_eq!(args.webhook.webhook_configuration, text("validating"));
    assert_eq!(args.webhook.webhook_secret, text("secret"));
    assert_eq!(args.webhook.webhook_service, text("service"));
    assert_eq!(args.resync(), Some(Duration::from_secs(2)));
    assert_eq!(args.convention_rollout_per_second, 3);
    let client = args.client("us/1");
    assert_eq!(client.most_answer_bytes, 4 << 20);
    assert_eq!(client.user_agent, "us/1");
    assert_eq!(args.webhook_answers_memory, 5);
    assert!(args.resolve_images_at_end && !args.metrics_configmap);
    assert_eq!(args.images.settings().concurrency, 7);

    let other: ConventionArgs = parsed(&["--metrics-configmap", "--resync-seconds=0"]);
    assert!(other.metrics_configmap && !other.resolve_images_at_end);
    assert_eq!(other.resync(), None);
}

#[test]
fn an_answer_of_no_or_of_too_many_bytes_is_refused_as_a_flag() {
    for (flag, is_good) in [
        ("--max-webhook-answer=0", false),
        ("--max-webhook-answer=1", true),
        ("--max-webhook-answer=64", true),
        ("--max-webhook-answer=65", false),
    ] {
        let read = Flags::<ConventionArgs>::try_parse_from(["", flag]);
        assert_eq!(read.is_ok(), is_good, "{flag}");
    }
}
