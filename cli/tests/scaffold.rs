//! `carto convention new`.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cli::scaffold::{Library, ScaffoldError, rendered, scaffold};
use test_support::image_context::{Copy, copies, copy_files, is_whole, left_by, tracked};

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap().to_owned()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    output
}

/// With the versions of our own lock file, so that nothing has to be fetched, and our target
/// folder, so that little is built.
#[test]
fn the_crate_that_is_written_compiles_and_its_test_passes() {
    let folder = tempfile::tempdir().unwrap();
    let sdk = root().join("convention-webhook-sdk");
    let mut carto = Command::new(env!("CARGO_BIN_EXE_carto"));
    carto
        .args(["convention", "new", "time-zone", "--sdk"])
        .arg(sdk);
    let told = run(carto.arg("--directory").arg(folder.path())).stdout;
    let made = folder.path().join("time-zone");
    let told = String::from_utf8(told).unwrap();
    assert!(
        told.contains(&format!("cd {} && cargo test", made.display())),
        "{told}"
    );

    fs::copy(root().join("Cargo.lock"), made.join("Cargo.lock")).unwrap();
    // The binary is in `target/debug`.
    let target = Path::new(env!("CARGO_BIN_EXE_carto"))
        .ancestors()
        .nth(2)
        .unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--offline"]).current_dir(&made);
    // What is looked at is whether it passes, not where it would not.
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0");
    let output = run(cargo.env("CARGO_TARGET_DIR", target));
    let told = String::from_utf8(output.stdout).unwrap();
    let passed = "test every_container_gets_a_time_zone_unless_it_has_one ... ok";
    assert!(told.contains(passed), "{told}");
}

#[test]
fn names_that_are_none_are_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let long = "a".repeat(51);
    for name in [
        "", "A", "1a", "-a", "a-", "a_b", "a/b", "..", "ä", "a b", "a\nb", &long,
    ] {
        let error = scaffold(name, folder.path(), None).unwrap_err();
        assert!(matches!(error, ScaffoldError::Name(_)), "{name}: {error}");
    }
    for name in ["match", "test", "tokio", "convention-webhook-sdk"] {
        let error = scaffold(name, folder.path(), None).unwrap_err();
        assert!(
            error.to_string().contains(&format!("{name}-convention")),
            "{error}"
        );
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_is_there_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("mine");
    fs::write(&there, "mine").unwrap();
    let error = scaffold("mine", folder.path(), None).unwrap_err();
    assert!(matches!(error, ScaffoldError::Exists(_)), "{error}");
    assert_eq!(fs::read_to_string(there).unwrap(), "mine");
}

#[test]
fn a_library_that_is_somewhere_else_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for sdk in [folder.path().to_owned(), root().join("cli")] {
        let error = scaffold("mine", folder.path(), Some(&sdk)).unwrap_err();
        assert!(matches!(error, ScaffoldError::Sdk(_)), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn without_a_folder_of_the_library_the_published_one_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let made = scaffold("mine", folder.path(), None).unwrap();
    let manifest = fs::read_to_string(made.join("Cargo.toml")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let line = format!("convention-webhook-sdk = {{ version = \"{version}\" }}");
    assert!(manifest.contains(&line), "{manifest}");
}

#[test]
fn names_stand_everywhere_and_no_placeholder_is_left() {
    let sdk = root().join("convention-webhook-sdk");
    for library in [Library::published(), Library::in_folder(&sdk).unwrap()] {
        for (path, text) in rendered("my-own", &library) {
            assert!(!text.contains('@'), "{path}");
        }
    }
}

/// Of the files that the image is built from, as Docker would lay them out.
#[test]
fn an_image_is_built_from_the_crate_and_the_workspace_of_the_library() {
    let files = tracked(&root()).unwrap();
    let ignore = fs::read_to_string(root().join(".dockerignore")).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    // A folder that words and variables would be made of.
    let clone = elsewhere.path().join("my $HOME");
    copy_files(&root(), &left_by(&ignore, &files), &clone).unwrap();
    let clone = clone.canonicalize().unwrap();
    let sdk = clone.join("convention-webhook-sdk");
    let made = scaffold("mine", elsewhere.path(), Some(&sdk)).unwrap();
    fs::copy(root().join("Cargo.lock"), made.join("Cargo.lock")).unwrap();

    let dockerfile = fs::read_to_string(made.join("Dockerfile")).unwrap();
    let target = clone.display().to_string();
    let command = format!("docker build --build-context 'carto={target}' -t REGISTRY/mine:0.1.0 .");
    assert!(dockerfile.contains(&command), "{dockerfile}");
    let copy = |from: Option<&str>, target: String| Copy {
        from: from.map(str::to_owned),
        sources: vec![".".to_owned()],
        target,
    };
    let target = target.replace('$', "\\$");
    let expected = [copy(Some("carto"), target), copy(None, ".".to_owned())];
    assert_eq!(copies(&dockerfile).unwrap(), expected);

    let whole = is_whole(&made).unwrap();
    let packages = whole["packages"].as_array().unwrap();
    let library = packages
        .iter()
        .find(|it| it["name"] == "convention-webhook-sdk");
    let manifest = library.unwrap()["manifest_path"].as_str().unwrap();
    assert_eq!(Path::new(manifest), sdk.join("Cargo.toml"));
}

#[test]
fn the_readme_has_the_commands_for_the_chart_and_the_image() {
    let sdk = root().join("convention-webhook-sdk");
    let library = Library::in_folder(&sdk).unwrap();
    let readme = |library: &Library| {
        let mut all = rendered("mine", library);
        all.find(|(path, _)| *path == "README.md").unwrap().1
    };
    let clone = root().canonicalize().unwrap().display().to_string();
    let ours = readme(&library);
    for command in [
        format!("docker build --build-context carto={clone} -t REGISTRY/mine:0.1.0 .\n"),
        format!(
            "helm upgrade --install mine {clone}/deploy/charts/convention-webhook --namespace mine --create-namespace --values values.yaml\n"
        ),
    ] {
        assert!(ours.contains(&command), "{ours}");
    }
    let published = readme(&Library::published());
    assert!(published.contains("docker build -t REGISTRY/mine:0.1.0 .\n"));
    assert!(published.contains("helm upgrade --install mine CARTO/deploy/charts/"));
    assert!(published.contains("`CARTO` is a clone"));
}

#[test]
fn a_clone_of_the_repository_is_as_good_as_the_folder_in_it() {
    let files = |folder: &Path| {
        let library = Library::in_folder(folder).unwrap();
        rendered("mine", &library).collect::<Vec<_>>()
    };
    assert_eq!(
        files(&root()),
        files(&root().join("convention-webhook-sdk"))
    );
}

#[test]
fn a_folder_to_write_in_that_is_not_there_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let error = scaffold("mine", &folder.path().join("no"), None).unwrap_err();
    assert!(error.to_string().contains("--directory"), "{error}");
}

/// What the examples are brought to a cluster with is what everybody gets.
#[test]
fn examples_have_the_manifests_of_a_new_convention() {
    for name in ["add-env", "dumper", "security-baseline", "spring-boot"] {
        let folder = root().join("examples/conventions").join(name);
        let file = folder.join("manifests.yaml");
        let mut rendered = rendered(name, &Library::published());
        let (_, manifests) = rendered
            .find(|(path, _)| *path == "manifests.yaml")
            .unwrap();
        let expected = match name {
            // It shows what the controller has, before others changed it.
            "dumper" => {
                manifests.replace("spec:\n  webhook:", "spec:\n  priority: Early\n  webhook:")
            }
            _ => manifests,
        };
        assert_eq!(fs::read_to_string(&file).unwrap(), expected, "{name}");
    }
}
