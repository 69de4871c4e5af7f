//! A kind that may not be installed: it is watched while its definition is there, and nothing is
//! asked otherwise.
//!
//! Whoever waits to know it once is told when it was listed, is not installed, or is refused. An API
//! server that has trouble says none of that.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use tokio::sync::watch as signal;
use tokio_util::sync::CancellationToken;

use super::{Change, Entry, Reflector, WatchHealth, Watched, answer, health};

/// Follows `watched` for ever, as long as it is installed. `known` turns true when it is not, or
/// has been listed.
pub(crate) async fn follow_if_installed<E: Entry>(
    store: Arc<Reflector<E>>,
    watched: Watched,
    client: kube::Client,
    cancel: CancellationToken,
    known: signal::Sender<bool>,
    changed: impl Fn(Change<'_, E>) + Send + Sync,
) {
    let mut definition = Definition::of(watched, client.clone());
    let mut following: Option<Following<'_>> = None;
    loop {
        let was_there = following.is_some();
        let is_awaited = was_there && !*known.borrow();
        let is_installed = tokio::select! {
            () = cancel.cancelled() => return,
            () = listed_once(&store, is_awaited) => {
                known.send_replace(true);
                continue;
            }
            () = go_on(following.as_mut()) => {
                following = None;
                continue;
            }
            is_installed = definition.next(was_there, |event| store.note_definition(event)) => is_installed,
        };
        if !is_installed {
            following = None;
            store.clear(&changed);
            known.send_replace(true);
        } else if following.is_none() {
            let told = known.clone();
            let events = watched.objects(client.clone()).inspect_err(move |error| {
                // What waits for it must not wait for ever; it comes when it is let in.
                if is_refusal(error) {
                    told.send_replace(true);
                }
            });
            let events = events.boxed();
            let stop = cancel.child_token();
            let follow = store.clone().follow(events, stop.clone(), &changed);
            following = Some((follow.boxed(), stop.drop_guard()));
        }
    }
}

/// Whether a definition is there.
struct Definition {
    events: super::Events,
    health: WatchHealth,
    /// Whether it was in the listing that is going on.
    listed: bool,
}

impl Definition {
    fn of(watched: Watched, client: kube::Client) -> Self {
        Self {
            events: watched.definition(client),
            health: WatchHealth::default(),
            listed: false,
        }
    }

    /// Waits for news. What may not be asked for is not there, unless it was before: what waits for
    /// it must not wait for ever. Of whoever has trouble nothing is known.
    async fn next(
        &mut self,
        was_there: bool,
        note: impl Fn(&watcher::Result<Event<Value>>),
    ) -> bool {
        loop {
            let event = self.events.next().await;
            if let Some(event) = &event {
                note(event);
            }
            let installed = match event {
                Some(Ok(event)) => installed(&event, &mut self.listed),
                Some(Err(error)) => {
                    self.health.log(&error);
                    (!was_there && is_refusal(&error)).then_some(false)
                }
                // They never end.
                None => std::future::pending().await,
            };
            if let Some(installed) = installed {
                return installed;
            }
        }
    }
}

/// Whether the API server said that this cannot be had, and would say so again.
fn is_refusal(error: &watcher::Error) -> bool {
    answer(error).is_some_and(health::is_refusal)
}

type Following<'f> = (BoxFuture<'f, ()>, tokio_util::sync::DropGuard);

/// Never ends where nobody waits for it.
async fn listed_once<E: Entry>(store: &Reflector<E>, is_awaited: bool) {
    if !is_awaited {
        std::future::pending::<()>().await;
    }
    // The sender lives as long as the store.
    let _ = store.synced_signal().wait_for(|synced| *synced).await;
}

async fn go_on(following: Option<&mut Following<'_>>) {
    match following {
        Some((follow, _)) => follow.await,
        None => std::future::pending().await,
    }
}

/// Whether the definition is there after this event, as far as it says so. A listing without it
/// says so at its end.
fn installed(event: &Event<Value>, listed: &mut bool) -> Option<bool> {
    match event {
        Event::Init => {
            *listed = false;
            None
        }
        Event::InitApply(_) => {
            *listed = true;
            Some(true)
        }
        Event::InitDone => (!*listed).then_some(false),
        Event::Apply(_) => Some(true),
        Event::Delete(_) => Some(false),
    }
}

impl Watched {
    /// Metadata of the definition of this kind.
    fn definition(&self, client: kube::Client) -> super::Events {
        const DEFINITIONS: Watched = Watched {
            group: "apiextensions.k8s.io",
            version: "v1",
            kind: "CustomResourceDefinition",
            plural: "customresourcedefinitions",
        };
        let name = format!("{}.{}", self.plural, self.group);
        let named = watcher::Config::default().fields(&format!("metadata.name={name}"));
        DEFINITIONS.events::<true>(client, None, named)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    struct Thing;

    impl Entry for Thing {
        fn build(_: Value) -> Self {
            Self
        }
    }

    /// Whether it becomes known what there is, where listings are answered in this way: of
    /// definitions, and of things. Also whether the store says that it is refused.
    async fn known(definitions: (u16, Value), things: (u16, Value)) -> (bool, bool) {
        let (definitions, things) = (Arc::new(definitions), Arc::new(things));
        let service = tower::service_fn(move |request: Request<Body>| {
            let uri = request.uri().to_string();
            let is_definition = uri.contains("/customresourcedefinitions");
            let answer = if is_definition { &definitions } else { &things }.clone();
            async move {
                if uri.contains("watch=") {
                    std::future::pending::<()>().await;
                }
                let mut response = Response::new(Body::from(answer.1.to_string().into_bytes()));
                *response.status_mut() = StatusCode::from_u16(answer.0).unwrap();
                Ok::<_, Infallible>(response)
            }
        });
        let client = kube::Client::new(service, "default");
        let watched = Watched {
            group: "g",
            version: "v1",
            kind: "Thing",
            plural: "things",
        };
        let known = signal::Sender::new(false);
        let mut told = known.subscribe();
        let store = Arc::<Reflector<Thing>>::default();
        let cancel = CancellationToken::new();
        let following = follow_if_installed(store.clone(), watched, client, cancel, known, |_| {});
        let is_known = tokio::select! {
            () = following => false,
            known = told.wait_for(|known| *known) => known.is_ok(),
            () = tokio::time::sleep(Duration::from_mins(10)) => false,
        };
        (is_known, store.refused().is_some())
    }

    async fn is_known(definitions: (u16, Value), things: (u16, Value)) -> bool {
        known(definitions, things).await.0
    }

    fn refused(code: u16) -> (u16, Value) {
        let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "no",
            "reason": "no", "code": code});
        (code, status)
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_listing_or_a_refusal_makes_known_what_there_is() {
        let list = |items: &Value| {
            let list = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
                "metadata": {"resourceVersion": "1"}, "items": items});
            (200, list)
        };
        let definition = json!([{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"name": "things.g"}}]);
        let (none, there) = (list(&json!([])), list(&definition));
        assert_eq!(known(none.clone(), refused(404)).await, (true, false));
        assert_eq!(known(refused(403), refused(403)).await, (true, true));
        assert_eq!(known(there.clone(), none.clone()).await, (true, false));
        // It is there, and may not be read, or is on its way out.
        for code in [403, 404, 405] {
            assert!(is_known(there.clone(), refused(code)).await, "{code}");
        }
        // Who has trouble says nothing of what there is.
        for code in [429, 500, 503] {
            assert!(!is_known(refused(code), none.clone()).await, "{code}");
            assert!(!is_known(there.clone(), refused(code)).await, "{code}");
        }
    }

    #[test]
    fn a_kind_is_installed_when_a_listing_or_a_change_shows_its_definition() {
        let definition = || json!({"metadata": {"name": "things.g"}});
        let mut listed = false;
        let mut sees = |event: Event<Value>| installed(&event, &mut listed);
        assert_eq!(sees(Event::Init), None);
        assert_eq!(sees(Event::InitDone), Some(false));
        assert_eq!(sees(Event::Apply(definition())), Some(true));
        assert_eq!(sees(Event::Delete(definition())), Some(false));
        assert_eq!(sees(Event::Init), None);
        assert_eq!(sees(Event::InitApply(definition())), Some(true));
        assert_eq!(sees(Event::InitDone), None);
        // It went while nothing was heard.
        assert_eq!(sees(Event::Init), None);
        assert_eq!(sees(Event::InitDone), Some(false));
    }
}
