//! From when to when a certificate counts: the one thing we read out of X.509, so no parser is linked for it.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// RFC 5280, 4.1.2.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
}

impl Validity {
    /// Reads it from a certificate in DER; `None` if that is none.
    pub(super) fn of(certificate: &[u8]) -> Option<Self> {
        let mut certificate = Der(certificate).enter(SEQUENCE)?;
        let mut signed = certificate.enter(SEQUENCE)?;
        if signed.0.first() == Some(&VERSION) {
            signed.next()?;
        }
        let (_serial, _algorithm, _issuer) = (signed.next()?, signed.next()?, signed.next()?);
        let mut validity = signed.enter(SEQUENCE)?;
        Some(Self {
            not_before: validity.time()?,
            not_after: validity.time()?,
        })
    }
}

/// The rest of some DER.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// Takes one element: its tag and its content.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (
                    bytes
                        .iter()
                        .fold(0, |length, byte| (length << 8) | usize::from(*byte)),
                    rest,
                )
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    fn enter(&mut self, expected: u8) -> Option<Self> {
        let (tag, content) = self.next()?;
        (tag == expected).then_some(Self(content))
    }

    fn time(&mut self) -> Option<Timestamp> {
        let (tag, content) = self.next()?;
        let text = std::str::from_utf8(content)
            .ok()
            .filter(|text| text.is_ascii())?;
        let (year, rest) = match tag {
            UTC_TIME => {
                let (year, rest) = text.split_at_checked(2)?;
                let year: i16 = year.parse().ok()?;
                (if year < 50 { 2000 + year } else { 1900 + year }, rest)
            }
            GENERALIZED_TIME => {
                let (year, rest) = text.split_at_checked(4)?;
                (year.parse().ok()?, rest)
            }
            _ => return None,
        };
        let rest = rest.strip_suffix('Z').filter(|rest| rest.len() == 10)?;
        let part = |index: usize| rest[2 * index..2 * index + 2].parse::<i8>().ok();
        let time = DateTime::new(year, part(0)?, part(1)?, part(2)?, part(3)?, part(4)?, 0).ok()?;
        Offset::UTC.to_timestamp(time).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_forms_of_time_are_read() {
        let mut params = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2031, 2, 3);
        params.not_after = rcgen::date_time_ymd(2055, 12, 31);
        let certificate = params
            .self_signed(&rcgen::KeyPair::generate().unwrap())
            .unwrap();
        let validity = Validity::of(certificate.der()).unwrap();
        assert_eq!(validity.not_before.to_string(), "2031-02-03T00:00:00Z");
        assert_eq!(validity.not_after.to_string(), "2055-12-31T00:00:00Z");
    }

    #[test]
    fn a_cut_certificate_has_no_validity() {
        let certificate = rcgen::generate_simple_self_signed(vec!["a".to_owned()])
            .unwrap()
            .cert;
        for length in 0..60 {
            assert_eq!(Validity::of(&certificate.der()[..length]), None);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), place in 0..200_usize, byte: u8) {
            let _ = Validity::of(&bytes);
            let mut certificate = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap().cert.der().to_vec();
            certificate[place] = byte;
            let _ = Validity::of(&certificate);
        }
    }
}
