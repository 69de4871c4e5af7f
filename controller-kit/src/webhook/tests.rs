mod ca_bundle;
mod pki;
mod review;
mod self_managed;
mod tls;
mod verdicts;
