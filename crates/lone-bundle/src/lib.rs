//! lone-bundle
