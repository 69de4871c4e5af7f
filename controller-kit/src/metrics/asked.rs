//! What a request asks for, in the words of the API server's own metrics and audit log.

use http::{Method, Request, header};

/// Verb and resource of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// As `apiserver_request_total` has it: `GET`, `LIST`, `WATCH`, `APPLY` …
    pub(crate) verb: &'static str,
    /// `<plural>[.<group>][/<subresource>]`; `discovery` and `openapi` for what is asked about kinds.
    pub(crate) resource: String,
}

/// What is asked that is no object of any kind.
const DISCOVERY: &str = "discovery";

impl Asked {
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let path: Vec<&str> = request
            .uri()
            .path()
            .split('/')
            .filter(|segment| !segment.is_empty())
            .collect();
        let (group, rest) = match path.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            ["openapi", ..] => return Self::about("openapi"),
            _ => return Self::about(DISCOVERY),
        };
        let (plural, name, subresource) = match rest {
            [] => return Self::about(DISCOVERY),
            // Of a namespace itself, not of something in it.
            ["namespaces", name, subresource @ ("status" | "finalize")] => {
                ("namespaces", Some(name), Some(subresource))
            }
            ["namespaces", _, plural, rest @ ..] | [plural, rest @ ..] => {
                (*plural, rest.first(), rest.get(1))
            }
        };
        Self {
            verb: verb(request, name.is_some()),
            resource: qualified(plural, group, subresource.copied()),
        }
    }

    fn about(what: &str) -> Self {
        Self {
            verb: "GET",
            resource: what.to_owned(),
        }
    }
}

fn qualified(plural: &str, group: &str, subresource: Option<&str>) -> String {
    let mut resource = plural.to_owned();
    if !group.is_empty() {
        resource.push('.');
        resource.push_str(group);
    }
    if let Some(subresource) = subresource {
        resource.push('/');
        resource.push_str(subresource);
    }
    resource
}

fn verb<B>(request: &Request<B>, is_named: bool) -> &'static str {
    let is_apply = || {
        let media_type = request.headers().get(header::CONTENT_TYPE);
        media_type.is_some_and(|it| it.as_bytes().starts_with(b"application/apply-patch"))
    };
    match *request.method() {
        Method::GET if parameters(request).any(|it| matches!(it, "watch=true" | "watch=1")) => {
            "WATCH"
        }
        Method::GET if is_named => "GET",
        Method::GET => "LIST",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH if is_apply() => "APPLY",
        Method::PATCH => "PATCH",
        Method::DELETE if is_named => "DELETE",
        Method::DELETE => "DELETECOLLECTION",
        _ => super::bounded::OTHER,
    }
}

/// The parameters in the request's URL, as they are written there.
pub(super) fn parameters<B>(request: &Request<B>) -> impl Iterator<Item = &str> {
    request.uri().query().unwrap_or_default().split('&')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_told_as_the_api_server_tells_it() {
        let apply = "application/apply-patch+yaml";
        for (method, uri, media_type, expected) in [
            (
                Method::GET,
                "/apis/carto.run/v1alpha1/workloads?limit=100",
                "",
                "LIST workloads.carto.run",
            ),
            (
                Method::GET,
                "/apis/carto.run/v1alpha1/workloads?limit=1&watch=true",
                "",
                "WATCH workloads.carto.run",
            ),
            (
                Method::GET,
                "/api/v1/namespaces/dev/configmaps/app",
                "",
                "GET configmaps",
            ),
            (
                Method::GET,
                "/api/v1/namespaces/dev/configmaps",
                "",
                "LIST configmaps",
            ),
            (Method::GET, "/api/v1/namespaces/dev", "", "GET namespaces"),
            (Method::GET, "/api/v1/namespaces", "", "LIST namespaces"),
            (
                Method::PUT,
                "/api/v1/namespaces/dev/finalize",
                "",
                "PUT namespaces/finalize",
            ),
            (
                Method::POST,
                "/api/v1/namespaces/dev/serviceaccounts/app/token",
                "application/json",
                "POST serviceaccounts/token",
            ),
            (
                Method::POST,
                "/apis/batch/v1/namespaces/dev/jobs",
                "application/json",
                "POST jobs.batch",
            ),
            (
                Method::PATCH,
                "/apis/apps/v1/namespaces/dev/deployments/app?force=true",
                apply,
                "APPLY deployments.apps",
            ),
            (
                Method::PATCH,
                "/apis/carto.run/v1alpha1/namespaces/dev/workloads/app/status",
                "application/json-patch+json",
                "PATCH workloads.carto.run/status",
            ),
            (
                Method::DELETE,
                "/api/v1/namespaces/dev/configmaps/app",
                "",
                "DELETE configmaps",
            ),
            (
                Method::DELETE,
                "/api/v1/namespaces/dev/configmaps",
                "",
                "DELETECOLLECTION configmaps",
            ),
            (Method::HEAD, "/api/v1/nodes/a", "", "other nodes"),
            (Method::GET, "/apis/apps/v1", "", "GET discovery"),
            (Method::GET, "/api/v1", "", "GET discovery"),
            (Method::GET, "/apis", "", "GET discovery"),
            (Method::GET, "/openapi/v3/apis/apps/v1", "", "GET openapi"),
            (Method::GET, "/", "", "GET discovery"),
        ] {
            let request = Request::builder()
                .method(method)
                .uri(uri)
                .header(header::CONTENT_TYPE, media_type)
                .body(())
                .unwrap();
            let Asked { verb, resource } = Asked::of(&request);
            assert_eq!(format!("{verb} {resource}"), expected, "{uri}");
        }
    }
}
