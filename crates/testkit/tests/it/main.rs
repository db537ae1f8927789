//! Tests that need the machine: the abuse kit against boxes and against no box at all, and the model server.

mod abuse;
mod model_server;
