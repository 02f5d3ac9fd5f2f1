//! lone-mil
