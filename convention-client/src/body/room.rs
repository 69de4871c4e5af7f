//! Whose bills of materials a request has room for.

use std::collections::BTreeMap;

use convention_protocol::PodConventionContext;

use super::{Piece, StoredBom};

/// What is around the name and the bytes of a bill, and around all bills of an image, at most.
const FRAME: u64 = 32;

/// What is sent, and whose is not.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) boms: BTreeMap<String, Vec<StoredBom>>,
    pub(super) left_out: Vec<String>,
}

/// Gives room to the images in their order. An image has all of its bills, or none: a part of them
/// would be taken for the whole.
pub(super) fn shared(
    mut room: u64,
    context: &PodConventionContext,
    boms: &BTreeMap<String, Vec<StoredBom>>,
) -> Kept {
    let mut kept = Kept::default();
    let images = &context.spec.image_config;
    for (at, image) in images.iter().enumerate() {
        let name = &image.image;
        let is_known = images[..at].iter().any(|earlier| earlier.image == *name);
        let Some(stored) = boms.get(name).filter(|all| !all.is_empty() && !is_known) else {
            continue;
        };
        let times = images.iter().filter(|other| other.image == *name).count();
        let needed = needed(stored).checked_mul(times as u64);
        match needed.and_then(|needed| room.checked_sub(needed)) {
            Some(left) => {
                room = left;
                kept.boms.insert(name.clone(), stored.clone());
            }
            None => kept.left_out.push(name.clone()),
        }
    }
    kept
}

/// No fewer bytes than the bills take on the wire.
fn needed(stored: &[StoredBom]) -> u64 {
    stored.iter().fold(FRAME, |sum, bom| {
        // Each byte of a name is six at most, as `\u001f` is.
        let name = (bom.name.len() as u64).saturating_mul(6) + FRAME;
        let raw = Piece::Stored(bom.clone()).length().unwrap_or(u64::MAX);
        sum.saturating_add(raw).saturating_add(name)
    })
}
