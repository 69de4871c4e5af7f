//! Images read from a real registry.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;

use conventions::credentials::{Keyring, SecretKind};
use image_registry::{Cause, FaultKind, Images, Pass, ResolvedImage, Settings, Unobserved};
use serde_json::json;
use tempfile::{TempDir, tempdir};
use test_support::{DockerRegistry, TestImage, eventually};

const SBOMS: [(&str, &[u8]); 2] = [
    (
        "/layers/sbom/launch/bp/sbom.cdx.json",
        b"{\"bomFormat\": \"CycloneDX\"}",
    ),
    ("/layers/sbom/launch/bp/sbom.syft.json", b"{}"),
];

fn image() -> TestImage {
    TestImage::new()
        .config(json!({"Env": ["A=1"], "Cmd": ["run"]}))
        .layer(&[("app", b"binary")])
        .sbom(&SBOMS)
}

fn settings(folder: &TempDir) -> Settings {
    Settings {
        first_delay: Duration::from_millis(10),
        ..Settings::new(folder.path().join("cache"))
    }
}

fn images(settings: Settings) -> Images {
    Images::new(settings, Arc::new(Unobserved)).unwrap()
}

fn password_for(registry: &DockerRegistry, password: &str) -> Keyring {
    let mut keyring = Keyring::default();
    let entry = json!({"username": DockerRegistry::USER, "password": password});
    let config = json!({"auths": {registry.host(): entry}}).to_string();
    assert!(
        keyring
            .add(SecretKind::DockerConfigJson, config.as_bytes())
            .is_empty()
    );
    keyring
}

fn is_whole(resolved: &ResolvedImage) {
    assert_eq!(resolved.config["config"]["Env"], json!(["A=1"]));
    let boms: Vec<(String, Vec<u8>)> = resolved
        .boms
        .iter()
        .map(|bom| {
            let mut bytes = vec![0; usize::try_from(bom.length).unwrap()];
            bom.file.read_exact_at(&mut bytes, bom.offset).unwrap();
            (bom.name.clone(), bytes)
        })
        .collect();
    let expected = SBOMS.map(|(name, content)| (format!("cnb-app:{name}"), content.to_vec()));
    assert_eq!(boms, expected);
}

#[tokio::test]
async fn an_open_registry_is_asked_no_more_than_is_needed() {
    let (registry, folder) = (DockerRegistry::start().await.unwrap(), tempdir().unwrap());
    let docker = registry
        .push("team/docker", "1", &image().docker())
        .await
        .unwrap();
    let oci = registry.push("team/oci", "1", &image()).await.unwrap();
    let images = images(settings(&folder));
    for (name, pushed) in [("team/docker", &docker), ("team/oci", &oci)] {
        let image = format!("{}/{name}:1", registry.host());
        let resolved = images
            .resolve(&image, &Keyring::default(), &Pass::default())
            .await
            .unwrap();
        is_whole(&resolved);
        assert_eq!(resolved.reference, format!("{image}@{}", pushed.digest));
        for _ in 0..10 {
            let (nobody, pass) = (Keyring::default(), Pass::default());
            let again = images.resolve(&resolved.reference, &nobody, &pass).await;
            is_whole(&again.unwrap());
        }
        let asked = || async {
            let requests = registry.requests()?;
            let about = requests
                .iter()
                .filter(|request| request.path.contains(name))
                .count();
            anyhow::ensure!(about == 3, "{requests:?}");
            Ok(())
        };
        let what = "manifest, configuration and layer are asked for once";
        eventually(what, Duration::from_secs(10), asked).await;
    }
}

#[tokio::test]
async fn an_index_is_pinned_as_it_is() {
    let (registry, folder) = (DockerRegistry::start().await.unwrap(), tempdir().unwrap());
    let both = [image(), image().architecture("arm64")];
    let index = registry.push_index("app", "1", &both).await.unwrap();
    let image = format!("{}/app:1", registry.host());
    for (platform, architecture) in [("linux/amd64", "amd64"), ("linux/arm64", "arm64")] {
        let images = images(Settings {
            platform: platform.parse().unwrap(),
            ..settings(&folder)
        });
        let resolved = images
            .resolve(&image, &Keyring::default(), &Pass::default())
            .await
            .unwrap();
        is_whole(&resolved);
        assert_eq!(resolved.digest.as_str(), index.digest);
        assert_eq!(resolved.config["architecture"], architecture);
    }
}

#[tokio::test]
async fn a_password_opens_and_nothing_else_does() {
    let registry = DockerRegistry::builder()
        .with_password()
        .start()
        .await
        .unwrap();
    let folder = tempdir().unwrap();
    registry.push("app", "1", &image()).await.unwrap();
    let images = images(settings(&folder));
    let image = format!("{}/app:1", registry.host());
    let right = password_for(&registry, DockerRegistry::PASSWORD);
    let mut both = password_for(&registry, "wrong");
    let entry = json!({"username": DockerRegistry::USER, "password": DockerRegistry::PASSWORD});
    let config = json!({"auths": {registry.host(): entry}}).to_string();
    assert!(
        both.add(SecretKind::DockerConfigJson, config.as_bytes())
            .is_empty()
    );
    for keyring in [&right, &both] {
        is_whole(
            &images
                .resolve(&image, keyring, &Pass::default())
                .await
                .unwrap(),
        );
    }
    for keyring in [Keyring::default(), password_for(&registry, "wrong")] {
        let error = images
            .resolve(&image, &keyring, &Pass::default())
            .await
            .unwrap_err();
        assert!(matches!(error.cause(), Cause::Denied { .. }), "{error}");
    }
    let missing = format!("{}/app:2", registry.host());
    let error = images
        .resolve(&missing, &right, &Pass::default())
        .await
        .unwrap_err();
    assert!(matches!(error.cause(), Cause::Unknown { .. }), "{error}");
    assert!(error.to_string().contains("(MANIFEST_UNKNOWN)"), "{error}");
}

#[tokio::test]
async fn an_authority_counts_as_soon_as_its_file_is_there_and_a_broken_file_changes_nothing() {
    let registry = DockerRegistry::builder().with_tls().start().await.unwrap();
    let folder = tempdir().unwrap();
    registry.push("app", "1", &image()).await.unwrap();
    let file = folder.path().join("ca.crt");
    let images = images(Settings {
        ca_file: Some(file.clone()),
        access_age: Duration::ZERO,
        ..settings(&folder)
    });
    let image = format!("{}/app:1", registry.host());
    let resolve = || async {
        images
            .resolve(&image, &Keyring::default(), &Pass::default())
            .await
    };
    let error = resolve().await.unwrap_err();
    assert_eq!(error.kind(), FaultKind::Infrastructure);
    assert!(error.to_string().contains("certificate"), "{error}");
    let authority = registry.authority().unwrap().unwrap();
    fs::write(&file, &authority).unwrap();
    is_whole(&resolve().await.unwrap());
    fs::write(
        &file,
        "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n",
    )
    .unwrap();
    is_whole(&resolve().await.unwrap());
    let broken = Settings {
        ca_file: Some(file.clone()),
        ..settings(&folder)
    };
    let error = Images::new(broken, Arc::new(Unobserved)).err().unwrap();
    assert!(error.to_string().contains("ca.crt"), "{error}");
    // Two without a line between them are two.
    fs::write(&file, format!("{}{}", authority.trim_end(), authority)).unwrap();
    is_whole(&resolve().await.unwrap());
    fs::write(&file, "").unwrap();
    resolve().await.unwrap_err();
    fs::write(&file, &authority).unwrap();
    is_whole(&resolve().await.unwrap());
    fs::remove_file(&file).unwrap();
    resolve().await.unwrap_err();

    let hosts = folder.path().join("hosts").join(registry.host());
    fs::create_dir_all(&hosts).unwrap();
    fs::write(hosts.join("ca.crt"), &authority).unwrap();
    let server = format!(
        "server = \"https://{}\"\nca = \"ca.crt\"\n",
        registry.host()
    );
    let skipping = format!(
        "server = \"https://{}\"\nskip_verify = true\n",
        registry.host()
    );
    for text in [server, skipping] {
        fs::write(hosts.join("hosts.toml"), text).unwrap();
        let images = crate::images(Settings {
            hosts_folder: Some(folder.path().join("hosts")),
            ..settings(&folder)
        });
        is_whole(
            &images
                .resolve(&image, &Keyring::default(), &Pass::default())
                .await
                .unwrap(),
        );
    }
}

#[tokio::test]
async fn a_registry_that_is_down_or_hangs_is_no_fault_of_the_user_and_what_is_known_stays_known() {
    let (mut registry, folder) = (DockerRegistry::start().await.unwrap(), tempdir().unwrap());
    registry.push("app", "1", &image()).await.unwrap();
    let images = images(Settings {
        budget: Duration::from_secs(3),
        ..settings(&folder)
    });
    let image = format!("{}/app:1", registry.host());
    let resolved = images
        .resolve(&image, &Keyring::default(), &Pass::default())
        .await
        .unwrap();
    registry.freeze().await.unwrap();
    let error = images
        .resolve(&image, &Keyring::default(), &Pass::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), FaultKind::Infrastructure);
    registry.thaw().unwrap();
    registry.stop();
    let error = images
        .resolve(&image, &Keyring::default(), &Pass::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), FaultKind::Infrastructure);
    let (nobody, pass) = (Keyring::default(), Pass::default());
    let known = images.resolve(&resolved.reference, &nobody, &pass).await;
    is_whole(&known.unwrap());
    registry.resume().await.unwrap();
    is_whole(
        &images
            .resolve(&image, &Keyring::default(), &Pass::default())
            .await
            .unwrap(),
    );
}
