//! What a registry asks for that does not know who is there.

use http_auth::parser::ChallengeParser;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// The most bytes of a header that are looked at.
const MOST: usize = 8 << 10;

/// What has to be sent along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// Name and password.
    Basic,
    /// A token that somebody else gives.
    Bearer {
        /// Where.
        realm: String,
        /// For whom.
        service: Option<String>,
        /// For what.
        scope: Option<String>,
    },
}

impl Challenge {
    /// What these headers ask for: a token rather than a password. Nothing if they are not
    /// understood.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let texts = values
            .filter_map(|value| value.to_str().ok())
            .filter(|text| text.len() <= MOST);
        let mut basic = None;
        for text in texts {
            for challenge in ChallengeParser::new(text).flatten() {
                if challenge.scheme.eq_ignore_ascii_case("basic") {
                    basic = Some(Self::Basic);
                }
                let of = |name: &str| {
                    let mut params = challenge.params.iter();
                    let param = params.find(|(key, _)| key.eq_ignore_ascii_case(name));
                    param.map(|(_, value)| value.to_unescaped())
                };
                if challenge.scheme.eq_ignore_ascii_case("bearer")
                    && let Some(realm) = of("realm")
                {
                    return Some(Self::Bearer {
                        realm,
                        service: of("service"),
                        scope: of("scope"),
                    });
                }
            }
        }
        basic
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[&str]) -> Option<Challenge> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(WWW_AUTHENTICATE, value.parse().unwrap());
        }
        Challenge::from_headers(&headers)
    }

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Challenge {
        Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
            scope: scope.map(str::to_owned),
        }
    }

    #[test]
    fn a_token_is_asked_for_wherever_it_stands() {
        let wanted = Some(bearer(
            "https://auth.example/token",
            Some("registry.example"),
            Some("repository:team/app:pull"),
        ));
        let text = r#"Bearer realm="https://auth.example/token",service="registry.example",scope="repository:team/app:pull""#;
        assert_eq!(of(&[text]), wanted);
        assert_eq!(of(&["Basic realm=\"x\"", text]), wanted);
        assert_eq!(of(&[&format!("Basic realm=\"x\", {text}")]), wanted);
        assert_eq!(
            of(&["bearer REALM=\"https://a.example\""]),
            Some(bearer("https://a.example", None, None))
        );
        assert_eq!(
            of(&["Basic realm=\"x\", service=\"y\""]),
            Some(Challenge::Basic)
        );
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["Bearer"]), None);
        assert_eq!(of(&["Negotiate"]), None);
        assert_eq!(of(&[&"x".repeat(100_000)]), None);
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(text in "[ -~]{0,200}", quoted in "[\\\\\" a-z=,]{0,40}") {
            let _ = of(&[&text, &format!("Bearer realm=\"{quoted}")]);
        }
    }
}
