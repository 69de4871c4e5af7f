//! Pushing, request by request, as the distribution specification says.

use anyhow::{Context as _, ensure};
use http::header::{CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use kube::client::Body;
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::test_image::{Blob, Manifest, PackedImage};

/// What this client calls itself, so that its requests can be told from those of a test.
pub(super) const AGENT: &str = "carto-push";

/// A client of one registry.
pub(super) struct Uploader(Client);

impl Uploader {
    /// With an authority (PEM) it speaks TLS, with a user (name and password) it says who it is.
    pub(super) fn new(
        host: &str,
        authority: Option<&str>,
        user: Option<(&str, &str)>,
    ) -> anyhow::Result<Self> {
        let scheme = authority.map_or("http", |_| "https");
        // Nothing in this client knows Kubernetes as long as it is given whole requests.
        let mut config = Config::new(format!("{scheme}://{host}").parse()?);
        config.default_retry = false;
        if let Some(authority) = authority {
            let authority = CertificateDer::from_pem_slice(authority.as_bytes())
                .context("the authority's certificate")?;
            config.root_cert = Some(vec![authority.to_vec()]);
        }
        if let Some((name, password)) = user {
            config.auth_info.username = Some(name.to_owned());
            config.auth_info.password = Some(password.to_owned().into());
        }
        Ok(Self(Client::try_from(config)?))
    }

    /// An error while the registry does not answer.
    pub(super) async fn is_there(&self) -> anyhow::Result<()> {
        let (status, _) = self.ask(Method::GET, "/v2/", "", Vec::new()).await?;
        ensure!(status == StatusCode::OK, "GET /v2/: {status}");
        Ok(())
    }

    /// Pushes what an image consists of, then its manifest under a tag or its digest.
    pub(super) async fn image(
        &self,
        repository: &str,
        reference: &str,
        image: &PackedImage,
    ) -> anyhow::Result<()> {
        for blob in image.blobs() {
            self.blob(repository, blob).await?;
        }
        self.manifest(repository, reference, &image.manifest).await
    }

    async fn blob(&self, repository: &str, blob: &Blob) -> anyhow::Result<()> {
        let there = format!("/v2/{repository}/blobs/{}", blob.digest);
        if self.ask(Method::HEAD, &there, "", Vec::new()).await?.0 == StatusCode::OK {
            return Ok(());
        }
        let open = format!("/v2/{repository}/blobs/uploads/");
        let (_, opened) = self.expect(Method::POST, &open, "", Vec::new()).await?;
        let location = opened.get(LOCATION).context("no place to upload to")?;
        let location: Uri = location.to_str()?.parse()?;
        // It names the session in its query, and wants the digest beside it.
        let session = location.path_and_query().context("an empty location")?;
        let target = format!("{session}&digest={}", blob.digest);
        let bytes = blob.bytes.clone();
        let kind = "application/octet-stream";
        self.expect(Method::PUT, &target, kind, bytes).await?;
        Ok(())
    }

    pub(super) async fn manifest(
        &self,
        repository: &str,
        reference: &str,
        manifest: &Manifest,
    ) -> anyhow::Result<()> {
        let path = format!("/v2/{repository}/manifests/{reference}");
        let bytes = manifest.bytes.clone();
        let kind = manifest.media_type;
        let (_, headers) = self.expect(Method::PUT, &path, kind, bytes).await?;
        let stored = headers.get("docker-content-digest");
        let digest = manifest.digest();
        ensure!(
            stored.is_some_and(|stored| stored == digest.as_str()),
            "pushed {digest}, and the registry has {stored:?}"
        );
        Ok(())
    }

    /// As [`Uploader::ask`], and anything but success is an error.
    async fn expect(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Vec<u8>,
    ) -> anyhow::Result<(StatusCode, HeaderMap)> {
        let what = format!("{method} {path}");
        let (status, headers) = self.ask(method, path, kind, body).await?;
        ensure!(status.is_success(), "{what}: {status}");
        Ok((status, headers))
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Vec<u8>,
    ) -> anyhow::Result<(StatusCode, HeaderMap)> {
        let what = format!("{method} {path}");
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(USER_AGENT, AGENT);
        if !kind.is_empty() {
            request = request.header(CONTENT_TYPE, kind);
        }
        let answer = self.0.send(request.body(Body::from(body))?).await;
        let (head, body) = answer.with_context(|| what)?.into_parts();
        // Read to its end, the connection is used again.
        body.collect_bytes().await?;
        Ok((head.status, head.headers))
    }
}
