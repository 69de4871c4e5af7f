//! The keys and certificates of one control plane.
//!
//! They lie beside etcd's data: a control plane started again on the same folder trusts the same clients and accepts the
//! service account tokens it issued before.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, ensure};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

use crate::node::Node;

/// X.520 organizationName. `rcgen` keeps one value per attribute type, and takes the spelled-out identifier for another one.
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];

/// Keys and certificates below one folder.
#[derive(Debug)]
pub(crate) struct Pki {
    folder: PathBuf,
    /// Held while files are written: tests that share a control plane ask for the same user at the same time.
    writing: Mutex<()>,
}

/// Files that identify a client.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Pki {
    /// Makes what is missing in `folder`.
    pub(crate) fn in_folder(folder: PathBuf) -> anyhow::Result<Self> {
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let pki = Self {
            folder,
            writing: Mutex::new(()),
        };
        let authority = pki.key("ca.key")?;
        if !pki.file("ca.crt").exists() {
            fs::write(
                pki.file("ca.crt"),
                authority_params()?.self_signed(&authority)?.pem(),
            )?;
        }
        let tokens = pki.key("service-accounts.key")?;
        fs::write(pki.file("service-accounts.pub"), tokens.public_key_pem())?;
        pki.issue("apiserver", &server_params()?)?;
        Ok(pki)
    }

    /// The certificate of the authority that signed all the others.
    pub(crate) fn authority(&self) -> PathBuf {
        self.file("ca.crt")
    }

    /// The key that signs service account tokens, and the public half that verifies them.
    pub(crate) fn token_keys(&self) -> (PathBuf, PathBuf) {
        (
            self.file("service-accounts.key"),
            self.file("service-accounts.pub"),
        )
    }

    /// Makes another key for service account tokens: an API server started from now on knows none that were issued before.
    pub(crate) fn replace_token_keys(&self) -> anyhow::Result<()> {
        let tokens = KeyPair::generate()?;
        let (private, public) = self.token_keys();
        fs::write(private, tokens.serialize_pem())?;
        fs::write(public, tokens.public_key_pem())?;
        Ok(())
    }

    /// What the API server shows to its clients.
    pub(crate) fn server(&self) -> Identity {
        self.identity("apiserver")
    }

    /// A client certificate for a user. Kubernetes reads the user from the common name and groups from the organization.
    pub(crate) fn client(&self, user: &str, groups: &[&str]) -> anyhow::Result<Identity> {
        ensure!(
            groups.len() <= 2,
            "a client certificate made here holds at most two groups, not {groups:?}"
        );
        let mut name = DistinguishedName::new();
        let kinds = [
            DnType::OrganizationName,
            DnType::CustomDnType(ORGANIZATION.to_vec()),
        ];
        for (kind, group) in kinds.into_iter().zip(groups) {
            name.push(kind, *group);
        }
        name.push(DnType::CommonName, user);
        let mut params = CertificateParams::default();
        params.distinguished_name = name;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(&file_name_of(user, groups), &params)
    }

    fn issue(&self, name: &str, params: &CertificateParams) -> anyhow::Result<Identity> {
        let _guard = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let identity = self.identity(name);
        if identity.certificate.exists() {
            return Ok(identity);
        }
        let key = self.key(&format!("{name}.key"))?;
        // The authority is the same on every start: fixed name, stored key. Nothing needs to be parsed.
        let issuer = Issuer::new(authority_params()?, self.key("ca.key")?);
        fs::write(
            &identity.certificate,
            params.signed_by(&key, &issuer)?.pem(),
        )?;
        Ok(identity)
    }

    fn key(&self, name: &str) -> anyhow::Result<KeyPair> {
        let path = self.file(name);
        if path.exists() {
            return KeyPair::from_pem(&fs::read_to_string(&path)?)
                .with_context(|| path.display().to_string());
        }
        let key = KeyPair::generate()?;
        fs::write(&path, key.serialize_pem())?;
        Ok(key)
    }

    fn identity(&self, name: &str) -> Identity {
        Identity {
            certificate: self.file(&format!("{name}.crt")),
            key: self.file(&format!("{name}.key")),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// User names have colons and slashes (`system:serviceaccount:a:b`); file names should not. Different users and groups have
/// different names, since a file that exists is used again.
pub(crate) fn file_name_of(user: &str, groups: &[&str]) -> String {
    let names = std::iter::once(&user)
        .chain(groups)
        .map(|name| escape(name));
    format!("client_{}", names.collect::<Vec<_>>().join("_"))
}

fn escape(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    name.chars()
        .map(|c| {
            if plain(c) {
                c.to_string()
            } else {
                format!("%{:x}", u32::from(c))
            }
        })
        .collect()
}

fn authority_params() -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = named("carto-test-authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    Ok(params)
}

fn server_params() -> anyhow::Result<CertificateParams> {
    // The last two are the Service `kubernetes` where Pods run, the first address of hack/node's range, and this machine as
    // Pods see it.
    let names = [
        "localhost",
        "127.0.0.1",
        "kubernetes.default.svc",
        "10.97.0.1",
        Node::MACHINE,
    ]
    .map(str::to_owned);
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = named("kube-apiserver");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

/// The path as text. All folders here are made by us, under a temporary or given folder.
pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_users_and_groups_have_different_files() {
        assert_eq!(file_name_of("a:b", &["g"]), "client_a%3ab_g");
        assert_ne!(file_name_of("a", &["b"]), file_name_of("a_b", &[]));
    }

    #[test]
    fn a_folder_used_again_keeps_its_authority_and_token_keys() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["ca.crt", "service-accounts.key", "service-accounts.pub"];
        let read = || files.map(|name| fs::read_to_string(folder.path().join(name)).unwrap());
        Pki::in_folder(folder.path().to_path_buf()).unwrap();
        let first = read();
        Pki::in_folder(folder.path().to_path_buf()).unwrap();
        assert_eq!(first, read());
    }

    #[test]
    fn a_third_group_is_refused_rather_than_lost() {
        let folder = tempfile::tempdir().unwrap();
        let pki = Pki::in_folder(folder.path().to_path_buf()).unwrap();
        assert!(pki.client("u", &["a", "b"]).is_ok());
        assert!(
            pki.client("u", &["a", "b", "c"])
                .unwrap_err()
                .to_string()
                .contains("at most two groups")
        );
    }
}
