use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::convention::ConventionWebhook;

/// Any bytes will do: what a certificate says is for others to read.
fn block(content: &str) -> String {
    pem(content.as_bytes())
}

fn request(name: &str, second: i64, ca: &str) -> CertificateRequest {
    CertificateRequest {
        name: name.to_owned(),
        certificate: "web".to_owned(),
        created: Some(Timestamp::from_second(second).unwrap()),
        ca: ca.as_bytes().to_vec(),
        ready: true,
    }
}

fn web() -> CertificateReference {
    CertificateReference {
        namespace: "team".to_owned(),
        name: "web".to_owned(),
    }
}

/// The contents of the blocks that are trusted.
fn trusted(requests: &[CertificateRequest], secret: Option<&str>) -> Result<Vec<String>, String> {
    let bundle = bundle("add-env", &web(), requests, secret.map(str::as_bytes));
    let bundle = bundle.map_err(|error| error.to_string())?;
    let certificates = certificates(&bundle).into_iter();
    Ok(certificates
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .collect())
}

#[test]
fn authorities_of_the_newest_three_requests_are_trusted() {
    let requests = [
        request("b", 2, &block("two")),
        request("d", 4, &block("four")),
        request("a", 1, &block("one")),
        request("c", 3, &block("three")),
    ];
    assert_eq!(trusted(&requests, None).unwrap(), ["four", "three", "two"]);
    let mut reversed = requests;
    reversed.reverse();
    assert_eq!(trusted(&reversed, None).unwrap(), ["four", "three", "two"]);
}

#[test]
fn requests_of_one_second_have_an_order() {
    let requests = ["a", "b", "c", "d"].map(|name| request(name, 1, &block(name)));
    assert_eq!(trusted(&requests, None).unwrap(), ["d", "c", "b"]);
}

#[test]
fn an_authority_that_signed_each_of_them_is_there_once() {
    let requests = [
        request("b", 2, &block("same")),
        request("a", 1, &(block("same") + &block("other"))),
    ];
    assert_eq!(trusted(&requests, None).unwrap(), ["same", "other"]);
    let one = bundle("c", &web(), &requests[..1], None);
    let renewed = [request("z", 9, &block("same")), requests[0].clone()];
    assert_eq!(one, bundle("c", &web(), &renewed, None));
}

#[test]
fn only_signed_requests_for_the_certificate_that_name_an_authority_count() {
    let other = |change: fn(&mut CertificateRequest)| {
        let mut request = request("a", 1, &block("one"));
        change(&mut request);
        request
    };
    let none = r#"unable to find valid "CertificateRequests" for certificate "team/web" configured in convention "add-env""#;
    for requests in [
        vec![],
        vec![other(|it| it.ready = false)],
        vec![other(|it| it.certificate = "webs".to_owned())],
        vec![other(|it| it.ca = Vec::new())],
        vec![other(|it| it.ca = b"not PEM".to_vec())],
    ] {
        assert_eq!(trusted(&requests, None), Err(none.to_owned()));
        assert_eq!(trusted(&requests, Some("no PEM")), Err(none.to_owned()));
    }
}

#[test]
fn the_secret_is_asked_when_no_request_is_left() {
    let secret = block("secret");
    assert_eq!(trusted(&[], Some(&secret)).unwrap(), ["secret"]);
    let requests = [request("a", 1, &block("one"))];
    assert_eq!(trusted(&requests, Some(&secret)).unwrap(), ["one"]);
}

#[test]
fn a_broken_request_harms_no_other() {
    let cut_off = &block("x")[..40];
    let no_base64 = format!("{BEGIN}\n%%%\n{END}\n");
    let requests = [
        request("e", 5, "no PEM at all"),
        request("d", 4, cut_off),
        request("c", 3, &format!("{no_base64}{}", block("three"))),
        request("b", 2, block("two").trim_end()),
        request("a", 1, &block("one")),
    ];
    assert_eq!(trusted(&requests, None).unwrap(), ["three", "two", "one"]);
}

#[test]
fn blocks_are_found_in_whatever_stands_between_them() {
    let key = "-----BEGIN PRIVATE KEY-----\nYQ==\n-----END PRIVATE KEY-----\n";
    let text = format!(
        "# comment\r\n{key}{}garbage {BEGIN} unfinished {}{BEGIN}{END}{key}",
        block("one").replace('\n', "\r\n"),
        block("two").trim_end(),
    );
    assert_eq!(certificates(text.as_bytes()), [b"one", b"two"]);
    assert_eq!(certificates(b"\xff\xfe"), Vec::<Vec<u8>>::new());
    let long = "x".repeat(1000);
    assert_eq!(certificates(block(&long).as_bytes()), [long.as_bytes()]);
    assert!(block(&long).lines().all(|line| line.len() <= 64));
}

#[test]
fn the_field_wins_over_the_annotation() {
    let convention = |annotation: Option<&str>, certificate: Option<CertificateReference>| {
        let mut convention = ClusterPodConvention::default();
        convention.metadata.annotations = annotation
            .map(|annotation| BTreeMap::from([(INJECT_CA_FROM.to_owned(), annotation.to_owned())]));
        convention.spec.webhook = Some(ConventionWebhook {
            certificate,
            ..Default::default()
        });
        reference(&convention)
    };
    let other = CertificateReference {
        namespace: "a".to_owned(),
        name: "b/c".to_owned(),
    };
    assert_eq!(convention(None, None), Ok(None));
    assert_eq!(convention(Some("a/b/c"), None), Ok(Some(other)));
    assert_eq!(convention(Some("a/b"), Some(web())), Ok(Some(web())));
    assert_eq!(convention(Some("a"), Some(web())), Ok(Some(web())));
    for wrong in ["", "a", "/a"] {
        let error = convention(Some(wrong), None).unwrap_err().to_string();
        assert_eq!(error, "invalid certificate name; needs a namespace/ prefix");
    }
    assert_eq!(reference(&ClusterPodConvention::default()), Ok(None));
}

#[test]
fn what_cannot_be_fetched_is_told_as_before() {
    let error = AuthorityError::Fetch {
        namespace: "team".to_owned(),
        cause: "why".to_owned(),
    };
    assert_eq!(
        error.to_string(),
        "failed to fetch associated `CertificateRequests` using the certificate namespace \
         \"team\": why configured on the ClusterPodConvention config"
    );
}

#[test]
fn an_object_of_any_shape_is_read() {
    let read = |object| CertificateRequest::read(&object);
    assert_eq!(read(json!(null)), CertificateRequest::default());
    assert_eq!(read(json!([1])), CertificateRequest::default());
    let odd = json!({
        "metadata": {"name": 5, "creationTimestamp": "then", "annotations": [CERTIFICATE_NAME]},
        "status": {"ca": "%", "conditions": [null, 5, {"type": "Ready", "status": "False"}]},
    });
    assert_eq!(read(odd), CertificateRequest::default());
}
