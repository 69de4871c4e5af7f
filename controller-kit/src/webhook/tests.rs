mod pki;
mod review;
mod tls;
