//! What there is to watch, and its events as plain values.

use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::ResourceExt as _;
use kube::api::ApiResource;
use kube::runtime::watcher::{self, Event};
use realizer::ObjectChoice;
use serde_json::Value;

use super::backoff::{Heard, backed_off};
use crate::mapper::Served;
use crate::raw_object::RawObject;
use crate::stamped::ObjectKey;
use crate::submit::selector_of;

/// Objects in a page of a listing: a page is held in memory whole.
pub(crate) const PAGE: u32 = 100;

/// Events of one kind, as plain values.
pub type Events = BoxStream<'static, watcher::Result<Event<Value>>>;

/// Says of a namespace whether what is in it is kept.
pub(crate) type Kept = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Which objects of a kind are watched, and how they are read.
#[derive(Default)]
pub(crate) struct Selection<'a> {
    /// Label selector as in URLs.
    pub(crate) labels: Option<&'a str>,
    /// In one namespace, or in all.
    pub(crate) namespace: Option<&'a str>,
    /// How many are listed at a time, unless as many as usual.
    pub(crate) page: Option<u32>,
    /// What changes elsewhere comes as [`Value::Null`]: where replicas share, most of what arrives is of others, and to read
    /// all of it would take as much time as the work itself. Deletions are read all the same.
    pub(crate) kept: Option<Kept>,
}

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
        self.selected(client, Selection::default())
    }

    /// Full objects, some of them.
    pub(crate) fn selected(&self, client: kube::Client, selection: Selection<'_>) -> Events {
        let api = api_in(client, selection.namespace, &self.resource());
        events_of::<false>(api, page(), selection, Heard::ByTrying)
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
        let all = Selection::default();
        events_of::<METADATA_ONLY>(api, config, all, Heard::ByTrying)
    }
}

fn page() -> watcher::Config {
    watcher::Config::default().page_size(PAGE)
}

/// The events of one resource as plain values; interruptions heal by themselves. A watch that is refused is tried rarely: who
/// hears of changed rights or definitions starts another one.
pub(crate) fn watched(
    client: kube::Client,
    resource: &ApiResource,
    selection: Selection<'_>,
) -> Events {
    let api = api_in(client, selection.namespace, resource);
    events_of::<false>(api, page(), selection, Heard::Elsewhere)
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
    events_of::<true>(api, selected, Selection::default(), Heard::Elsewhere)
}

/// Metadata of one object, which need not be there.
pub(crate) fn named_metadata(client: kube::Client, served: &Served, key: &ObjectKey) -> Events {
    let namespace = served.namespaced.then_some(&*key.namespace);
    let api = api_in(client, namespace, &served.resource());
    let named = page().fields(&format!("metadata.name={}", key.name));
    events_of::<true>(api, named, Selection::default(), Heard::Elsewhere)
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
    selection: Selection<'_>,
    heard: Heard,
) -> Events {
    let config = match selection.labels {
        Some(labels) => config.labels(labels),
        None => config,
    };
    let config = config.page_size(selection.page.unwrap_or(PAGE));
    let kept = selection.kept;
    let events = watcher::watcher(api, config).map_ok(move |event| read(event, kept.as_ref()));
    backed_off(events, heard, crate::jitter::random).boxed()
}

fn read<const METADATA_ONLY: bool>(
    event: Event<RawObject<METADATA_ONLY>>,
    kept: Option<&Kept>,
) -> Event<Value> {
    let value = |object: RawObject<METADATA_ONLY>| {
        let namespace = object.namespace();
        let namespace = namespace.as_deref().filter(|it| !it.is_empty());
        let is_kept = |kept: &Kept| namespace.is_none_or(|it| kept(it));
        if kept.is_none_or(is_kept) {
            object.value()
        } else {
            Value::Null
        }
    };
    match event {
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(value(object)),
        Event::InitDone => Event::InitDone,
        Event::Apply(object) => Event::Apply(value(object)),
        Event::Delete(object) => Event::Delete(object.value()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(namespace: &str) -> RawObject<false> {
        let object = json!({"metadata": {"name": "a", "namespace": namespace}, "data": "x"});
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn what_is_of_other_replicas_is_not_read_but_for_its_deletion() {
        let kept: Kept = Arc::new(|namespace: &str| namespace == "ours");
        let is_read = |event: Event<RawObject<false>>| match read(event, Some(&kept)) {
            Event::Apply(value) | Event::InitApply(value) | Event::Delete(value) => {
                value["data"] == "x"
            }
            Event::Init | Event::InitDone => false,
        };
        assert!(is_read(Event::Apply(object("ours"))));
        assert!(is_read(Event::InitApply(object("ours"))));
        assert!(!is_read(Event::Apply(object("theirs"))));
        assert!(!is_read(Event::InitApply(object("theirs"))));
        assert!(is_read(Event::Delete(object("theirs"))));
        let of_the_cluster = json!({"metadata": {"name": "a"}, "data": "x"});
        let of_the_cluster = serde_json::from_value(of_the_cluster).unwrap();
        assert!(is_read(Event::Apply(of_the_cluster)), "its owner tells");
    }
}
