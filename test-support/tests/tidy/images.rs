//! Images can be built from what their Dockerfiles are given, as far as it can be told without a
//! container engine.

use std::path::Path;
use test_support::image_context::{copies, copy_files, is_whole, left_by, tracked};

use crate::repository::{read, root};

/// The incident: the members of the workspace in `examples` were left out of what one controller is
/// built from, and Cargo does not begin without them.
#[test]
fn what_images_are_built_from_has_all_that_they_need() {
    let files = tracked(&root()).unwrap();
    let is_dockerfile = |path: &&String| {
        let name = path.rsplit('/').next().unwrap_or_default();
        // One that a scaffold is made from is tried with the scaffold.
        name.starts_with("Dockerfile") && !["ignore", ".in"].iter().any(|end| name.ends_with(end))
    };
    let dockerfiles: Vec<&String> = files.iter().filter(is_dockerfile).collect();
    assert!(dockerfiles.len() > 4, "{dockerfiles:?}");
    for path in dockerfiles {
        let ignore = read(&format!("{path}.dockerignore"));
        let left = left_by(&ignore, &files);
        for copy in copies(&read(path)).unwrap() {
            assert_eq!(copy.from, None, "{path} needs a context of a name");
            for source in &copy.sources {
                let source = source.trim_end_matches('/');
                let is_there = left.iter().any(|file| {
                    source == "."
                        || file
                            .strip_prefix(source)
                            .is_some_and(|below| below.is_empty() || below.starts_with('/'))
                });
                assert!(is_there, "{path} copies {source}, which it is not given");
            }
        }
        let folder = tempfile::tempdir().unwrap();
        copy_files(&root(), &left, folder.path()).unwrap();
        let whole = is_whole(folder.path());
        whole.unwrap_or_else(|error| panic!("{path}: {error:#}"));
        let mut sources = files.iter().filter(|file| file.contains("/src/"));
        let missing = sources.find(|file| !left.contains(&file.as_str()));
        assert_eq!(missing, None, "{path} is not given it");
    }
}

/// What other contexts than those of our own Dockerfiles are given: `--build-context carto=…`.
#[test]
fn what_is_given_to_others_has_no_build_in_it_and_all_sources() {
    let files = tracked(&root()).unwrap();
    let ignore = read(".dockerignore");
    let built = ["target/debug/carto", "cli/target/x", ".git/HEAD"].map(str::to_owned);
    assert_eq!(left_by(&ignore, &built), Vec::<&str>::new());
    let left = left_by(&ignore, &files);
    for needed in [
        "Cargo.toml",
        "Cargo.lock",
        "convention-webhook-sdk/README.md",
    ] {
        assert!(left.contains(&needed), "{needed}");
    }
    let mut sources = files.iter().filter(|file| file.contains("/src/"));
    assert_eq!(sources.find(|file| !left.contains(&file.as_str())), None);
}

/// A Dockerfile and the scripts that need no container engine make the same images: of the same
/// components, for the same user, and all alike.
#[test]
fn every_component_has_its_image_in_the_dockerfile_and_all_are_alike() {
    let dockerfile = read("deploy/Dockerfile");
    let (shared, _) = dockerfile.split_once("FROM image AS ").unwrap();
    let stages: Vec<&str> = dockerfile.split("FROM image AS ").skip(1).collect();
    let names = stages.iter().map(|stage| stage.lines().next().unwrap());
    let scripts = read("hack/images/lib.sh");
    let (_, table) = scripts.split_once("COMPONENTS=(\n").unwrap();
    let rows = table.lines().take_while(|line| *line != ")");
    let components = rows.map(|row| row.trim().trim_matches('"').split('|').next().unwrap());
    assert!(components.clone().count() > 3);
    assert!(names.clone().eq(components));
    let shapes: std::collections::BTreeSet<String> = stages
        .iter()
        .zip(names)
        .map(|(stage, name)| stage.trim_end().replace(name, "NAME"))
        .collect();
    assert_eq!(shapes.len(), 1, "{shapes:#?}");
    let build = read("hack/images/build.sh");
    let (_, user) = build.split_once("RUN_AS=").unwrap();
    let user = user.lines().next().unwrap();
    assert!(shared.contains(&format!("\nUSER {user}\nENV PATH=/\n")));
    assert!(build.contains("--env PATH=/ "));
}

/// An edit of a page, or of a test, compiles nothing anew.
#[test]
fn controllers_are_built_from_no_documents_and_no_tests() {
    let files = tracked(&root()).unwrap();
    let ignore = read("deploy/Dockerfile.dockerignore");
    let left = left_by(&ignore, &files);
    let unneeded: Vec<_> = left
        .iter()
        .filter(|file| {
            Path::new(file)
                .extension()
                .is_some_and(|ending| ending == "md")
                || file.split('/').nth(1) == Some("tests")
        })
        .collect();
    assert_eq!(unneeded, [&"convention-webhook-sdk/README.md"]);
}

#[test]
fn the_terms_that_crates_may_have_are_the_same_to_both_tools_that_look_at_them() {
    let list = |path: &str, key: &str| {
        let text = read(path);
        let (_, list) = text.split_once(&format!("\n{key} = [\n")).unwrap();
        let (list, _) = list.split_once("\n]").unwrap();
        list.to_owned()
    };
    let allowed = list("deny.toml", "allow");
    assert!(allowed.contains("\"MIT\""));
    assert_eq!(list("hack/images/about.toml", "accepted"), allowed);
}
