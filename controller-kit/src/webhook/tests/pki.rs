use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use super::super::certificate::{CertificateError, LoadedCertificate};
use super::super::pki::{Authority, Pair};
use super::super::service_names;

fn start() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

fn names() -> Vec<String> {
    service_names("carto-webhook", "carto-system")
}

fn maintained(current: Option<Authority>, now: Timestamp) -> Authority {
    Authority::maintained(current, &names(), now).unwrap()
}

/// Whether a client that trusts this bundle takes this certificate.
fn accepts(bundle: &str, serving: &Pair, now: Timestamp) -> bool {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider)
        .build()
        .unwrap();
    let certificate = CertificateDer::from_pem_slice(serving.certificate.as_bytes()).unwrap();
    let name = ServerName::try_from("carto-webhook.carto-system.svc").unwrap();
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(
        now.as_second().try_into().unwrap(),
    ));
    verifier
        .verify_server_cert(&certificate, &[], &name, &[], now)
        .is_ok()
}

#[test]
fn from_nothing_a_certificate_is_made_that_clients_take() {
    let authority = maintained(None, start());
    assert!(accepts(&authority.trusted(), &authority.serving, start()));
    assert!(
        accepts(
            &authority.trusted(),
            &authority.serving,
            start() - SignedDuration::from_mins(30)
        ),
        "a clock that is behind"
    );
}

#[test]
fn what_is_good_is_left_alone() {
    let authority = maintained(None, start());
    for day in 0..59 {
        assert!(
            maintained(Some(authority.clone()), start() + days(day)) == authority,
            "day {day}"
        );
    }
}

#[test]
fn a_secret_holds_all_of_it() {
    let mut authority = maintained(None, start());
    for day in [0, 500, 502] {
        authority = maintained(Some(authority), start() + days(day));
        let data = authority.to_data();
        assert!(
            Authority::from_data(&data).unwrap() == authority,
            "day {day}"
        );
        assert!(
            data.contains_key("tls.crt")
                && data.contains_key("tls.key")
                && data.contains_key("ca.crt")
        );
    }
}

/// Over five years, looked at once a day: every certificate that is served today is taken by clients whose
/// bundle is up to a day old, and certificates of up to a day ago are taken by clients with today's bundle.
#[test]
fn no_day_breaks_a_client_or_a_replica_that_is_a_day_behind() {
    let mut before = maintained(None, start());
    let (mut authorities, mut certificates) = (1, 1);
    for day in 1..1825 {
        let now = start() + days(day);
        let today = maintained(Some(before.clone()), now);
        assert!(
            accepts(&before.trusted(), &today.serving, now),
            "day {day}: an old bundle"
        );
        assert!(
            accepts(&today.trusted(), &before.serving, now),
            "day {day}: an old certificate"
        );
        assert!(
            maintained(Some(today.clone()), now) == today,
            "day {day}: twice is once"
        );
        authorities += usize::from(today.ca != before.ca);
        certificates += usize::from(today.serving != before.serving);
        before = today;
    }
    // A CA is replaced after two thirds of two years, and a day; a certificate after sixty days.
    assert!((4..=5).contains(&authorities), "{authorities}");
    assert!((29..=36).contains(&certificates), "{certificates}");
    assert!(before.trusted().matches("BEGIN CERTIFICATE").count() <= 3);
}

#[test]
fn after_years_without_a_look_everything_is_made_anew() {
    let old = maintained(None, start());
    let now = start() + days(2000);
    let authority = maintained(Some(old.clone()), now);
    assert!(authority.ca != old.ca && accepts(&authority.trusted(), &authority.serving, now));
}

#[test]
fn what_is_shown_when_the_secret_is_lost_is_trusted_for_some_minutes() {
    let (old, seconds) = (maintained(None, start()), SignedDuration::from_secs);
    let lost = start() + days(3);
    let mut new = maintained(None, lost);
    new.keep_trusted(Some(old.ca.certificate.clone()), lost);
    for pair in [&old.serving, &new.serving] {
        assert!(accepts(&new.trusted(), pair, lost));
    }
    assert!(Authority::from_data(&new.to_data()).unwrap() == new);
    let shown = &old.ca.certificate;
    let remaining = |now| new.shows_lost_for(shown, now).map(|it| it.as_secs());
    assert_eq!(remaining(lost), Some(30));
    assert_eq!(remaining(lost + seconds(20)), Some(10));
    assert_eq!(remaining(lost + seconds(30)), None);
    // Another replica's clock is behind: it waits no longer than it must.
    assert_eq!(remaining(lost - seconds(3000)), Some(30));
    // Who shows the new one already goes on with it.
    assert_eq!(new.shows_lost_for(&new.ca.certificate, lost), None);

    assert!(maintained(Some(new.clone()), lost + seconds(599)) == new);
    let after = maintained(Some(new.clone()), lost + seconds(600));
    assert_eq!(after.trusted(), new.ca.certificate);
    assert!(!accepts(&after.trusted(), &old.serving, lost));

    // What is trusted anyway is not lost, what is lost is not forgotten for it, and later there is nothing to lose.
    let before = new.clone();
    new.keep_trusted(Some(new.ca.certificate.clone()), lost);
    new.keep_trusted(Some("another".to_owned()), lost);
    assert!(new == before);
    let mut late = maintained(None, lost);
    late.keep_trusted(Some(old.ca.certificate.clone()), lost + seconds(31));
    assert_eq!(late.trusted(), late.ca.certificate);
}

#[test]
fn other_names_need_another_certificate_of_the_same_authority() {
    let authority = maintained(None, start());
    let other = Authority::maintained(
        Some(authority.clone()),
        &["10.0.0.1".into(), "other.ns.svc".into()],
        start(),
    )
    .unwrap();
    assert!(other.ca == authority.ca && other.serving != authority.serving);
    assert!(
        Authority::maintained(
            Some(other.clone()),
            &["10.0.0.1".into(), "other.ns.svc".into()],
            start()
        )
        .unwrap()
            == other
    );
}

#[test]
fn whatever_is_damaged_is_made_anew() {
    let good = maintained(None, start());
    let stranger = maintained(None, start());
    let damaged = |name: &str, bytes: &[u8]| {
        let mut data = good.to_data();
        data.insert(name.into(), ByteString(bytes.to_vec()));
        maintained(Authority::from_data(&data), start())
    };
    for (name, bytes) in [
        ("ca.crt", &b"garbage"[..]),
        ("ca.key", b""),
        ("ca.crt", stranger.ca.certificate.as_bytes()),
        ("ca.key", stranger.ca.key.as_bytes()),
        ("tls.crt", b"\xff\xfe"),
        ("tls.crt", stranger.serving.certificate.as_bytes()),
        ("tls.key", stranger.serving.key.as_bytes()),
        (
            "tls.key",
            b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        ),
    ] {
        let mended = damaged(name, bytes);
        assert!(
            accepts(&mended.trusted(), &mended.serving, start()),
            "{name}"
        );
    }
    assert!(Authority::from_data(&BTreeMap::new()).is_none());
}

#[test]
fn a_certificate_without_its_key_is_not_served() {
    let (one, two) = (maintained(None, start()), maintained(None, start()));
    let load = |certificate: &str, key: &str| {
        LoadedCertificate::from_pem(certificate.as_bytes(), key.as_bytes()).err()
    };
    assert!(matches!(
        load(&one.serving.certificate, &two.serving.key),
        Some(CertificateError::Mismatch)
    ));
    assert!(matches!(
        load("", &one.serving.key),
        Some(CertificateError::Certificate(_))
    ));
    assert!(matches!(
        load(&one.serving.certificate, "no key"),
        Some(CertificateError::Key(_))
    ));
    assert_eq!(
        load(&one.serving.certificate, &one.serving.key).map(|error| error.to_string()),
        None
    );
}
