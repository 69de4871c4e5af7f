mod ca_bundle;
mod mutating;
mod pki;
mod review;
mod self_managed;
mod tls;
mod verdicts;
