//! What tests share: the real parts, started on demand and always taken down.
//!
//! ```text
//!  test ──► ControlPlane ──► etcd, kube-apiserver, (kube-controller-manager)   real binaries, own folder, own ports
//!    │          ▲  ▲
//!    │          │  └─ FluxSourceController ──► GitServer (git http-backend), OciRegistry (crane); FluxKustomizeController
//!    │          ├──── Lent: of a test that has ended, for the next one; each Stage has such a one
//!    │          └──── shared_control_plane(): one for a whole test binary; LossyProxy, which loses its replies; BlackHole
//!    ├──► DockerRegistry (docker-registry) ◄── TestImage
//!    └──► eventually("what is awaited", limit, probe)
//! ```
//!
//! The binaries come from `make control-plane`. A test that needs one **fails** when it is missing; it never skips.
//! Every process is held by a [`Process`], which ends it on drop, after a panic, and when the test itself is killed.

pub mod admission_corpus;
pub mod assets;
pub mod audit;
mod black_hole;
pub mod control_plane;
mod dice;
mod docker_registry;
pub mod eventually;
pub mod flux;
mod generated;
pub mod git_server;
mod growth;
pub mod image_context;
mod key_pair;
mod lossy_proxy;
mod manifests;
pub mod node;
mod objects;
mod observe;
pub mod oci_registry;
mod pki;
mod ports;
pub mod process;
mod scrape;
mod scratch;
mod shared;
pub mod stage;
mod test_image;
pub mod worked_example;
mod wrong_clock;

pub use assets::{Assets, AssetsError, assets};
pub use audit::{AuditEvent, AuditLog};
pub use black_hole::BlackHole;
pub use control_plane::{
    CONTROLLERS_NAMESPACE, ControlPlane, ControlPlaneBuilder, MANIFESTS, PRESET_WEBHOOKS,
    service_account,
};
pub use dice::Dice;
pub use docker_registry::{DockerRegistry, DockerRegistryBuilder, RegistryRequest};
pub use eventually::{Observation, eventually};
pub use flux::{FluxKustomizeController, FluxSourceController};
pub use generated::{hold_generated, table_row};
pub use git_server::GitServer;
pub use growth::takes_about_ten_times_as_long;
pub use key_pair::{TestAuthority, TestKeyPair};
pub use lossy_proxy::{Disturbance, LossyProxy};
pub use manifests::{as_yaml, documents, yaml_files};
pub use node::Node;
pub use objects::{all_objects, objects_in};
pub use observe::{Change, Observed, observe};
pub use oci_registry::OciRegistry;
pub use ports::free_port;
pub use process::{Process, ProcessBuilder, Usage};
pub use scrape::{http_get, sum_of};
pub use scratch::Scratch;
pub use shared::shared_control_plane;
pub use stage::Stage;
pub use test_image::{PushedImage, PushedIndex, TestImage};
pub use wrong_clock::WrongClock;
