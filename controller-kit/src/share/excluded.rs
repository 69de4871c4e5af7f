//! Namespaces of other replicas that the API server is asked not to send.
//!
//! A watch of all namespaces shows what falls to other replicas too, and that is dropped on arrival. It costs the API server as
//! much as what is kept: with three replicas it sends each change three times. So a watch names namespaces of others in a field
//! selector: first those from which it had to drop something, then those that there are besides, as far as there is room. The
//! rest is still dropped on arrival.
//!
//! ```text
//! dropped often ─▶ the watch ends, and begins anew where it was, without these namespaces
//! more accepted ─▶ the watch ends, and begins anew where it was, with what is accepted now
//! ```
//!
//! With a selector as without, all that happens in a namespace after it was accepted is shown (`gained.rs`): of a watch that
//! leaves out what is accepted by now nothing is passed on any more, not even what has arrived. The version from which the next
//! one goes on is then older than the listing of that namespace, which begins later, and so is all that was left out.

use std::sync::Arc;

use http::request::Parts;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use kube::client::Body;
use parking_lot::Mutex;

use super::{MayShare, OwnShare};
use crate::reflect::Kept;

mod learned;
mod passing;

pub(super) use learned::Wanted;
use learned::{COMMA, Learned, term};
use passing::{LeavesOut, PassedOn};

/// How the objects of one kind are followed.
pub(crate) struct Watching {
    pub(super) share: MayShare,
    /// None where a watch shows all that there is.
    pub(super) excluded: Option<Arc<Excluded>>,
}

impl Watching {
    /// With which client one namespace is listed, or all are watched, and what is kept of it.
    pub(crate) fn opens(
        &self,
        client: &kube::Client,
        namespace: Option<&str>,
    ) -> (kube::Client, Option<Kept>) {
        match self.excluded.as_ref().filter(|_| namespace.is_none()) {
            Some(excluded) => (excluded.watching(client.clone()), Some(excluded.kept())),
            None => (client.clone(), self.share.kept()),
        }
    }
}

/// What a watch learns from what it drops.
pub(super) struct Excluded {
    share: Arc<OwnShare>,
    learned: Mutex<Learned>,
}

impl Excluded {
    /// Nothing is left out yet.
    pub(super) fn new(share: Arc<OwnShare>) -> Arc<Self> {
        Arc::new(Self {
            share,
            learned: Mutex::default(),
        })
    }

    /// Whether what arrives of a namespace is kept.
    fn kept(self: &Arc<Self>) -> Kept {
        let excluded = self.clone();
        Arc::new(move |namespace: &str| {
            let is_kept = excluded.share.accepts(namespace);
            if !is_kept && excluded.learned.lock().drops(namespace) {
                excluded.share.meets(namespace);
            }
            is_kept
        })
    }

    /// The same client; what is watched with it are all namespaces of one kind, but for what is left out.
    fn watching(self: &Arc<Self>, client: kube::Client) -> kube::Client {
        let (excluded, namespace) = (self.clone(), client.default_namespace().to_owned());
        let service = tower::service_fn(move |request| {
            let (client, excluded) = (client.clone(), excluded.clone());
            async move { excluded.send(&client, request).await }
        });
        kube::Client::new(service, namespace)
    }

    async fn send(
        self: Arc<Self>,
        client: &kube::Client,
        request: Request<Body>,
    ) -> kube::Result<Response<PassedOn>> {
        if !is_watch(request.uri()) {
            self.learned.lock().leaves_out_nothing();
            let response = client.send(request).await?;
            return Ok(response.map(BodyExt::boxed_unsync));
        }
        let mut watch = LeavesOut::begin(&self);
        let (parts, body) = request.into_parts();
        let mut answer = None;
        if let Some(uri) = without(&parts.uri, &watch.namespaces) {
            answer = self.with_selector(client, parts.clone(), uri).await?;
            if answer.is_none() {
                watch.shows_all();
            }
        }
        let response = match answer {
            Some(response) => response,
            None => client.send(Request::from_parts(parts, body)).await?,
        };
        if response.status().is_success() {
            self.learned.lock().began();
        }
        Ok(response.map(|body| watch.passing_on(body)))
    }

    /// The answer to a watch with a selector, unless it may be the selector that is not taken.
    async fn with_selector(
        &self,
        client: &kube::Client,
        mut parts: Parts,
        uri: Uri,
    ) -> kube::Result<Option<Response<Body>>> {
        parts.uri = uri;
        let request = Request::from_parts(parts, Body::empty());
        let response = client.send(request).await;
        let response = response.inspect_err(|_| self.learned.lock().skips())?;
        let is_taken = !may_be_the_selector(response.status());
        Ok(is_taken.then_some(response))
    }
}

fn is_watch(uri: &Uri) -> bool {
    let mut parameters = uri.query().unwrap_or_default().split('&');
    parameters.any(|it| it == "watch=true")
}

/// The same without what is in these namespaces, if there are any.
fn without(uri: &Uri, namespaces: &[Box<str>]) -> Option<Uri> {
    if namespaces.is_empty() {
        return None;
    }
    let terms: String = namespaces.iter().map(|it| term(it)).collect();
    let selector = terms.trim_end_matches(COMMA);
    format!("{uri}&fieldSelector={selector}").parse().ok()
}

/// Whether it may be the selector that is not taken: it is not known, or a proxy takes no such URL. What says that nobody is
/// known, that the version is too old, or that there is too much to do, says nothing of it.
fn may_be_the_selector(status: StatusCode) -> bool {
    let others = [
        StatusCode::UNAUTHORIZED,
        StatusCode::GONE,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    let is_failure = status.is_client_error() || status.is_server_error();
    is_failure && !others.contains(&status)
}

#[cfg(test)]
mod tests;
