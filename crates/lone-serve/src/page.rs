//! `GET /`: a page to chat on. One file, and nothing from elsewhere.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};

use crate::identity::fresh;

const PAGE: &str = include_str!("page.html");

/// The page. Only what carries this response's nonce runs in it, and it talks to nobody but this server.
pub(crate) async fn page() -> Response {
    let nonce = fresh("");
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let page = ["script", "style"].iter().fold(PAGE.to_owned(), |page, tag| {
        page.replacen(&format!("<{tag}>"), &format!("<{tag} nonce=\"{nonce}\">"), 1)
    });
    let headers: [(HeaderName, HeaderValue); 4] = [
        (header::CONTENT_SECURITY_POLICY, HeaderValue::try_from(policy).expect("letters and digits")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, Html(page)).into_response()
}
