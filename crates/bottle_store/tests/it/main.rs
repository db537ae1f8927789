//! The store on a real server of S3.

mod s3;
