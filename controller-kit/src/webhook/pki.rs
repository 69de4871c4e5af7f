//! A certificate authority of our own, kept in one Secret and renewed with overlap. Pure but for the
//! randomness of new keys: the time is an argument.
//!
//! ```text
//!  CA    ├──────── lifetime ─────────┤            serving certificates live 90 days and are
//!  next            ├─ trusted ─┬─ signs ────▶     replaced after 60, by whichever CA signs
//!                  created     promoted a day later
//! ```
//!
//! A new CA is trusted (in the caBundle) a day before it signs anything, and the old one stays trusted
//! until it expires: no order in which the API server and the replicas notice breaks a request.
//!
//! When the Secret is lost there is no time for that. Then the old CA stays trusted for some minutes, and what it signed is
//! shown for the first of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use thiserror::Error;

use super::certificate::{CertificateError, LoadedCertificate};
use super::validity::Validity;

const CA_LIFETIME: SignedDuration = SignedDuration::from_hours(2 * 365 * 24);
const SERVING_LIFETIME: SignedDuration = SignedDuration::from_hours(90 * 24);
/// How long a new CA is only trusted before it signs.
const OVERLAP: SignedDuration = SignedDuration::from_hours(24);
/// After the Secret was lost: how long the certificate from before is shown, so that the API server can hear of the new CA.
const SHOWN_AFTER_LOSS: SignedDuration = SignedDuration::from_secs(30);
/// And how long the CA from before is trusted. Not longer: its key may have been why the Secret was deleted.
const TRUSTED_AFTER_LOSS: SignedDuration = SignedDuration::from_mins(10);
/// Clocks of other machines may be behind ours by this much.
const BACKDATE: SignedDuration = SignedDuration::from_hours(1);

/// Making a key or a certificate failed.
#[derive(Debug, Error)]
pub(super) enum PkiError {
    #[error("make certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("the time {0} does not fit into a certificate")]
    Time(Timestamp),
}

/// A certificate and its key, both PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Everything in the Secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Authority {
    pub(super) ca: Pair,
    next: Option<Pair>,
    /// Certificate of the CA before; no longer signs.
    previous: Option<String>,
    /// Certificate of the CA whose Secret was lost.
    lost: Option<String>,
    pub(super) serving: Pair,
}

impl Authority {
    /// What a Secret holds; `None` if the essential parts are not there.
    pub(super) fn from_data(data: &BTreeMap<String, ByteString>) -> Option<Self> {
        let text = |name: &str| {
            data.get(name)
                .and_then(|bytes| String::from_utf8(bytes.0.clone()).ok())
        };
        let pair = |certificate: &str, key: &str| {
            Some(Pair {
                certificate: text(certificate)?,
                key: text(key)?,
            })
        };
        Some(Self {
            ca: pair("ca.crt", "ca.key")?,
            next: pair("ca-next.crt", "ca-next.key"),
            previous: text("ca-previous.crt"),
            lost: text("ca-lost.crt"),
            serving: pair("tls.crt", "tls.key")?,
        })
    }

    /// What the Secret is to hold.
    pub(super) fn to_data(&self) -> BTreeMap<String, ByteString> {
        let mut data = BTreeMap::new();
        let mut put = |name: &str, text: &str| {
            data.insert(name.to_owned(), ByteString(text.as_bytes().to_vec()))
        };
        put("ca.crt", &self.ca.certificate);
        put("ca.key", &self.ca.key);
        put("tls.crt", &self.serving.certificate);
        put("tls.key", &self.serving.key);
        if let Some(next) = &self.next {
            put("ca-next.crt", &next.certificate);
            put("ca-next.key", &next.key);
        }
        if let Some(previous) = &self.previous {
            put("ca-previous.crt", previous);
        }
        if let Some(lost) = &self.lost {
            put("ca-lost.crt", lost);
        }
        data
    }

    /// All certificates that a client is to trust, PEM.
    pub(super) fn trusted(&self) -> String {
        let next = self.next.as_ref().map(|next| &next.certificate);
        let before = [self.previous.as_ref(), self.lost.as_ref()];
        let all = [Some(&self.ca.certificate), next].into_iter().chain(before);
        all.flatten().map(String::as_str).collect()
    }

    /// Has clients go on to trust the CA that signed what is shown while they hear of this one, if it has just been made.
    pub(super) fn keep_trusted(&mut self, shown: Option<String>, now: Timestamp) {
        if self.lost.is_none() && self.remaining(SHOWN_AFTER_LOSS, now).is_some() {
            let all = self.trusted();
            self.lost = shown.filter(|shown| !all.contains(shown.as_str()));
        }
    }

    /// How long what a lost CA signed is still to be shown, if anything.
    pub(super) fn shows_lost_for(&self, shown: &str, now: Timestamp) -> Option<Duration> {
        let is_lost = self.lost.as_deref() == Some(shown);
        is_lost.then(|| self.remaining(SHOWN_AFTER_LOSS, now))?
    }

    /// Whether what is shown was signed by a lost CA that is still to be trusted.
    pub(super) fn trusts_lost(&self, shown: &str, now: Timestamp) -> bool {
        self.lost.as_deref() == Some(shown) && self.trusts_lost_for(now).is_some()
    }

    /// How long a lost CA is still to be trusted, if there is one.
    pub(super) fn trusts_lost_for(&self, now: Timestamp) -> Option<Duration> {
        self.lost.as_ref()?;
        self.remaining(TRUSTED_AFTER_LOSS, now)
    }

    /// What remains of a time that began when the CA was made. Clocks differ: never more than all of it.
    fn remaining(&self, of: SignedDuration, now: Timestamp) -> Option<Duration> {
        let made = validity(&self.ca.certificate)?.not_before + BACKDATE;
        let remaining = (of - now.duration_since(made)).min(of);
        let remaining = Duration::try_from(remaining).ok()?;
        (!remaining.is_zero()).then_some(remaining)
    }

    /// What it must become by now, so that `names` are served under a certificate that is valid and will
    /// be for a while. Returns what was given if nothing is due.
    pub(super) fn maintained(
        current: Option<Self>,
        names: &[String],
        now: Timestamp,
    ) -> Result<Self, PkiError> {
        let Some(mut authority) = current.filter(|current| current.ca.signs(now)) else {
            return Self::new(names, now);
        };
        authority.previous = authority
            .previous
            .filter(|previous| validity(previous).is_some_and(|validity| now < validity.not_after));
        if authority.trusts_lost_for(now).is_none() {
            authority.lost = None;
        }
        authority.next = authority.next.filter(|next| next.signs(now));
        if authority
            .next
            .as_ref()
            .is_some_and(|next| next.is_known(now))
            && let Some(next) = authority.next.take()
        {
            authority.previous = Some(std::mem::replace(&mut authority.ca, next).certificate);
        }
        if authority.next.is_none() && authority.ca.is_due(now) {
            authority.next = Some(new_ca(now)?);
        }
        if authority.serving.is_due(now) || authority.serves(names, now).is_none() {
            authority.serving = issue(&authority.ca, names, now)?;
        }
        Ok(authority)
    }

    fn new(names: &[String], now: Timestamp) -> Result<Self, PkiError> {
        let ca = new_ca(now)?;
        let serving = issue(&ca, names, now)?;
        Ok(Self {
            ca,
            next: None,
            previous: None,
            lost: None,
            serving,
        })
    }

    /// Something, if clients that trust the CA take the serving certificate for all names.
    fn serves(&self, names: &[String], now: Timestamp) -> Option<()> {
        self.serving.load().ok()?;
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.ca.certificate.as_bytes()).ok()?)
            .ok()?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .ok()?;
        let certificate =
            CertificateDer::from_pem_slice(self.serving.certificate.as_bytes()).ok()?;
        let now =
            UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now.as_second()).ok()?));
        for name in names {
            let name = ServerName::try_from(name.as_str()).ok()?;
            verifier
                .verify_server_cert(&certificate, &[], &name, &[], now)
                .ok()?;
        }
        Some(())
    }
}

impl Pair {
    fn new(certificate: &Certificate, key: &KeyPair) -> Self {
        Self {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    pub(super) fn load(&self) -> Result<LoadedCertificate, CertificateError> {
        LoadedCertificate::from_pem(self.certificate.as_bytes(), self.key.as_bytes())
    }

    /// Whether it can sign: both parts are readable and the time is right.
    fn signs(&self, now: Timestamp) -> bool {
        let valid = validity(&self.certificate)
            .is_some_and(|validity| validity.not_before <= now && now < validity.not_after);
        valid && self.load().is_ok()
    }

    /// Whether two thirds of its life are over.
    fn is_due(&self, now: Timestamp) -> bool {
        validity(&self.certificate).is_none_or(|validity| {
            let life = validity.not_after.duration_since(validity.not_before);
            now.duration_since(validity.not_before) >= life * 2 / 3
        })
    }

    /// Whether everybody has had the time to trust it.
    fn is_known(&self, now: Timestamp) -> bool {
        validity(&self.certificate)
            .is_some_and(|validity| now.duration_since(validity.not_before) >= BACKDATE + OVERLAP)
    }
}

fn validity(certificate: &str) -> Option<Validity> {
    Validity::of(&CertificateDer::from_pem_slice(certificate.as_bytes()).ok()?)
}

fn new_ca(now: Timestamp) -> Result<Pair, PkiError> {
    let key = KeyPair::generate()?;
    let parameters = with_times(ca_parameters(), now, CA_LIFETIME)?;
    Ok(Pair::new(&parameters.self_signed(&key)?, &key))
}

/// The same for every CA, so that the issuer can be made again from its key alone.
fn ca_parameters() -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = common_name("carto webhook CA");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    parameters
}

fn issue(ca: &Pair, names: &[String], now: Timestamp) -> Result<Pair, PkiError> {
    let issuer = Issuer::new(ca_parameters(), KeyPair::from_pem(&ca.key)?);
    let key = KeyPair::generate()?;
    let mut parameters = with_times(CertificateParams::new(names)?, now, SERVING_LIFETIME)?;
    parameters.distinguished_name = common_name("carto webhook");
    parameters.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    parameters.use_authority_key_identifier_extension = true;
    Ok(Pair::new(&parameters.signed_by(&key, &issuer)?, &key))
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn with_times(
    mut parameters: CertificateParams,
    now: Timestamp,
    lifetime: SignedDuration,
) -> Result<CertificateParams, PkiError> {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let since_epoch = |time: Timestamp| {
        let seconds = u64::try_from(time.as_second()).ok()?;
        let passed = Duration::from_secs(seconds).try_into().ok()?;
        epoch.checked_add(passed)
    };
    let start = now.checked_sub(BACKDATE).ok();
    let end = start.and_then(|start| start.checked_add(lifetime).ok());
    let in_time = |time: Option<Timestamp>| time.and_then(since_epoch).ok_or(PkiError::Time(now));
    parameters.not_before = in_time(start)?;
    parameters.not_after = in_time(end)?;
    Ok(parameters)
}
