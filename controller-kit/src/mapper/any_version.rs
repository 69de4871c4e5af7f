//! Kinds whose version was withdrawn: their objects are still there, and are served in another one.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{ABSENT_FOR, Kind, Known, MapError, Mapper, Served};
use crate::cluster::{RequestError, encode};

/// A kind that is missing once more after this time had come back in between, for all that is known.
const MISSING_FOR: Duration = Duration::from_mins(1);

impl Known {
    /// The kind was found in no version; returns how long it has to stay so until that is believed.
    fn miss(&mut self, kind: &Kind, now: Instant) -> Duration {
        self.missing
            .retain(|_, (_, last)| now.duration_since(*last) < MISSING_FOR);
        let (first, last) = self.missing.entry(kind.clone()).or_insert((now, now));
        *last = now;
        (*first + ABSENT_FOR).duration_since(now)
    }
}

impl Mapper {
    /// How `kind` is served, in another version of its group if not in its own. `None` when there is no such kind, and was
    /// not a moment ago either: a server that is just starting answers like one that does not have it.
    ///
    /// # Errors
    /// When the server could not be asked.
    pub(crate) async fn served_in_any_version(
        &self,
        kind: &Kind,
    ) -> Result<Option<Arc<Served>>, RequestError> {
        loop {
            if let Some(served) = self.find_in_group(kind).await? {
                self.known.lock().missing.remove(kind);
                return Ok(Some(served));
            }
            let doubt = self.known.lock().miss(kind, Instant::now());
            if doubt.is_zero() {
                return Ok(None);
            }
            tokio::time::sleep(doubt).await;
        }
    }

    async fn find_in_group(&self, kind: &Kind) -> Result<Option<Arc<Served>>, RequestError> {
        let own = self.served_or_absent(kind).await?;
        if own.is_some() {
            return Ok(own);
        }
        for version in self.versions(kind.group()).await? {
            let other = Kind::new(version, &kind.kind);
            let served = self.served_or_absent(&other).await?;
            if served.is_some() {
                return Ok(served);
            }
        }
        Ok(None)
    }

    async fn served_or_absent(&self, kind: &Kind) -> Result<Option<Arc<Served>>, RequestError> {
        match self.served(kind).await {
            Ok(served) => Ok(Some(served)),
            Err(MapError::NotServed { .. }) => Ok(None),
            Err(MapError::Discovery { error, .. }) => Err(error),
        }
    }

    /// The versions of a group, as `apiVersion` has them; none when the group is not served.
    async fn versions(&self, group: &str) -> Result<Vec<String>, RequestError> {
        if group.is_empty() {
            return Ok(vec!["v1".to_owned()]);
        }
        let list = self.read(format!("/apis/{}", encode(group))).await?;
        let versions = list.as_ref().and_then(|list| list["versions"].as_array());
        let named = versions.into_iter().flatten();
        Ok(named
            .filter_map(|version| version["groupVersion"].as_str().map(str::to_owned))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::Cluster;

    type Request = http::Request<kube::client::Body>;
    type Response = http::Response<kube::client::Body>;

    /// A mapper over a server that serves what `served` says, by path.
    fn over(served: impl Fn(&str) -> Option<Value> + Clone + Send + 'static) -> Mapper {
        let service = tower::service_fn(move |request: Request| {
            let (code, body) = match served(request.uri().path()) {
                Some(body) => (200, body.to_string()),
                None => (404, "404 page not found".to_owned()),
            };
            let response = http::Response::builder().status(code);
            let response = response.body(kube::client::Body::from(body.into_bytes()));
            async move { Ok::<Response, std::convert::Infallible>(response.unwrap()) }
        });
        let client = kube::Client::new(service, "default");
        let metrics = Arc::new(crate::metrics::Metrics::new());
        Mapper::new(Cluster::new(client.clone(), client, metrics))
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_is_found_in_whatever_version_serves_it() {
        let mapper = over(|path| match path {
            "/apis/g" => Some(
                json!({"versions": [{"groupVersion": "g/v3"}, {"groupVersion": "g/v2"}, {"groupVersion": "g/v1"}]}),
            ),
            "/apis/g/v3" => Some(json!({"resources": [{"name": "others", "kind": "Other"}]})),
            "/apis/g/v2" => Some(json!({"resources": [{"name": "things", "kind": "Thing"}]})),
            _ => None,
        });
        let kind = Kind::new("g/v1", "Thing");
        let found = mapper.served_in_any_version(&kind);
        let found = found.await.unwrap().unwrap();
        assert_eq!(found.object("", "a"), "/apis/g/v2/things/a");
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_is_gone_when_it_stays_away_for_a_while() {
        let began = Instant::now();
        let kind = Kind::new("g/v1", "Thing");
        let mapper = over(|_| None);
        assert_eq!(mapper.served_in_any_version(&kind).await.unwrap(), None);
        let confirmed = began.elapsed();
        assert!(confirmed >= ABSENT_FOR, "{confirmed:?}");
        assert_eq!(mapper.served_in_any_version(&kind).await.unwrap(), None);
        assert_eq!(began.elapsed(), confirmed, "the next one need not wait");

        let began = Instant::now();
        let starting = over(move |_| {
            let ready = began.elapsed() >= ABSENT_FOR / 2;
            ready.then(|| json!({"resources": [{"name": "things", "kind": "Thing"}]}))
        });
        let served = starting.served_in_any_version(&kind).await.unwrap();
        assert_eq!(served.unwrap().plural, "things");
    }
}
