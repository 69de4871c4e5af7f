//! What there is to watch, and its events as plain values.

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::ApiResource;
use kube::runtime::watcher::{self, Event};
use realizer::ObjectChoice;
use serde_json::Value;

use super::backoff::{Heard, backed_off};
use crate::mapper::Served;
use crate::raw_object::RawObject;
use crate::stamped::ObjectKey;
use crate::submit::selector_of;

const PAGE: u32 = 100;

/// Events of one kind, as plain values.
pub type Events = BoxStream<'static, watcher::Result<Event<Value>>>;

/// A kind to watch.
#[derive(Debug, Clone, Copy)]
pub struct Watched {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural.
    pub plural: &'static str,
}

impl Watched {
    /// A kind of our own group.
    pub const fn carto(kind: &'static str, plural: &'static str) -> Self {
        Self {
            group: api_types::GROUP,
            version: api_types::VERSION,
            kind,
            plural,
        }
    }

    fn resource(&self) -> ApiResource {
        let api_version = if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        };
        ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version,
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }

    /// Full objects.
    pub fn objects(&self, client: kube::Client) -> Events {
        self.selected(client, None, (None, None))
    }

    /// Full objects with these labels, in one namespace or in all; label selector as in URLs. With so many to a page, if that is
    /// said.
    pub(crate) fn selected(
        &self,
        client: kube::Client,
        labels: Option<&str>,
        (namespace, objects): (Option<&str>, Option<u32>),
    ) -> Events {
        let page = page().page_size(objects.unwrap_or(PAGE));
        let config = match labels {
            Some(labels) => page.labels(labels),
            None => page,
        };
        self.events::<false>(client, namespace, config)
    }

    /// One object, which need not be there.
    pub fn named(&self, client: kube::Client, namespace: &str, name: &str) -> Events {
        let named = page().fields(&format!("metadata.name={name}"));
        self.events::<false>(client, Some(namespace), named)
    }

    /// Metadata only.
    pub fn metadata(&self, client: kube::Client) -> Events {
        self.events::<true>(client, None, page())
    }

    /// The same of those whose fields are so; field selector as in URLs. One that ceases to be is seen as deleted.
    pub fn metadata_where(&self, client: kube::Client, fields: &str) -> Events {
        self.events::<true>(client, None, page().fields(fields))
    }

    /// What tells of rights and definitions is among these kinds, so nobody tells them.
    pub(super) fn events<const METADATA_ONLY: bool>(
        &self,
        client: kube::Client,
        namespace: Option<&str>,
        config: watcher::Config,
    ) -> Events {
        let api = api_in(client, namespace, &self.resource());
        events_of::<METADATA_ONLY>(api, config, Heard::ByTrying)
    }
}

fn page() -> watcher::Config {
    watcher::Config::default().page_size(PAGE)
}

/// The events of one resource, in one namespace or in all, as plain values; interruptions heal by themselves. A watch that is refused is tried rarely: who
/// hears of changed rights or definitions starts another one.
pub(crate) fn watched<const METADATA_ONLY: bool>(
    client: kube::Client,
    (resource, namespace): (&ApiResource, Option<&str>),
    config: watcher::Config,
) -> Events {
    let api = api_in(client, namespace, resource);
    events_of::<METADATA_ONLY>(api, config, Heard::Elsewhere)
}

/// Metadata of the objects of a kind that an owner selects, in one namespace or in all. The engine asks for no name that cannot
/// stand in a field selector as it is.
pub(crate) fn selected_metadata(
    client: kube::Client,
    served: &Served,
    namespace: Option<&str>,
    choice: &ObjectChoice,
) -> Events {
    let namespace = namespace.filter(|_| served.namespaced);
    let api = api_in(client, namespace, &served.resource());
    let selected = match choice {
        ObjectChoice::Name(name) => page().fields(&format!("metadata.name={name}")),
        ObjectChoice::Labels(labels) => page().labels(&selector_of(labels)),
    };
    events_of::<true>(api, selected, Heard::Elsewhere)
}

/// Metadata of one object, which need not be there.
pub(crate) fn named_metadata(client: kube::Client, served: &Served, key: &ObjectKey) -> Events {
    let namespace = served.namespaced.then_some(&*key.namespace);
    let api = api_in(client, namespace, &served.resource());
    let named = page().fields(&format!("metadata.name={}", key.name));
    events_of::<true>(api, named, Heard::Elsewhere)
}

fn api_in<const METADATA_ONLY: bool>(
    client: kube::Client,
    namespace: Option<&str>,
    resource: &ApiResource,
) -> kube::Api<RawObject<METADATA_ONLY>> {
    match namespace {
        Some(namespace) => kube::Api::namespaced_with(client, namespace, resource),
        None => kube::Api::all_with(client, resource),
    }
}

fn events_of<const METADATA_ONLY: bool>(
    api: kube::Api<RawObject<METADATA_ONLY>>,
    config: watcher::Config,
    heard: Heard,
) -> Events {
    let events = watcher::watcher(api, config).map_ok(as_value);
    backed_off(events, heard, crate::jitter::random).boxed()
}

fn as_value<const METADATA_ONLY: bool>(event: Event<RawObject<METADATA_ONLY>>) -> Event<Value> {
    match event {
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(object.value()),
        Event::InitDone => Event::InitDone,
        Event::Apply(object) => Event::Apply(object.value()),
        Event::Delete(object) => Event::Delete(object.value()),
    }
}
