//! lone-testing
