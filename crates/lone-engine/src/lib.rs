//! lone-engine
