use std::io::Write as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use convention_protocol::{Bom, ImageConfig, PodTemplate};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame, SizeHint};
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use serde_json::json;
use tokio::io::AsyncReadExt as _;

use super::*;

fn image(name: &str, boms: Vec<Bom>) -> ImageConfig {
    ImageConfig {
        image: name.to_owned(),
        boms,
        config: json!({"architecture": "amd64"}),
    }
}

fn context(images: Vec<ImageConfig>) -> PodConventionContext {
    // What looks like a hole is none.
    let text =
        r#"{"metadata": {"labels": {"raw": "\",\"raw\":\"\""}}, "spec": {"containers": []}}"#;
    let template: PodTemplate = serde_json::from_str(text).unwrap();
    PodConventionContext::request("app-env".to_owned(), template, images)
}

/// The same bytes in a file, with others around them.
fn stored(bom: &Bom) -> StoredBom {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"before").unwrap();
    file.write_all(&bom.raw).unwrap();
    file.write_all(b"behind").unwrap();
    StoredBom {
        name: bom.name.clone(),
        file: Arc::new(file),
        offset: 6,
        length: bom.raw.len().try_into().unwrap(),
    }
}

fn held(body: &RequestBody) -> Vec<Bytes> {
    let held = body.pieces.iter().filter_map(|piece| match piece {
        Piece::Held(bytes) => Some(bytes.clone()),
        Piece::Stored(_) => None,
    });
    held.collect()
}

/// Sends it, and looks whether it tells its length all the time.
fn sent(body: &RequestBody) -> Result<Vec<u8>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut stream = body.stream();
        let mut bytes = Vec::new();
        assert_eq!(stream.size_hint().exact(), Some(body.length()));
        while let Some(frame) = stream.frame().await {
            let frame = frame.map_err(|error| error.to_string())?;
            let data = frame.into_data().unwrap();
            // What is held is there anyway; of a file no more is.
            let is_small = data.len() <= 64 << 10;
            assert!(is_small || held(body).contains(&data), "{}", data.len());
            bytes.extend_from_slice(&data);
            let left = body.length() - u64::try_from(bytes.len()).unwrap();
            assert_eq!(stream.size_hint().exact(), Some(left));
            assert_eq!(stream.is_end_stream(), left == 0);
        }
        Ok(bytes)
    })
}

fn boms() -> impl Strategy<Value = Vec<Bom>> {
    let lengths = prop_oneof![0..5_usize, 49_150..49_155_usize, 98_303..98_306_usize];
    let bom = (any::<String>(), lengths, any::<u8>()).prop_map(|(name, length, byte)| Bom {
        name,
        raw: (0..length)
            .map(|at| byte.wrapping_add(at.to_le_bytes()[0]))
            .collect(),
    });
    prop::collection::vec(bom, 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn what_is_sent_from_files_equals_what_is_sent_from_memory(
        images in prop::collection::btree_map(".{0,9}", (boms(), boms()), 0..3),
    ) {
        let whole = |(name, (held, stored)): (&String, &(Vec<Bom>, Vec<Bom>))| {
            image(name, [held.clone(), stored.clone()].concat())
        };
        let expected = serde_json::to_vec(&context(images.iter().map(whole).collect())).unwrap();
        let held = images.iter().map(|(name, (held, _))| image(name, held.clone())).collect();
        let stored = images
            .iter()
            .map(|(name, (_, boms))| (name.clone(), boms.iter().map(stored).collect()))
            .collect();
        let body = RequestBody::new(&context(held), &stored).unwrap();
        prop_assert!(sent(&body).unwrap() == expected);
        // And once more, as after a redirect.
        prop_assert!(sent(&body).unwrap() == expected);
    }
}

#[test]
fn a_large_bill_of_materials_is_read_in_pieces() {
    let bom = Bom {
        name: "large".to_owned(),
        raw: vec![7; 20 << 20],
    };
    let stored = BTreeMap::from([("a".to_owned(), vec![stored(&bom)])]);
    let body = RequestBody::new(&context(vec![image("a", Vec::new())]), &stored).unwrap();
    let bytes = sent(&body).unwrap();
    let read: PodConventionContext = serde_json::from_slice(&bytes).unwrap();
    assert!(read.spec.image_config[0].boms[0] == bom);
}

#[test]
fn a_file_that_is_shorter_than_it_was_is_told() {
    let bom = StoredBom {
        length: 9,
        ..stored(&Bom::default())
    };
    let stored = BTreeMap::from([(
        "a".to_owned(),
        vec![StoredBom {
            length: 1 << 20,
            ..bom
        }],
    )]);
    let body = RequestBody::new(&context(vec![image("a", Vec::new())]), &stored).unwrap();
    let error = sent(&body).unwrap_err();
    assert!(
        error.contains("cannot read the bill of materials"),
        "{error}"
    );
}

#[test]
fn a_length_that_nobody_has_is_refused() {
    let bom = |length| StoredBom {
        length,
        ..stored(&Bom::default())
    };
    for boms in [
        vec![bom(u64::MAX)],
        vec![bom(u64::MAX / 2), bom(u64::MAX / 2)],
    ] {
        let stored = BTreeMap::from([("a".to_owned(), boms)]);
        let refused = RequestBody::new(&context(vec![image("a", Vec::new())]), &stored);
        assert!(matches!(refused, Err(RequestBodyError::TooLong)));
    }
}

#[test]
fn bills_of_materials_of_other_images_are_not_sent() {
    let bom = Bom {
        name: "other".to_owned(),
        raw: vec![1],
    };
    let stored = BTreeMap::from([("b".to_owned(), vec![stored(&bom)])]);
    let context = context(vec![image("a", Vec::new())]);
    let body = RequestBody::new(&context, &stored).unwrap();
    assert_eq!(sent(&body).unwrap(), serde_json::to_vec(&context).unwrap());
}

/// Counts what is asked of a body.
struct Counted {
    stream: RequestStream,
    asked: Arc<AtomicUsize>,
}

impl hyper::body::Body for Counted {
    type Data = Bytes;
    type Error = StoredError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoredError>>> {
        let polled = Pin::new(&mut self.stream).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            let length = frame.data_ref().map_or(0, Bytes::len);
            self.asked.fetch_add(length, Ordering::SeqCst);
        }
        polled
    }

    fn size_hint(&self) -> SizeHint {
        self.stream.size_hint()
    }
}

#[tokio::test]
async fn no_more_is_read_than_the_webhook_takes() {
    let bom = Bom {
        name: "large".to_owned(),
        raw: vec![7; 20 << 20],
    };
    let stored = BTreeMap::from([("a".to_owned(), vec![stored(&bom)])]);
    let body = RequestBody::new(&context(vec![image("a", Vec::new())]), &stored).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Counted {
        stream: body.stream(),
        asked: Arc::clone(&asked),
    };
    let (client, mut server) = tokio::io::duplex(1 << 10);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(client))
        .await
        .unwrap();
    let request = http::Request::post("/")
        .header("host", "a")
        .body(counted)
        .unwrap();
    let slow_server = async {
        let (mut taken, mut bytes) = (0, vec![0; 64 << 10]);
        while taken < usize::try_from(body.length()).unwrap() {
            taken += server.read(&mut bytes).await.unwrap();
            let ahead = asked.load(Ordering::SeqCst).saturating_sub(taken);
            assert!(ahead < 1 << 20, "{ahead} bytes are held at {taken}");
        }
    };
    tokio::select! {
        () = slow_server => {}
        ended = connection => assert!(ended.is_ok(), "{ended:?}"),
        ended = sender.send_request(request) => assert!(ended.is_ok(), "{:?}", ended.err()),
    }
}

#[test]
fn bills_that_one_call_does_not_carry_are_left_out_by_whole_images_in_their_order() {
    let file = Arc::new(tempfile::tempfile().unwrap());
    let bom = |length| StoredBom {
        name: "bom".to_owned(),
        file: Arc::clone(&file),
        offset: 0,
        length,
    };
    let images = ["c", "b", "a", "none", "d"];
    let context = context(images.map(|name| image(name, Vec::new())).to_vec());
    let body = |lengths: [u64; 4]| {
        let [a, b, c, d] = lengths.map(|length| vec![bom(length), bom(1)]);
        let all = [("a", a), ("b", b), ("c", c), ("d", d)];
        let all = all.map(|(name, boms)| (name.to_owned(), boms));
        RequestBody::new(&context, &BTreeMap::from(all)).unwrap()
    };
    for (lengths, left_out) in [
        ([10 << 20, 10 << 20, 10 << 20, 10 << 20], &[][..]),
        ([20 << 20, 20 << 20, 20 << 20, 20 << 20], &["a", "d"]),
        ([20 << 20, 20 << 20, 20 << 20, 1 << 20], &["a"]),
        ([1, 1, 48 << 20, 1], &["c"]),
    ] {
        let body = body(lengths);
        assert_eq!(body.left_out(), left_out, "{lengths:?}");
        assert!(body.length() <= MOST_REQUEST_BYTES, "{lengths:?}");
        let sent = body
            .pieces
            .iter()
            .filter(|piece| matches!(piece, Piece::Stored(_)));
        assert_eq!(sent.count(), 2 * (4 - left_out.len()));
    }
}
