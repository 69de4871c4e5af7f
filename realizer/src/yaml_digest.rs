//! (module yaml_digest)
