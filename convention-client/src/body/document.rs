//! The JSON of a request, cut where bills of materials are to be read.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;

use bytes::Bytes;
use convention_protocol::{
    Bom, ContextMetadata, PodConventionContext, PodConventionContextStatus, PodTemplate,
};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{Piece, StoredBom};

/// A [`PodConventionContext`], field by field in its order, with bills of materials that are not there.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Context<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: &'a ContextMetadata,
    spec: Spec<'a>,
    status: &'a PodConventionContextStatus,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    template: &'a PodTemplate,
    image_config: Vec<OfImage<'a>>,
}

#[derive(Serialize)]
struct OfImage<'a> {
    image: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    boms: Vec<AnyBom<'a>>,
    config: &'a Value,
}

#[derive(Serialize)]
#[serde(untagged)]
enum AnyBom<'a> {
    Held(&'a Bom),
    Stored { name: &'a str, raw: Hole<'a> },
}

/// Where the bytes of a bill of materials belong. It writes an empty text, and remembers where.
struct Hole<'a> {
    bom: &'a StoredBom,
    written: &'a Cell<usize>,
    holes: &'a RefCell<Vec<(usize, StoredBom)>>,
}

impl Serialize for Hole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let behind_the_quote = self.written.get() + 1;
        let hole = (behind_the_quote, self.bom.clone());
        self.holes.borrow_mut().push(hole);
        serializer.serialize_str("")
    }
}

/// What is written, counted as it is.
struct Counted<'a> {
    bytes: Vec<u8>,
    written: &'a Cell<usize>,
}

impl io::Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        self.written.set(self.bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is sent, in order.
pub(super) fn pieces(
    context: &PodConventionContext,
    boms: &BTreeMap<String, Vec<StoredBom>>,
) -> Result<Vec<Piece>, serde_json::Error> {
    let (written, holes) = (Cell::new(0), RefCell::new(Vec::new()));
    let images = context.spec.image_config.iter().map(|image| OfImage {
        image: &image.image,
        boms: {
            let stored = boms.get(&image.image).into_iter().flatten();
            let held = image.boms.iter().map(AnyBom::Held);
            let stored = stored.map(|bom| AnyBom::Stored {
                name: &bom.name,
                raw: Hole {
                    bom,
                    written: &written,
                    holes: &holes,
                },
            });
            held.chain(stored).collect()
        },
        config: &image.config,
    });
    let document = Context {
        api_version: &context.api_version,
        kind: &context.kind,
        metadata: &context.metadata,
        spec: Spec {
            template: &context.spec.template,
            image_config: images.collect(),
        },
        status: &context.status,
    };
    let mut counted = Counted {
        bytes: Vec::new(),
        written: &written,
    };
    serde_json::to_writer(&mut counted, &document)?;
    drop(document);
    Ok(cut(counted.bytes.into(), holes.take()))
}

fn cut(mut rest: Bytes, holes: Vec<(usize, StoredBom)>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut done = 0;
    for (at, bom) in holes {
        pieces.push(Piece::Held(rest.split_to(at - done)));
        pieces.push(Piece::Stored(bom));
        done = at;
    }
    pieces.push(Piece::Held(rest));
    pieces
}
