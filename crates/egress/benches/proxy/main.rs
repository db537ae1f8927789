//! Cost of the egress proxy: bytes through a tunnel, small requests, and calls to the model, each beside a direct
//! connection and, where there is one, beside another proxy. Nothing but loopback is ever contacted.

mod model;
mod outside;
mod proxy;
mod relay;
mod request;
mod serving;
mod throughput;
mod tinyproxy;
mod way;

fn main() {
    throughput::measure();
    request::measure();
    model::measure();
}
