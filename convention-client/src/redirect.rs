//! Other places that a webhook names.

use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use url::Url;

use crate::error::CallError;
use crate::target::{bare, shown};

/// How many other places are called in a row.
pub(crate) const MOST: usize = 5;

/// Whether the status names another place.
pub(crate) fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Where to call instead, with the same body.
///
/// # Errors
///
/// If the body would have to be left out, or if it would be sent where others can read it.
pub(crate) fn followed(
    from: &Url,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Url, CallError> {
    let refused = |problem: &str| CallError::Redirect {
        url: shown(from),
        code: status.as_u16(),
        problem: problem.to_owned(),
    };
    if !matches!(status.as_u16(), 307 | 308) {
        return Err(refused(
            "a redirect that loses the request; only 307 and 308 are followed",
        ));
    }
    let location = headers.get(LOCATION).map(|location| location.to_str());
    let Some(Ok(location)) = location else {
        return Err(refused("a redirect to nowhere"));
    };
    let Ok(mut to) = from.join(location) else {
        return Err(refused("a redirect to what is no URL"));
    };
    match (from.scheme(), to.scheme()) {
        (_, "https") | ("http", "http") => {}
        ("https", "http") => return Err(refused("a redirect to http, which everybody can read")),
        _ => return Err(refused("a redirect to what is not https")),
    }
    bare(&mut to);
    if to.as_str().parse::<http::Uri>().is_err() {
        return Err(refused("a redirect to a URL that no request has"));
    }
    Ok(to)
}

/// One more than are followed.
pub(crate) fn too_many(url: &Url, status: StatusCode) -> CallError {
    CallError::Redirect {
        url: shown(url),
        code: status.as_u16(),
        problem: format!("after {MOST} other redirects"),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn to(from: &str, status: u16, location: Option<&str>) -> Result<String, String> {
        let mut headers = HeaderMap::new();
        if let Some(location) = location {
            headers.insert(
                LOCATION,
                HeaderValue::from_bytes(location.as_bytes()).unwrap(),
            );
        }
        let from = Url::parse(from).unwrap();
        let followed = followed(&from, StatusCode::from_u16(status).unwrap(), &headers);
        followed
            .map(|url| url.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_place_may_be_named_in_any_way() {
        for (location, url) in [
            ("https://other:8443/x", "https://other:8443/x"),
            ("https://user:word@other/x?y#z", "https://other/x?y"),
            ("//other/x", "https://other/x"),
            ("/x", "https://a:1/x"),
            ("?y", "https://a:1/b/c?y"),
            ("x", "https://a:1/b/x"),
            ("../../x", "https://a:1/x"),
        ] {
            let followed = to("https://a:1/b/c", 307, Some(location));
            assert_eq!(followed.as_deref(), Ok(url), "{location}");
        }
        assert!(to("http://a/", 308, Some("http://b/")).is_ok());
        assert!(to("http://a/", 308, Some("https://b/")).is_ok());
    }

    #[test]
    fn what_loses_the_body_or_shows_it_is_refused() {
        for (status, location, problem) in [
            (301, Some("https://b/"), "loses the request"),
            (302, Some("https://b/"), "loses the request"),
            (303, Some("https://b/"), "loses the request"),
            (307, Some("http://b/"), "everybody can read"),
            (307, Some("ftp://b/"), "not https"),
            (307, Some("mailto:b"), "not https"),
            (307, Some("https://"), "no URL"),
            (307, Some("https://ö/"), "nowhere"),
            (308, None, "nowhere"),
        ] {
            let refused = to("https://a/", status, location).unwrap_err();
            assert!(refused.contains(problem), "{location:?}: {refused}");
            assert!(refused.contains("https://a:443/"), "{refused}");
        }
    }
}
