//! `carto`: look at supply chains from the command line, and begin conventions for pods.
//!
//! [`tree`] is pure: objects in, lines or JSON out. Around it lies a thin shell: [`args`] (the command line),
//! [`cluster`] (reading and watching), [`descend`] (what is below the objects), [`trouble`] (what to do when something is missing), [`show`] (printing).
//! [`trace`] says what made outputs, [`scaffold`] writes a convention to begin with, [`render`] sends a pod through some, [`preset`] says what presets make of a pod.
//! [`migrate`] takes over from the Go controller.

pub mod args;
pub mod cluster;
pub mod descend;
pub mod follow;
pub mod migrate;
pub mod preset;
pub mod render;
pub mod scaffold;
pub mod show;
pub mod target;
pub mod trace;
pub mod tree;
pub mod trouble;

use args::{Args, Command, ConventionCommand, PresetCommand};

/// Runs one command to its end. Returns whether what was waited for came about.
///
/// # Errors
///
/// Anything that keeps the command from its work; the text says what to do next.
pub async fn run(args: Args) -> anyhow::Result<bool> {
    match args.command {
        Command::Tree(tree) => show::tree(&args.connection, &tree).await,
        Command::Trace(trace) => show::trace(&args.connection, &trace).await,
        Command::Migrate(command) => migrate::migrate(&args.connection, command).await,
        Command::Convention(ConventionCommand::New(new)) => {
            let folder = scaffold::scaffold(&new.name, &new.directory, new.sdk.as_deref())?;
            scaffold::show(&folder, new.sdk.is_none())?;
            Ok(true)
        }
        Command::Convention(ConventionCommand::Render(args)) => {
            let (images, authority) = (args.images.as_deref(), args.ca.as_deref());
            let rendered = render::render(&args.file, images, authority, &args.server).await?;
            render::show(&rendered, args.diff)?;
            Ok(true)
        }
        Command::Preset(PresetCommand::Export(export)) => {
            preset::export::export_presets(&args.connection, &export)?;
            Ok(true)
        }
        Command::Preset(PresetCommand::Explain(explain)) => {
            preset::explain_pods(&args.connection, &explain).await?;
            Ok(true)
        }
    }
}
