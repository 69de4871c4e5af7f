//! Certificates in a folder, replaced as the kubelet replaces what a Secret holds.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// The certificate of a server at `localhost`, as `tls.crt` and `tls.key` in a folder, and the authority that signed it.
///
/// As in a mounted Secret, both are links into `..data`, which is a link to a folder of one generation: a server never
/// sees a certificate beside a key that is not its own.
#[derive(Debug)]
pub struct Certificates {
    folder: PathBuf,
    authority: Authority,
    generation: u32,
}

#[derive(Debug)]
struct Authority {
    key: KeyPair,
    params: CertificateParams,
    pem: String,
}

impl Certificates {
    /// Makes an authority, and has it sign a first certificate.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written.
    pub fn issue(folder: PathBuf) -> anyhow::Result<Self> {
        fs::create_dir_all(&folder)?;
        for file in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(file), folder.join(file))?;
        }
        let mut certificates = Self {
            folder,
            authority: Authority::new(0)?,
            generation: 0,
        };
        certificates.renew()?;
        Ok(certificates)
    }

    /// Where a server finds them.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The certificate of the authority, as PEM.
    pub fn authority(&self) -> &str {
        &self.authority.pem
    }

    /// Replaces key and certificate; the same authority signs them.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written.
    pub fn renew(&mut self) -> anyhow::Result<()> {
        self.generation += 1;
        let (key, chain) = self.authority.sign()?;
        let generation = format!("..generation-{}", self.generation);
        let files = self.folder.join(&generation);
        fs::create_dir(&files)?;
        fs::write(files.join("tls.crt"), chain)?;
        fs::write(files.join("tls.key"), key)?;
        let next = self.folder.join("..data_tmp");
        symlink(&generation, &next)?;
        fs::rename(next, self.folder.join("..data"))?;
        Ok(())
    }

    /// Prepares another authority and returns its certificate: the next [`Certificates::renew`] is signed by it.
    ///
    /// # Errors
    ///
    /// When no key can be made.
    pub fn replace_authority(&mut self) -> anyhow::Result<&str> {
        self.authority = Authority::new(self.generation)?;
        Ok(self.authority())
    }
}

impl Authority {
    fn new(number: u32) -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        let name = format!("authority {number} of conventions");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { key, params, pem })
    }

    /// A key and its certificate, as PEM.
    fn sign(&self) -> anyhow::Result<(String, String)> {
        let key = KeyPair::generate()?;
        let params = CertificateParams::new(vec!["localhost".to_owned()])?;
        let issuer = Issuer::new(self.params.clone(), &self.key);
        let certificate = params.signed_by(&key, &issuer)?.pem();
        Ok((key.serialize_pem(), certificate))
    }
}
