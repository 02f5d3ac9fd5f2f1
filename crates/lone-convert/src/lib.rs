//! lone-convert
