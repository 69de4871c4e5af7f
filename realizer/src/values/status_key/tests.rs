use super::*;

fn key(text: &str) -> StatusKey {
    StatusKey::new(text.as_bytes())
}

#[test]
fn a_digest_depends_on_key_purpose_and_text() {
    let digest = key("one").digest("output", "hunter2").unwrap();
    assert!(digest.starts_with("sha256:") && digest.len() == 71);
    assert_eq!(key("one").digest("output", "hunter2"), Some(digest.clone()));
    for other in [
        key("two").digest("output", "hunter2"),
        key("one").digest("run", "hunter2"),
        key("one").digest("output", "hunter3"),
    ] {
        assert_ne!(other, Some(digest.clone()));
    }
    assert_eq!(StatusKey::NONE.digest("output", "hunter2"), None);
}

#[test]
fn what_is_sealed_is_read_with_the_same_key_only() {
    for text in ["", "x", "hunter2", &"long text ".repeat(50)] {
        let sealed = key("one").seal(text).unwrap();
        assert!(text.is_empty() || !sealed.contains(text));
        assert_eq!(key("one").seal(text).as_deref(), Some(&*sealed));
        assert_eq!(key("one").open(&sealed).as_deref(), Some(text));
        assert_eq!(key("two").open(&sealed), None);
    }
    assert_eq!(StatusKey::NONE.seal("hunter2"), None);
    assert_eq!(StatusKey::NONE.open("AAAA"), None);
}

#[test]
fn what_was_changed_is_not_read() {
    let sealed = key("one").seal("hunter2-hunter2").unwrap();
    let bytes = STANDARD_NO_PAD.decode(&sealed).unwrap();
    for index in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[index] ^= 1;
        assert_eq!(key("one").open(&STANDARD_NO_PAD.encode(changed)), None);
    }
    for short in ["", "AAAA", "not base64"] {
        assert_eq!(key("one").open(short), None);
    }
}

#[test]
fn nothing_is_told_by_debug() {
    assert_eq!(
        format!("{:?} {:?}", key("one"), StatusKey::NONE),
        "a key no key"
    );
}
