//! What the API server knows of types beyond their fields, and the definitions that schemas are generated from do not say.
//!
//! A test asks a real API server for its own document and finds the same there.

/// Something about a type or a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Facet {
    /// The items of the list differ by these keys.
    ListBy(&'static [&'static str]),
    /// The items of the list differ.
    Set,
    /// The object is written as a whole.
    Atomic,
    /// This text is filled in.
    Default(&'static str),
    /// `false` is filled in.
    DefaultFalse,
}

use Facet::{Atomic, Default, DefaultFalse, ListBy, Set};

/// Kind, field (empty for the kind itself) and facet.
pub(crate) const FACETS: [(&str, &str, Facet); 51] = [
    ("AzureDiskVolumeSource", "cachingMode", Default("ReadWrite")),
    ("AzureDiskVolumeSource", "fsType", Default("ext4")),
    ("AzureDiskVolumeSource", "kind", Default("Shared")),
    ("AzureDiskVolumeSource", "readOnly", DefaultFalse),
    ("ConfigMapEnvSource", "name", Default("")),
    ("ConfigMapKeySelector", "", Atomic),
    ("ConfigMapKeySelector", "name", Default("")),
    ("ConfigMapProjection", "name", Default("")),
    ("ConfigMapVolumeSource", "name", Default("")),
    ("Container", "env", ListBy(&["name"])),
    ("Container", "ports", ListBy(&["containerPort", "protocol"])),
    ("Container", "volumeDevices", ListBy(&["devicePath"])),
    ("Container", "volumeMounts", ListBy(&["mountPath"])),
    ("ContainerPort", "protocol", Default("TCP")),
    ("ContainerRestartRuleOnExitCodes", "values", Set),
    ("EphemeralContainer", "env", ListBy(&["name"])),
    (
        "EphemeralContainer",
        "ports",
        ListBy(&["containerPort", "protocol"]),
    ),
    (
        "EphemeralContainer",
        "volumeDevices",
        ListBy(&["devicePath"]),
    ),
    ("EphemeralContainer", "volumeMounts", ListBy(&["mountPath"])),
    ("FileKeySelector", "", Atomic),
    ("FileKeySelector", "optional", DefaultFalse),
    ("GRPCAction", "service", Default("")),
    ("ISCSIVolumeSource", "iscsiInterface", Default("default")),
    ("LabelSelector", "", Atomic),
    ("LocalObjectReference", "", Atomic),
    ("LocalObjectReference", "name", Default("")),
    ("NodeSelector", "", Atomic),
    ("NodeSelectorTerm", "", Atomic),
    ("ObjectFieldSelector", "", Atomic),
    ("PodSpec", "containers", ListBy(&["name"])),
    ("PodSpec", "ephemeralContainers", ListBy(&["name"])),
    ("PodSpec", "hostAliases", ListBy(&["ip"])),
    ("PodSpec", "imagePullSecrets", ListBy(&["name"])),
    ("PodSpec", "initContainers", ListBy(&["name"])),
    ("PodSpec", "nodeSelector", Atomic),
    ("PodSpec", "resourceClaims", ListBy(&["name"])),
    ("PodSpec", "schedulingGates", ListBy(&["name"])),
    (
        "PodSpec",
        "topologySpreadConstraints",
        ListBy(&["topologyKey", "whenUnsatisfiable"]),
    ),
    ("PodSpec", "volumes", ListBy(&["name"])),
    ("RBDVolumeSource", "keyring", Default("/etc/ceph/keyring")),
    ("RBDVolumeSource", "pool", Default("rbd")),
    ("RBDVolumeSource", "user", Default("admin")),
    ("ResourceFieldSelector", "", Atomic),
    ("ResourceRequirements", "claims", ListBy(&["name"])),
    ("ScaleIOVolumeSource", "fsType", Default("xfs")),
    (
        "ScaleIOVolumeSource",
        "storageMode",
        Default("ThinProvisioned"),
    ),
    ("SecretEnvSource", "name", Default("")),
    ("SecretKeySelector", "", Atomic),
    ("SecretKeySelector", "name", Default("")),
    ("SecretProjection", "name", Default("")),
    ("TypedLocalObjectReference", "", Atomic),
];

/// What is known of a kind, by field.
pub(super) fn of(kind: &str) -> impl Iterator<Item = (&'static str, &'static Facet)> {
    let facets = FACETS.iter().filter(move |(of, ..)| *of == kind);
    facets.map(|(_, field, facet)| (*field, facet))
}
