//! Fuzz targets: what holds for any text that an author, a Secret or a webhook may hold.
//!
//! `cargo test -p conventions --test fuzz` tries each with random bytes for a second. A fuzzer that is led by coverage
//! goes on from there, as long as one likes: `cargo bolero test -p conventions --test fuzz any_reference_reads_back`.

use std::time::Duration;

use bolero::check;
use convention_protocol::APPLIED_CONVENTIONS;
use conventions::answer;
use conventions::authority::{self, CertificateRequest};
use conventions::chain::Chain;
use conventions::credentials::{Keyring, SecretKind};
use conventions::image::{Digest, Reference};

/// Of each target, when nothing leads it. Debug builds try some thousand inputs meanwhile.
const TIME: Duration = Duration::from_secs(1);

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Pieces of which references and addresses are made. Bytes alone hardly ever make one that parses.
const PIECES: [&str; 32] = [
    "a",
    "b",
    "ab",
    "library",
    "ubuntu",
    "localhost",
    "host.example",
    "docker.io",
    "index.docker.io",
    ":",
    ":",
    ":5000",
    ":t",
    "/",
    "/",
    "/",
    "@",
    "@sha256:",
    "/v1/",
    "/v2/",
    "https://",
    "*",
    "*.",
    ".",
    "-",
    "_",
    "[::1]",
    "?",
    "#",
    "%",
    "é",
    " ",
];

/// A text of pieces and single characters; now and then with a digest behind.
fn text(bytes: &[u8]) -> String {
    let pieces = bytes
        .iter()
        .map(|byte| match PIECES.get(usize::from(*byte) % 64) {
            Some(piece) => (*piece).to_owned(),
            None if byte % 8 == 0 => format!("@{DIGEST}"),
            None => char::from(*byte).to_string(),
        });
    pieces.collect()
}

#[test]
fn any_reference_reads_back_and_keeps_its_tag() {
    check!().with_test_time(TIME).for_each(|bytes| {
        let given = text(&bytes[..bytes.len().min(8)]);
        let Ok(reference) = given.parse::<Reference>() else {
            return;
        };
        let digest: Digest = DIGEST.parse().unwrap();
        let read: Reference = reference.to_string().parse().unwrap();
        assert_eq!(read.to_string(), reference.to_string(), "{given}");
        let resolved = reference.at(&digest);
        let again: Reference = resolved.to_string().parse().unwrap();
        assert_eq!(again, resolved, "{given}");
        assert_eq!(again.at(&digest), resolved, "{given}");
        assert_eq!(resolved.tag(), reference.tag(), "{given}");
    });
}

#[test]
fn no_secret_makes_a_keyring_panic_or_harms_another() {
    check!().with_test_time(TIME).for_each(|bytes| {
        let mut keyring = Keyring::default();
        let (left, right) = bytes.split_at(bytes.len() / 2);
        let entry = serde_json::json!({text(left): {"auth": text(right), "username": "u"}});
        let auths = serde_json::to_vec(&serde_json::json!({"auths": entry})).unwrap();
        let good = br#"{"auths": {"host.example/ab": {"username": "me"}}}"#;
        for broken in [bytes, &auths] {
            keyring.add(SecretKind::DockerConfigJson, broken);
            keyring.add(SecretKind::DockerCfg, broken);
        }
        assert_eq!(keyring.add(SecretKind::DockerConfigJson, good), []);
        let found = keyring.lookup("host.example/ab/app");
        assert!(found.iter().any(|it| it.username == "me"));
        let _ = keyring.lookup(&text(right));
    });
}

#[test]
fn no_answer_makes_a_chain_panic_or_forges_a_receipt() {
    check!().with_test_time(TIME).for_each(|bytes| {
        let _ = answer::read(bytes);
        let name = String::from_utf8_lossy(bytes);
        let annotations = serde_json::json!({APPLIED_CONVENTIONS: name});
        let template = serde_json::json!({"metadata": {"annotations": annotations}, "spec": {"containers": []}});
        let status = serde_json::json!({"status": {"template": template, "appliedConventions": [name]}});
        let answer = answer::read(&serde_json::to_vec(&status).unwrap()).unwrap();
        let mut chain = Chain::start(serde_json::from_str(r#"{"spec": {"containers": []}}"#).unwrap());
        chain.record("evil", answer).unwrap();
        let annotations = chain.finish().unwrap().metadata.annotations;
        let lines: Vec<&str> = annotations[APPLIED_CONVENTIONS].lines().collect();
        assert!(matches!(lines[..], [line] if line.starts_with("evil/")), "{lines:?}");
    });
}

#[test]
fn no_certificate_request_harms_another() {
    const GOOD: &str = "-----BEGIN CERTIFICATE-----\nZ29vZA==\n-----END CERTIFICATE-----";
    check!().with_test_time(TIME).for_each(|bytes| {
        let certificate = conventions::CertificateReference {
            namespace: "team".to_owned(),
            name: "web".to_owned(),
        };
        let request = |name: &str, ca: &[u8]| CertificateRequest {
            name: name.to_owned(),
            certificate: "web".to_owned(),
            created: None,
            ca: ca.to_vec(),
            ready: true,
        };
        let cut = &GOOD.as_bytes()[..GOOD.len() - bytes.len().min(GOOD.len())];
        let broken = [cut, bytes, GOOD.as_bytes(), bytes].concat();
        let requests = [
            request("a", GOOD.as_bytes()),
            request("b", bytes),
            request("c", &broken),
        ];
        let bundle = authority::bundle("c", &certificate, &requests, Some(bytes)).unwrap();
        let trusted = authority::certificates(&bundle);
        assert!(trusted.iter().any(|it| it == b"good"), "{trusted:?}");
        let again = authority::bundle("c", &certificate, &[], Some(&bundle)).unwrap();
        assert_eq!(again, bundle);
    });
}
