use k8s_openapi::ByteString;
use proptest::prelude::*;

use super::*;

fn service(name: &str, path: Option<&str>, port: Option<i32>) -> WebhookClientConfig {
    WebhookClientConfig {
        service: Some(ServiceReference {
            name: name.to_owned(),
            namespace: "team".to_owned(),
            path: path.map(str::to_owned),
            port,
        }),
        ..Default::default()
    }
}

fn url(url: &str) -> WebhookClientConfig {
    WebhookClientConfig {
        url: Some(url.to_owned()),
        ..Default::default()
    }
}

fn called(config: &WebhookClientConfig) -> Result<String, String> {
    let target = Target::of(config, None);
    target
        .map(|target| target.url.to_string())
        .map_err(|error| error.to_string())
}

fn certificate() -> String {
    let key_pair = test_support::TestKeyPair::signed_by_itself(&["a"]);
    key_pair.unwrap().certificate_pem()
}

#[test]
fn a_service_is_called_by_its_name_in_the_cluster() {
    for (path, port, expected) in [
        (None, None, "https://hooks.team.svc/"),
        (Some(""), Some(0), "https://hooks.team.svc/"),
        (
            Some("labelonly"),
            Some(443),
            "https://hooks.team.svc/labelonly",
        ),
        (
            Some("/a//b/"),
            Some(8443),
            "https://hooks.team.svc:8443/a/b",
        ),
        (
            Some("a/./b/../c;d=e"),
            None,
            "https://hooks.team.svc/a/c;d=e",
        ),
        (Some("../../a"), None, "https://hooks.team.svc/a"),
        (
            Some("a b?c#d%2Fe"),
            None,
            "https://hooks.team.svc/a%20b%3Fc%23d%252Fe",
        ),
    ] {
        let called = called(&service("hooks", path, port));
        assert_eq!(called.as_deref(), Ok(expected), "{path:?} {port:?}");
    }
}

#[test]
fn a_url_is_called_without_what_nobody_sends() {
    for (text, expected) in [
        ("https://a", "https://a/"),
        ("https://a/b/", "https://a/b"),
        ("https://a:8443//b;c", "https://a:8443/b;c"),
        ("https://user:word@a/b?c=d#e", "https://a/b"),
        ("https://[::1]:8443/b", "https://[::1]:8443/b"),
        ("http://127.0.0.1:80/b%20c", "http://127.0.0.1/b%20c"),
    ] {
        assert_eq!(called(&url(text)).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn what_cannot_be_called_is_told_without_credentials() {
    let nobody = called(&WebhookClientConfig::default()).unwrap_err();
    assert_eq!(
        nobody,
        "webhook configuration must have either service or URL"
    );
    for text in [
        "",
        "a",
        "/a",
        "https://",
        "ftp://user:word@a/",
        "mailto:word@a",
        "https://user:word@a:99999/",
        "https://user:word@[a/",
        "https://user:word@a b/",
        "https://user:word@-a-/",
    ] {
        let error = called(&url(text)).unwrap_err();
        assert!(error.starts_with("the URL "), "{text}: {error}");
        assert!(!error.contains("word"), "{text}: {error}");
    }
    for (name, port) in [
        ("", None),
        ("a/b", None),
        ("a@b", None),
        ("a:1", None),
        ("A\n", None),
        ("-", None),
        ("a..b", None),
        ("hooks", Some(-1)),
        ("hooks", Some(65536)),
    ] {
        let error = called(&service(name, None, port)).unwrap_err();
        assert!(
            error.starts_with("the service of the webhook cannot be called"),
            "{error}"
        );
    }
}

#[test]
fn a_message_shows_port_and_path_only() {
    let target = Target::of(&url("https://user:word@a/b?c=d#e"), None).unwrap();
    assert_eq!(target.to_string(), "https://a:443/b");
}

#[test]
fn authorities_that_are_given_win_over_those_of_the_convention() {
    let (ours, theirs) = (certificate(), certificate());
    let mut config = url("https://a");
    assert_eq!(Target::of(&config, None).unwrap().trust, Trust::System);
    config.ca_bundle = Some(ByteString(Vec::new()));
    assert_eq!(Target::of(&config, None).unwrap().trust, Trust::System);
    config.ca_bundle = Some(ByteString(theirs.clone().into_bytes()));
    let configured = Target::of(&config, None).unwrap();
    assert_eq!(
        Some(&configured.trust),
        Trust::own(theirs.as_bytes()).as_ref()
    );
    let given = Target::of(&config, Some(ours.as_bytes())).unwrap();
    assert_eq!(Some(&given.trust), Trust::own(ours.as_bytes()).as_ref());
    assert_ne!(configured, given);
}

#[test]
fn a_bundle_without_certificate_is_told_with_what_to_do() {
    let no_certificate = "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n";
    for pem in ["", "LS0tLS1CRUdJTi", no_certificate] {
        let refused = Target::of(&url("https://a"), Some(pem.as_bytes()));
        assert_eq!(refused, Err(TargetError::Authority));
    }
    let text = TargetError::Authority.to_string();
    assert!(
        text.contains("caBundle") && text.contains("cert-manager"),
        "{text}"
    );
    // One that can be read is enough, wherever it stands.
    let mixed = format!("{no_certificate}x{}", certificate());
    assert!(Target::of(&url("https://a"), Some(mixed.as_bytes())).is_ok());
}

#[test]
fn the_order_of_authorities_makes_no_difference() {
    let (a, b) = (certificate(), certificate());
    let one = Trust::own(format!("{a}{b}").as_bytes()).unwrap();
    let other = Trust::own(format!("{b}{a}{b}").as_bytes()).unwrap();
    assert_eq!(one.digest(), other.digest());
    assert_ne!(one.digest(), Trust::own(a.as_bytes()).unwrap().digest());
}

/// Texts that look like URLs, and others.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        r"https?://[ -~]{0,30}",
        r"https://[a-z0-9.@:\[\]%\\-]{0,20}/[^\r\n]{0,20}",
    ]
}

proptest! {
    #[test]
    fn no_url_panics_and_what_is_accepted_can_be_sent(text in texts()) {
        match Target::of(&url(&text), None) {
            Ok(target) => {
                let sent = format!("{}?timeout=30s", target.url);
                prop_assert!(sent.parse::<http::Uri>().is_ok(), "{sent}");
                prop_assert!(target.url.username().is_empty());
                prop_assert!(!target.to_string().contains(char::is_control));
            }
            Err(error) => prop_assert!(!error.to_string().contains(char::is_control)),
        }
    }

    #[test]
    fn no_service_panics_and_none_leads_elsewhere(
        name in any::<String>(),
        path in any::<Option<String>>(),
        port in any::<Option<i32>>(),
    ) {
        let prefix = format!("https://{name}.team.svc");
        match Target::of(&service(&name, path.as_deref(), port), None) {
            Ok(target) => {
                prop_assert!(target.url.as_str().starts_with(&prefix), "{}", target.url);
                prop_assert!(target.url.as_str().parse::<http::Uri>().is_ok());
            }
            Err(error) => prop_assert!(!error.to_string().contains(char::is_control)),
        }
    }
}
