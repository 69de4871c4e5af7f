use serde_json::json;

use super::*;

fn bom(value: &Value) -> Bom {
    Bom {
        name: "cnb-app:/layers/sbom/launch/sbom.json".to_owned(),
        raw: value.to_string().into_bytes(),
    }
}

fn names(sbom: &Sbom) -> Vec<&str> {
    let names = sbom.dependencies.iter().map(|it| it.name.as_str());
    names.collect()
}

#[test]
fn each_format_is_known_by_its_content_and_lists_the_same() {
    let purl = "pkg:maven/org.springframework.boot/spring-boot@2.7.1";
    let cyclone = json!({"bomFormat": "CycloneDX", "specVersion": "1.3", "components": [
        {"type": "library", "name": "spring-boot", "version": "2.7.1", "purl": purl},
    ]});
    let spdx = json!({"spdxVersion": "SPDX-2.2", "packages": [
        {"name": "spring-boot", "versionInfo": "2.7.1", "externalRefs": [
            {"referenceCategory": "SECURITY", "referenceType": "cpe23Type", "referenceLocator": "cpe:2.3:a"},
            {"referenceCategory": "PACKAGE_MANAGER", "referenceType": "purl", "referenceLocator": purl},
        ]},
    ]});
    let syft = json!({"artifacts": [{"name": "spring-boot", "version": "2.7.1", "purl": purl}],
        "descriptor": {"name": "syft"}});
    let expected = Dependency {
        name: "spring-boot".to_owned(),
        version: "2.7.1".to_owned(),
        purl: purl.to_owned(),
    };
    for (document, format) in [
        (cyclone, SbomFormat::CycloneDx),
        (spdx, SbomFormat::Spdx),
        (syft, SbomFormat::Syft),
    ] {
        let sbom = Sbom::read(&bom(&document)).unwrap();
        assert_eq!(sbom.format, format);
        assert_eq!(sbom.dependencies, std::slice::from_ref(&expected));
    }
}

#[test]
fn nested_components_come_behind_the_one_they_are_in() {
    let document = json!({"bomFormat": "CycloneDX", "components": [
        {"name": "a", "components": [{"name": "a1", "components": [{"name": "a11"}]}, {"name": "a2"}]},
        {"name": "b"},
    ]});
    let sbom = Sbom::read(&bom(&document)).unwrap();
    assert_eq!(names(&sbom), ["a", "a1", "a11", "a2", "b"]);
}

#[test]
fn what_is_no_bill_of_materials_is_told_by_its_name() {
    for (document, text) in [
        ("{}", "is neither CycloneDX nor SPDX nor Syft"),
        ("{\"bomFormat\": 5}", "is neither"),
        ("{\"bomFormat\": \"CycloneDX\"", "EOF while parsing"),
        ("[]", "invalid length"),
        ("", "EOF while parsing"),
        (
            "{\"bomFormat\": \"CycloneDX\", \"components\": 5}",
            "invalid type",
        ),
        ("{\"artifacts\": [1]}", "invalid type"),
    ] {
        let bom = Bom {
            name: "a.json".to_owned(),
            raw: document.as_bytes().to_vec(),
        };
        let error = Sbom::read(&bom).unwrap_err().to_string();
        assert!(error.contains("\"a.json\""), "{document}: {error}");
        assert!(error.contains(text), "{document}: {error}");
    }
}

#[test]
fn a_bill_of_materials_that_is_nested_without_end_is_refused() {
    let open = "{\"components\":[".repeat(5000);
    let deep = format!(
        "{{\"bomFormat\":\"CycloneDX\",\"components\":[{open}{}]}}",
        "]}".repeat(5000)
    );
    let bom = Bom {
        name: "deep".to_owned(),
        raw: deep.into_bytes(),
    };
    let error = Sbom::read(&bom).unwrap_err().to_string();
    assert!(error.contains("recursion limit exceeded"), "{error}");
}

#[test]
fn a_bill_of_materials_that_is_small_and_would_be_large_in_memory_is_refused() {
    let components = vec!["{}"; MOST_NODES].join(",");
    let bom = Bom {
        name: "bomb".to_owned(),
        raw: format!("{{\"bomFormat\":\"CycloneDX\",\"components\":[{components}]}}").into_bytes(),
    };
    let error = Sbom::read(&bom).unwrap_err().to_string();
    assert!(
        error.ends_with("it has more than 500000 objects"),
        "{error}"
    );
}

#[test]
fn what_several_documents_list_counts_once() {
    let one = Dependency {
        name: "a".to_owned(),
        ..Dependency::default()
    };
    let other = Dependency {
        version: "1".to_owned(),
        ..one.clone()
    };
    let all = Dependencies::of(vec![one.clone(), other.clone(), one.clone(), other.clone()]);
    assert_eq!(all.iter().collect::<Vec<_>>(), [&one, &other]);
}

#[test]
fn versions_are_in_ranges_by_where_they_stand() {
    let range = ">=2.3.0".parse().unwrap();
    for (version, expected) in [
        ("2.3.0", true),
        ("2.3.0.RELEASE", true),
        ("2.3.0.Final", true),
        ("2.3.0-SNAPSHOT", false),
        ("2.3.0.M1", false),
        ("2.3.1.BUILD-SNAPSHOT", true),
        ("2.10", true),
        ("3", true),
        ("2.2.9.RELEASE", false),
        ("2", false),
        ("", false),
        ("99999999999999999999.1", false),
        ("2.3.0-!!", false),
    ] {
        let dependency = Dependency {
            version: version.to_owned(),
            ..Dependency::default()
        };
        assert_eq!(dependency.is_in(&range), expected, "{version}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_a_version_or_a_package_url_panic(text in "\\PC*", range in "[<>=^~ 0-9.*,-]{0,12}") {
        let dependency = Dependency { version: text.clone(), ..Dependency::default() };
        if let Ok(range) = range.parse::<VersionReq>() {
            let _ = dependency.is_in(&range);
        }
        let _ = dependency.semantic_version();
        let _ = text.parse::<Purl>();
        let _ = format!("pkg:{text}").parse::<Purl>();
    }

    #[test]
    fn no_bytes_make_reading_a_bill_of_materials_panic(raw in proptest::collection::vec(0_u8..=255, 0..200)) {
        let _ = Sbom::read(&Bom { name: String::new(), raw });
    }
}
