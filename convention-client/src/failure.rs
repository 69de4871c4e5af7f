//! What went wrong with a connection, found in the error that its client has.

use std::error::Error;
use std::io;
use std::time::{Duration, SystemTime};

use rustls::CertificateError;
use rustls::pki_types::UnixTime;

use crate::body::StoredError;
use crate::error::CallError;
use crate::target::Target;
use crate::trust::Trust;

/// Until the year 9999.
const CALENDAR: Duration = Duration::from_hours(70_389_528);

/// What an error of the client means. It is the innermost that tells.
pub(crate) fn of_client(url: &str, target: &Target, error: &(dyn Error + 'static)) -> CallError {
    let chain = || std::iter::successors(Some(error), |error| inner(*error));
    if let Some(stored) = chain().find_map(|error| error.downcast_ref::<StoredError>()) {
        return CallError::request(url, &stored.to_string());
    }
    if let Some(tls) = chain().find_map(|error| error.downcast_ref::<rustls::Error>()) {
        return of_tls(url, target, tls);
    }
    let http = chain().find_map(|error| error.downcast_ref::<hyper::Error>());
    if let Some(http) = http.filter(|error| error.is_parse()) {
        return CallError::answer(url, &format!("it does not answer as HTTP/1.1 asks: {http}"));
    }
    // The outermost says no more than that something failed.
    let causes: Vec<String> = chain().skip(1).map(ToString::to_string).collect();
    if causes.is_empty() {
        return CallError::connection(url, &error.to_string());
    }
    CallError::connection(url, &causes.join(": "))
}

/// What an error is about. One of the system hides what it was made of.
fn inner<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    let hidden = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
        .map(|error| -> &(dyn Error + 'static) { error });
    hidden.or_else(|| error.source())
}

fn of_tls(url: &str, target: &Target, error: &rustls::Error) -> CallError {
    use CertificateError::{
        BadSignature, NotValidForName, NotValidForNameContext, UnknownIssuer,
        UnsupportedSignatureAlgorithmForPublicKeyContext as OtherKindOfKey,
    };
    match error {
        // By one of the same name and another key, or another kind of key, as after a rotation.
        rustls::Error::InvalidCertificate(UnknownIssuer | BadSignature | OtherKindOfKey { .. }) => {
            CallError::untrusted(url, unknown_issuer(target.trust()))
        }
        rustls::Error::InvalidCertificate(NotValidForName) => {
            CallError::untrusted(url, "its certificate is for another name")
        }
        rustls::Error::InvalidCertificate(NotValidForNameContext {
            expected,
            presented,
        }) => CallError::untrusted(url, &other_name(&expected.to_str(), presented)),
        rustls::Error::InvalidCertificate(problem) if when(problem).is_some() => {
            let when = when(problem).unwrap_or_default();
            CallError::untrusted(url, &format!("its certificate {when}"))
        }
        rustls::Error::InvalidCertificate(problem) => {
            CallError::untrusted(url, &format!("its certificate is not valid: {problem}"))
        }
        rustls::Error::InvalidMessage(_) => {
            CallError::untrusted(url, "it does not speak TLS, or none that is known here")
        }
        other => CallError::untrusted(url, &format!("no agreement on TLS: {other}")),
    }
}

fn other_name(expected: &str, presented: &[String]) -> String {
    if presented.is_empty() {
        return format!(
            "its certificate has no subject alternative name, and is to have {expected}; \
             a common name does not count"
        );
    }
    let names: Vec<&str> = presented.iter().map(|name| bare_name(name)).collect();
    format!(
        "its certificate is for {}, not for {expected}",
        names.join(", ")
    )
}

/// A name out of what it is called by the library, as in `DnsName("a")`.
fn bare_name(presented: &str) -> &str {
    let inner = presented.split_once('(').map(|(_, inner)| inner);
    let inner = inner.and_then(|inner| inner.strip_suffix(')'));
    inner.map_or(presented, |inner| inner.trim_matches('"'))
}

/// Since or until when a certificate is not valid. That it is said in the same words at all times keeps
/// a condition from changing with each call.
fn when(problem: &CertificateError) -> Option<String> {
    let date = |time: &UnixTime| {
        let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(time.as_secs()));
        // Later than any calendar has it.
        let time = time.filter(|time| *time < SystemTime::UNIX_EPOCH + CALENDAR);
        time.map_or_else(|| "ever".to_owned(), httpdate::fmt_http_date)
    };
    match problem {
        CertificateError::Expired => Some("has expired".to_owned()),
        CertificateError::ExpiredContext { not_after, .. } => {
            Some(format!("expired on {}", date(not_after)))
        }
        CertificateError::NotValidYet => Some("is not valid yet".to_owned()),
        CertificateError::NotValidYetContext { not_before, .. } => {
            Some(format!("is not valid before {}", date(not_before)))
        }
        _ => None,
    }
}

fn unknown_issuer(trust: &Trust) -> &'static str {
    match trust {
        Trust::System => {
            "its certificate was signed by an authority that the system does not know: give the \
             authority's certificate in clientConfig.caBundle, or name a Certificate of cert-manager"
        }
        Trust::Own(_) => {
            "its certificate was signed by another authority than the one that the convention \
             gives: correct clientConfig.caBundle or the reference to the Certificate of \
             cert-manager, or have the server read its new certificate"
        }
    }
}

/// What it means that an answer broke off.
pub(crate) fn of_answer(url: &str, target: &Target, error: &hyper::Error) -> CallError {
    match of_client(url, target, error) {
        CallError::Connection { url, cause } => {
            CallError::connection(&url, &format!("its answer broke off: {cause}"))
        }
        other => other,
    }
}
