//! `make demo`, as somebody uses it who wants to look around.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use test_support::{Process, Scratch, eventually};

/// For the whole story, which takes some ten seconds on an idle machine.
const STORY: Duration = Duration::from_mins(10);
/// For the clean-up.
const END: Duration = Duration::from_mins(3);

#[tokio::test]
async fn what_the_demo_prints_works_and_ctrl_c_leaves_nothing_behind() {
    let home = Scratch::new("carto-demo-test-").unwrap();
    let temporary = home.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut demo = Process::builder(env!("CARGO_BIN_EXE_demo"))
        .arg("--keep")
        .env("TMPDIR", &temporary)
        .start(home.path().join("demo.log"))
        .unwrap();
    let printed = eventually("the demo keeps everything running", STORY, async || {
        let printed = std::fs::read_to_string(demo.log()).unwrap();
        assert!(demo.is_running(), "it ended early:\n{printed}");
        let told = printed.contains("Ctrl-C here stops everything");
        told.then_some(printed)
    })
    .await;

    // The second half was shown, or the demo said why not, before it began to wait.
    let second_half = [
        "Left out: examples/full-path",
        "From a commit to a running Pod",
    ];
    assert!(
        second_half.iter().any(|told| printed.contains(told)),
        "{printed}"
    );
    for line in ["  you saw   ", "  try       ", "  read on   "] {
        assert_eq!(printed.matches(line).count(), 1, "{line:?} in:\n{printed}");
    }

    let seen = in_another_terminal(&printed, home.path());
    for object in [
        "workload.carto.run/web-app",
        "gitrepository.source.toolkit.fluxcd.io/web-app",
        "deployment.apps/web-app",
    ] {
        assert!(seen.contains(object), "{object} is not in:\n{seen}");
    }
    assert!(
        seen.contains("workload dev/web-app is ready"),
        "carto tree says:\n{seen}"
    );
    assert!(!running_with(&temporary).is_empty());
    assert!(!left_in(&temporary).is_empty());

    demo.signal("INT").unwrap();
    eventually("the demo has ended", END, async || !demo.is_running()).await;
    let log = demo.log_tail();
    assert!(log.contains("stopped, everything is cleaned up"), "{log}");
    eventually("no process is left", END, async || {
        let left = running_with(&temporary);
        anyhow::ensure!(left.is_empty(), "{left:#?}");
        anyhow::Ok(())
    })
    .await;
    assert_eq!(left_in(&temporary), Vec::<String>::new());
}

/// Runs what the demo says can be run in another terminal, but for what does not end. The home is for what kubectl remembers.
fn in_another_terminal(printed: &str, home: &Path) -> String {
    let (_, hints) = printed.split_once("In another terminal:\n").unwrap();
    let commands: Vec<&str> = hints
        .lines()
        .take_while(|line| line.starts_with("  "))
        .filter(|line| !line.contains("kubectl edit"))
        .collect();
    let script = commands.join("\n").replace(" --watch", "");
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &script])
        .env("HOME", home)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{script}\n{text}");
    text
}

/// The command lines of all processes with this temporary folder in their environment, which whatever the demo starts
/// inherits, and whatever that starts.
fn running_with(temporary: &Path) -> Vec<String> {
    let mark = format!("TMPDIR={}", temporary.display());
    let read = |process: &Path, file| std::fs::read(process.join(file)).unwrap_or_default();
    let processes = std::fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|process| {
            let environment = read(process, "environ");
            environment
                .split(|&byte| byte == 0)
                .any(|variable| variable == mark.as_bytes())
        })
        .map(|process| String::from_utf8_lossy(&read(&process, "cmdline")).replace('\0', " "))
        .collect()
}

fn left_in(temporary: &Path) -> Vec<String> {
    std::fs::read_dir(temporary)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}
