//! How the demo speaks.
#![expect(clippy::print_stdout, reason = "this is what the demo is for")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::IsTerminal as _;

use api_types::{ConditionStatus, ConditionType};
use cli::tree::{Colors, Step, Tree, render};
use tokio::time::Instant;

/// Lines with the time since the beginning.
pub(crate) struct Story {
    begun: Instant,
    colors: Colors,
    /// Steps that were told to be ready.
    told: RefCell<BTreeSet<String>>,
}

impl Story {
    pub(crate) fn begin() -> Self {
        let colors = if std::io::stdout().is_terminal() {
            Colors::On
        } else {
            Colors::Off
        };
        Self {
            begun: Instant::now(),
            colors,
            told: RefCell::default(),
        }
    }

    pub(crate) fn chapter(&self, title: &str) {
        match self.colors {
            Colors::On => println!("\n\u{1b}[1m{title}\u{1b}[0m"),
            Colors::Off => println!("\n{title}"),
        }
    }

    pub(crate) fn line(&self, text: &str) {
        println!("{:6.1} s  {text}", self.begun.elapsed().as_secs_f64());
    }

    #[expect(clippy::unused_self, reason = "one way to speak")]
    pub(crate) fn plain(&self, text: &str) {
        println!("{text}");
    }

    pub(crate) fn tree(&self, tree: &Tree) {
        for line in render(tree, self.colors) {
            println!("{line}");
        }
    }

    /// Tells every step that has become ready since the last call.
    pub(crate) fn new_steps(&self, tree: &Tree) {
        for step in tree.steps.iter().filter(|step| is_ready(step)) {
            if self.told.borrow_mut().insert(step.name.clone()) {
                self.line(&format!("step {:8} is ready: {}", step.name, made(step)));
            }
        }
    }
}

fn is_ready(step: &Step) -> bool {
    step.condition(ConditionType::Ready)
        .is_some_and(|ready| ready.status == ConditionStatus::True)
}

fn made(step: &Step) -> String {
    let object = step.object.as_ref().map_or_else(String::new, |object| {
        format!(
            "{}/{}",
            object.kind.as_deref().unwrap_or_default(),
            object.name.as_deref().unwrap_or_default()
        )
    });
    let output = step.outputs.last().map_or_else(String::new, |output| {
        format!(", {} = {}", output.name, output.first_line())
    });
    format!("{object}{output}")
}
