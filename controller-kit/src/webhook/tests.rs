mod pki;
mod review;
mod tls;
mod verdicts;
