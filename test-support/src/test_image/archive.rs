//! The archive that a layer is.

use std::io::Write as _;

use anyhow::ensure;
use flate2::Compression;
use flate2::write::GzEncoder;

/// The files in this order, without times and owners. Names are kept as they are: the lifecycle of buildpacks begins them
/// with a slash, which the library would not let pass.
pub(super) fn tar(files: &[(String, Vec<u8>)]) -> anyhow::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_ustar();
        let room = &mut header.as_old_mut().name;
        ensure!(name.len() <= room.len(), "{name} is too long a name");
        room[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(u64::try_from(content.len())?);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append(&header, content.as_slice())?;
    }
    Ok(archive.into_inner()?)
}

pub(super) fn gzip(archive: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(archive)?;
    Ok(encoder.finish()?)
}
