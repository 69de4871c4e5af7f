use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn keyring(auths: &Value) -> (Keyring, Vec<EntryFault>) {
    let mut keyring = Keyring::default();
    let bytes = serde_json::to_vec(&json!({"auths": auths})).unwrap();
    let faults = keyring.add(SecretKind::DockerConfigJson, &bytes);
    (keyring, faults)
}

/// A keyring in which the user of each entry is what the entry is for.
fn for_each(addresses: &[&str]) -> Keyring {
    let entries = addresses.iter();
    let entries = entries.map(|&address| {
        (
            address.to_owned(),
            json!({"username": address, "password": "p"}),
        )
    });
    let (keyring, faults) = keyring(&Value::Object(entries.collect()));
    assert_eq!(faults, [], "{addresses:?}");
    keyring
}

fn users<'k>(keyring: &'k Keyring, name: &str) -> Vec<&'k str> {
    let found = keyring.lookup(name).into_iter();
    found.map(|it| it.username.as_str()).collect()
}

#[test]
fn hosts_ports_and_paths_match_as_in_the_kubelet() {
    for (address, name, matches) in [
        ("*.kubernetes.io", "prefix.kubernetes.io", true),
        ("prefix.*.io", "prefix.kubernetes.io", true),
        ("prefix.kubernetes.*", "prefix.kubernetes.io", true),
        ("*-good.kubernetes.io", "prefix-good.kubernetes.io", true),
        ("*.kubernetes.io/blah", "prefix.kubernetes.io/blah", true),
        ("prefix.*.io/foo", "prefix.kubernetes.io/foo/bar", true),
        (
            "*.kubernetes.io:1111/blah",
            "prefix.kubernetes.io:1111/blah",
            true,
        ),
        (
            "prefix.*.io:1111/foo",
            "prefix.kubernetes.io:1111/foo/bar",
            true,
        ),
        ("*.kubernetes.io", "kubernetes.io", false),
        ("*.*.kubernetes.io", "prefix.kubernetes.io", false),
        ("*.*.kubernetes.io", "kubernetes.io", false),
        ("*kubernetes.io", "a.kubernetes.io", false),
        ("*kubernetes.io", "kubernetes.io", true),
        ("*.*.*.kubernetes.io", "a.b.c.kubernetes.io", true),
        ("kubernetes.io", "kubernetes.com", false),
        ("k*.io", "quay.io", false),
        (
            "*.kubernetes.io:1234/blah",
            "prefix.kubernetes.io:1111/blah",
            false,
        ),
        (
            "prefix.*.io/foo",
            "prefix.kubernetes.io:1111/foo/bar",
            false,
        ),
        // A path is the beginning of a text, not of a folder.
        ("host.example/team", "host.example/teams/app", true),
        ("host.example/team/", "host.example/team/app", true),
        ("host.example/team/", "host.example/teams/app", false),
        ("host.example/team/app", "host.example/team", false),
        // A port is compared as it is written.
        ("host.example:443", "host.example/app", false),
        ("host.example", "host.example:443/app", false),
        ("host.example:443", "host.example:443/app", true),
        ("https://host.example", "host.example/app", true),
        ("http://host.example/", "host.example/app", true),
        ("https://host.example/v1/", "host.example/app", true),
        ("https://host.example/v2/", "host.example/app", true),
        (
            "https://host.example/v2/team",
            "host.example/team/app",
            true,
        ),
        ("https://host.example/v2", "host.example/app", false),
        (
            "https://host.example/v2/v1/team",
            "host.example/v1/team/app",
            true,
        ),
        (
            "https://host.example/v2/v1/team",
            "host.example/team/app",
            false,
        ),
        ("https://host.example/v1x/", "host.example/app", false),
        (
            "https://user@host.example/v2/?a=b#c",
            "host.example/app",
            true,
        ),
        ("host.example", "HOST.example/app", false),
        ("[::1]:5000", "[::1]:5000/app", true),
        ("[::1]:5000", "[::1]:5001/app", false),
        ("[::1]", "[::1]/app", true),
        ("a*b*c.example", "aXbYc.example/app", true),
        ("a*b*c.example", "abc.example/app", true),
        ("a*b*c.example", "acb.example/app", false),
        ("*", "localhost/app", true),
        ("*", "host.example/app", false),
        ("", "host.example/app", false),
    ] {
        let keyring = for_each(&[address]);
        assert_eq!(
            !keyring.lookup(name).is_empty(),
            matches,
            "{address} {name}"
        );
    }
}

#[test]
fn the_most_specific_credentials_come_first_and_all_that_match_are_given() {
    let keyring = for_each(&[
        "host.example",
        "host.example/team",
        "host.example/team/app",
        "*.example",
        "host.*",
        "other.example",
    ]);
    assert_eq!(
        users(&keyring, "host.example/team/app"),
        [
            "host.example/team/app",
            "host.example/team",
            "host.example",
            "host.*",
            "*.example"
        ]
    );
}

#[test]
fn secrets_are_asked_in_their_order_and_one_credential_is_tried_once() {
    let mut keyring = Keyring::default();
    let json = |user: &str| format!(r#"{{"auths": {{"host.example": {{"username": "{user}"}}}}}}"#);
    let cfg = br#"{"https://host.example/v2/": {"username": "third"}, "host.example": {"username": "second"}}"#;
    for user in ["first", "first"] {
        assert_eq!(
            keyring.add(SecretKind::DockerConfigJson, json(user).as_bytes()),
            []
        );
    }
    assert_eq!(keyring.add(SecretKind::DockerCfg, cfg), []);
    assert_eq!(
        users(&keyring, "host.example/app"),
        ["first", "second", "third"]
    );
}

#[test]
fn docker_hub_is_found_under_the_address_of_its_first_version_if_nothing_else_matches() {
    let old = "https://index.docker.io/v1/";
    let keyring = for_each(&[old]);
    for name in [
        "docker.io/library/ubuntu",
        "index.docker.io/library/ubuntu",
        "library/ubuntu",
        "ubuntu",
    ] {
        assert_eq!(users(&keyring, name), [old], "{name}");
    }
    assert!(users(&keyring, "host.example/ubuntu").is_empty());
    assert!(users(&keyring, "localhost:5000/ubuntu").is_empty());
    for name in ["localhost/ubuntu", "mirror/library/ubuntu"] {
        assert!(keyring.lookup_on_host(name).is_empty(), "{name}");
    }
    let keyring = for_each(&[old, "docker.io/library"]);
    assert_eq!(
        users(&keyring, "docker.io/library/ubuntu"),
        ["docker.io/library"]
    );
    assert_eq!(users(&keyring, "docker.io/team/app"), [old]);
}

#[test]
fn of_a_flood_of_credentials_the_first_are_given() {
    // One address, written in many ways.
    let entries = (0..30_000).map(|number| {
        let entry = json!({"username": format!("{number:05}"), "password": "p"});
        (format!("host.example#{number:05}"), entry)
    });
    let (keyring, faults) = keyring(&Value::Object(entries.collect()));
    assert_eq!(faults, []);
    let given = users(&keyring, "host.example/team/app");
    assert_eq!(given.len(), MOST_CREDENTIALS);
    assert_eq!((given[0], given[31]), ("00000", "00031"));
    let hub = json!({"https://index.docker.io/v1/": {"username": "u"}, "index.docker.io": {"username": "v"}});
    let (keyring, _) = self::keyring(&hub);
    assert_eq!(users(&keyring, "docker.io/library/ubuntu"), ["u", "v"]);
}

#[test]
fn a_broken_entry_harms_only_itself() {
    let good = STANDARD.encode("user:pass:word");
    let unpadded = good.trim_end_matches('=').to_owned();
    let wrapped = format!("{}\n{}\r\n", &good[..4], &good[4..]);
    let (keyring, faults) = keyring(&json!({
        "a.example": {"auth": good, "username": "ignored"},
        "b.example": {"auth": unpadded},
        "c.example": {"auth": wrapped},
        "d.example": {"auth": "not base64!"},
        "e.example": {"auth": STANDARD.encode("no colon")},
        "f.example": {"auth": STANDARD.encode([0xff, b':', 0xfe])},
        "g.example": 5,
        "h.example": null,
        "i.example": {"username": "plain", "password": "p", "auth": "", "email": "x"},
        "j.example": {"username": 5},
        "k example": {"username": "space"},
        "l.example:port": {"username": "port"},
        "m.example": {"identitytoken": "t", "username": "<token>"},
        "n.example": {},
    }));
    let faulty: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        faulty,
        [
            r#"the entry "d.example" has no credentials that can be read"#,
            r#"the entry "e.example" has no credentials that can be read"#,
            r#"the entry "f.example" has no credentials that can be read"#,
            r#"the entry "g.example" has no credentials that can be read"#,
            r#"the entry "h.example" has no credentials that can be read"#,
            r#"the entry "j.example" has no credentials that can be read"#,
            r#"the entry "k example" is for no address of a registry"#,
            r#"the entry "l.example:port" is for no address of a registry"#,
        ]
    );
    for host in ["a", "b", "c"] {
        let name = format!("{host}.example/app");
        let [credential] = keyring.lookup(&name)[..] else {
            panic!("{name}");
        };
        assert_eq!(
            (credential.username.as_str(), credential.password.as_str()),
            ("user", "pass:word")
        );
    }
    assert_eq!(users(&keyring, "i.example/app"), ["plain"]);
    assert_eq!(users(&keyring, "n.example/app"), [""]);
    let token = keyring.lookup("m.example/app")[0].identity_token.as_deref();
    assert_eq!(token, Some("t"));
}

#[test]
fn a_broken_secret_harms_only_itself() {
    let mut keyring = for_each(&["host.example"]);
    for broken in [
        &b""[..],
        b"{",
        b"[]",
        br#"{"auths": []}"#,
        br#"{"auths": "x"}"#,
        b"\xff",
    ] {
        let faults = keyring.add(SecretKind::DockerConfigJson, broken);
        assert_eq!(
            faults,
            [EntryFault::Whole],
            "{}",
            String::from_utf8_lossy(broken)
        );
    }
    for empty in [&b"{}"[..], br#"{"auths": null}"#, br#"{"auths": {}}"#] {
        assert_eq!(keyring.add(SecretKind::DockerConfigJson, empty), []);
    }
    assert_eq!(users(&keyring, "host.example/app"), ["host.example"]);
}

#[test]
fn no_credential_is_ever_shown() {
    let (keyring, faults) = keyring(&json!({
        "a.example": {"username": "user", "password": "hunter2", "identitytoken": "hunter3"},
        "b.example": {"username": "user", "password": 2, "auth": "hunter4"},
    }));
    let shown = format!(
        "{keyring:?} {:?} {faults:?}",
        keyring.lookup("a.example/app")
    );
    assert!(shown.contains("a.example"));
    assert!(
        !shown.contains("hunter") && !shown.contains("user\""),
        "{shown}"
    );
}

proptest! {
    #[test]
    fn what_stands_beside_an_entry_changes_nothing_for_it(
        others in proptest::collection::btree_map("[a-c*./:]{1,6}", "[a-zA-Z0-9+/=]{0,8}", 0..6)
    ) {
        let mut auths: serde_json::Map<String, Value> = others
            .into_iter()
            .map(|(address, auth)| (address, json!({"auth": auth})))
            .collect();
        auths.insert("host.example/team".to_owned(), json!({"username": "me"}));
        let (keyring, _) = keyring(&Value::Object(auths));
        prop_assert!(users(&keyring, "host.example/team/app").contains(&"me"));
    }

    #[test]
    fn a_pattern_matches_what_it_was_made_of(parts in proptest::collection::vec("[a-z]{0,3}", 1..5), filled in "[a-z]{0,3}") {
        let (pattern, text) = (parts.join("*"), parts.join(&filled));
        let keyring = for_each(&[&format!("x{pattern}.example")]);
        prop_assert_eq!(keyring.lookup(&format!("x{text}.example/app")).len(), 1);
    }
}
