//! lone-lfm
