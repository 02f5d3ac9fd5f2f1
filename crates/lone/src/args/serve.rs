//! `lone serve`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

use super::{SetupArgs, SourceArgs, number};

const EXAMPLES: &str = "\
Examples:
  lone serve --model demo
  lone serve --bundle bundles/lfm3-1.7b --parallel 4 --cache-bytes 4GB
  LONE_API_KEY=secret lone serve --bundle bundles/lfm3-1.7b --host 0.0.0.0 --log-format json
  curl -s localhost:8082/v1/chat/completions -H 'Content-Type: application/json' \\
    -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}'";

const ADDRESS: &str = "Address";
const REQUESTS: &str = "Requests";
const ACCESS: &str = "Access";
const LOG: &str = "Log";

/// Answer requests over HTTP, by OpenAI's API
///
/// docs/api.md lists every address and field. `GET /` is a page to chat on. Ctrl-C lets the answers that are being given come to
/// their end; a second one does not.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    /// Name the model goes by, instead of its own; may be given several times
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), help_heading = ADDRESS)]
    pub(crate) alias: Vec<String>,

    /// Address to listen at; 0.0.0.0 is all of this machine's
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", help_heading = ADDRESS)]
    pub(crate) host: IpAddr,

    /// Port to listen at; 0 takes one that is free
    #[arg(long, value_name = "PORT", default_value_t = 8082, help_heading = ADDRESS)]
    pub(crate) port: u16,

    /// Requests answered at the same time, a token of each in turn
    #[arg(long, value_name = "REQUESTS", default_value_t = 1, value_parser = number::parallel, allow_negative_numbers = true)]
    #[arg(help_heading = REQUESTS)]
    pub(crate) parallel: usize,

    /// Requests that may wait besides; more are refused
    #[arg(long, value_name = "REQUESTS", default_value_t = 64, value_parser = number::count, allow_negative_numbers = true)]
    #[arg(help_heading = REQUESTS)]
    pub(crate) queue: usize,

    /// Memory for what was read before, so that a chat that grows is not read again; each of --parallel has its cache anyway
    #[arg(long, value_name = "SIZE", default_value = "1GB", value_parser = number::bytes, allow_negative_numbers = true)]
    #[arg(help_heading = REQUESTS)]
    pub(crate) cache_bytes: u64,

    /// Time for an answer, waiting included
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = number::seconds, allow_negative_numbers = true)]
    #[arg(help_heading = REQUESTS)]
    pub(crate) request_timeout: u64,

    /// Time for answers to come to their end when the server is to stop
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = number::seconds, allow_negative_numbers = true)]
    #[arg(help_heading = REQUESTS)]
    pub(crate) shutdown_timeout: u64,

    /// Time for the head of a request to arrive, and for a connection to lie idle
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = number::seconds, allow_negative_numbers = true)]
    #[arg(help_heading = REQUESTS)]
    pub(crate) idle_timeout: u64,

    /// Largest body of a request
    #[arg(long, value_name = "SIZE", default_value = "8MB", value_parser = number::bytes, allow_negative_numbers = true)]
    #[arg(help_heading = REQUESTS)]
    pub(crate) body_limit: u64,

    /// Connections at the same time; more wait
    #[arg(long, value_name = "CONNECTIONS", default_value_t = 1024, value_parser = number::connections, allow_negative_numbers = true)]
    #[arg(help_heading = REQUESTS)]
    pub(crate) max_connections: usize,

    /// Key that requests must carry; may be given several times. Others on this machine can see it: prefer
    /// --api-key-file or LONE_API_KEY
    #[arg(long, value_name = "KEY", value_parser = NonEmptyStringValueParser::new(), help_heading = ACCESS)]
    pub(crate) api_key: Vec<String>,

    /// File with keys, one a line
    #[arg(long, value_name = "FILE", help_heading = ACCESS)]
    pub(crate) api_key_file: Option<PathBuf>,

    /// Origin whose pages may use the server, such as `https://example.org`, or `*` for all; may be given several times
    #[arg(long, value_name = "ORIGIN", value_parser = origin, help_heading = ACCESS)]
    pub(crate) cors_origin: Vec<String>,

    /// What is logged, to stderr; never what was asked or answered
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = LogLevel::Info, help_heading = LOG)]
    pub(crate) log_level: LogLevel,

    /// How it is logged
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text, help_heading = LOG)]
    pub(crate) log_format: LogFormat,

    #[command(flatten)]
    pub(crate) setup: SetupArgs,
}

/// An origin as browsers write it: scheme, host and perhaps port, and nothing after them.
fn origin(text: &str) -> Result<String, String> {
    let is_host = |host: &str| {
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte))
    };
    let is_scheme =
        |scheme: &str| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    match text.split_once("://") {
        Some((scheme, host)) if !scheme.is_empty() && is_scheme(scheme) && is_host(host) => {
            Ok(text.to_ascii_lowercase())
        }
        _ if text == "*" => Ok(text.to_owned()),
        _ => Err("must be * or an origin, such as https://example.org, with no path behind it".to_owned()),
    }
}

/// The choices of `--log-level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// What went wrong
    Error,
    /// What may go wrong
    Warn,
    /// Every request and what it cost
    Info,
    /// Every connection that broke
    Debug,
}

/// The choices of `--log-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line of text for each
    Text,
    /// A JSON object for each
    Json,
}
