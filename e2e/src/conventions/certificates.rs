//! Certificates in a folder, replaced as the kubelet replaces what a Secret holds.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use test_support::TestAuthority;

/// The certificate of a server at `localhost`, as `tls.crt` and `tls.key` in a folder, and the authority that signed it.
///
/// As in a mounted Secret, both are links into `..data`, which is a link to a folder of one generation: a server never
/// sees a certificate beside a key that is not its own.
#[derive(Debug)]
pub struct Certificates {
    folder: PathBuf,
    authority: TestAuthority,
    /// The newest, as PEM.
    newest: String,
    /// Of the authority, as PEM.
    pem: String,
    generation: u32,
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
        let authority = authority(0)?;
        let mut certificates = Self {
            folder,
            pem: authority.pem(),
            authority,
            newest: String::new(),
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
        &self.pem
    }

    /// The newest certificate of the server, as PEM.
    pub fn newest(&self) -> &str {
        &self.newest
    }

    /// Replaces key and certificate; the same authority signs them.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written.
    pub fn renew(&mut self) -> anyhow::Result<()> {
        self.generation += 1;
        let generation = format!("..generation-{}", self.generation);
        let files = self.folder.join(&generation);
        fs::create_dir(&files)?;
        let key_pair = self.authority.sign(&["localhost"])?;
        key_pair.write_to(&files)?;
        let next = self.folder.join("..data_tmp");
        symlink(&generation, &next)?;
        fs::rename(next, self.folder.join("..data"))?;
        self.newest = key_pair.certificate_pem();
        Ok(())
    }

    /// Prepares another authority and returns its certificate: the next [`Certificates::renew`] is signed by it.
    ///
    /// # Errors
    ///
    /// When no key can be made.
    pub fn replace_authority(&mut self) -> anyhow::Result<&str> {
        self.authority = authority(self.generation)?;
        self.pem = self.authority.pem();
        Ok(self.authority())
    }
}

fn authority(number: u32) -> anyhow::Result<TestAuthority> {
    TestAuthority::new(&format!("authority {number} of conventions"))
}
