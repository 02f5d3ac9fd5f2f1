//! lone-cpu
