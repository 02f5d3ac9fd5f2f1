//! `lone serve`: OpenAI's API over HTTP.

mod log;

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use lone_bundle::Bundle;
use lone_engine::{Runtime, Scheduler, SchedulerOptions};
use lone_serve::{ServeOptions, ServedModel, Server};

use super::Context;
use crate::args::ServeArgs;
use crate::bundle::{self, BundleSource};
use crate::failure::{Failure, UserError};
use crate::source::CheckpointDir;
use crate::{backend, energy, placement, quantity, speculation};

/// Serves the model in `args` until it is interrupted.
///
/// # Errors
/// As the model, the backend and the address have it. Ctrl-C is no error: it is how serving ends.
pub(crate) fn execute(args: &ServeArgs, context: &Context) -> Result<(), Failure> {
    let mut source = BundleSource::resolve(&args.source, &args.setup.conversion)?;
    let speculation = speculation::resolve(&args.setup.speculation)?;
    speculation::prepare(speculation, &mut source)?;
    let backend = backend::choose(&args.setup.engine, context)?;
    let options = options(args, context)?;
    // Taken first, so that an address in use is said before the weights are loaded.
    let listener = listen(SocketAddr::new(args.host, args.port))?;
    context.watch_for_interrupts();
    let dir = source.directory(context, check_readable)?;
    let bundle = Bundle::open(&dir)?;
    let tokenizer = bundle::tokenizer(&dir)?.ok_or_else(|| no_tokenizer(&bundle.model.name))?;

    placement::warn(&bundle, backend.name(), args.setup.engine.units, &context.ui);
    // Its idle level is measured before anything is computed.
    let meter = energy::open(&context.environment).ok();
    let runtime = Runtime::load(&dir, backend.as_ref(), &args.setup.session.load_options())?;
    let scheduling = SchedulerOptions {
        parallel: args.parallel,
        queue: args.queue,
        session: args.setup.session.options(),
        cache_bytes: args.cache_bytes,
        proposers: speculation.map(speculation::Speculation::proposers),
    };
    let scheduler = Scheduler::start(runtime, Some(tokenizer.clone()), &scheduling)?;
    let ctx = scheduler.ctx();
    let model = ServedModel::open(&dir, &bundle, tokenizer, args.alias.clone(), ctx)?;

    log::start(args.log_level, args.log_format);
    if !args.host.is_loopback() && options.api_keys.is_empty() {
        context.ui.warn("anybody who reaches this address can use the model: no --api-key was given");
    }
    let address = listener.local_addr().map_err(|error| Failure::Internal(error.into()))?;
    let caches = quantity::Bytes(scheduler.load().session_bytes);
    context.ui.line(format_args!("serving {} on http://{address}", bundle.model.name))?;
    context.ui.note(format_args!("context {ctx} tokens, {} backend, caches {caches}", backend.name()));
    let server = Server::new(model, scheduler, args.parallel, options).with_meter(meter);
    let interrupt = context.interrupt.clone();
    lone_serve::serve(listener, server, move || interrupt.is_raised())
        .map_err(|error| Failure::user(format_args!("cannot serve: {error}")))
}

fn options(args: &ServeArgs, context: &Context) -> Result<ServeOptions, Failure> {
    let api_keys = api_keys(args, context)?;
    Ok(ServeOptions {
        cors_origins: args.cors_origin.clone(),
        guards_origin: args.host.is_loopback() && api_keys.is_empty(),
        api_keys,
        most_body_bytes: usize::try_from(args.body_limit).unwrap_or(usize::MAX),
        most_connections: args.max_connections,
        request_timeout: Duration::from_secs(args.request_timeout),
        idle_timeout: Duration::from_secs(args.idle_timeout),
        shutdown_timeout: Duration::from_secs(args.shutdown_timeout),
        ..ServeOptions::default()
    })
}

/// Keys from flags, from a file and from the environment, all of which count.
fn api_keys(args: &ServeArgs, context: &Context) -> Result<Vec<String>, Failure> {
    let mut keys = args.api_key.clone();
    if let Some(path) = &args.api_key_file {
        let text = std::fs::read_to_string(path)
            .map_err(|error| UserError::new(format_args!("cannot read {}: {error}", path.display())))?;
        let before = keys.len();
        keys.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
        if keys.len() == before {
            return Err(UserError::new(format_args!("{} holds no key", path.display())).into());
        }
    }
    // One that is no text is still a key, which the server must not do without.
    keys.extend(context.environment.get("LONE_API_KEY").map(|key| key.to_string_lossy().into_owned()));
    match keys.iter().all(|key| key.bytes().all(|byte| byte.is_ascii_graphic())) {
        true => Ok(keys),
        // Which one it is, is not said: it is a secret.
        false => {
            Err(UserError::new("a key has a space or a character beyond ASCII, which no request can send")
                .into())
        }
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener, UserError> {
    TcpListener::bind(address).map_err(|error| {
        let refusal = UserError::new(format_args!("cannot listen at {address}: {error}"));
        match error.kind() {
            std::io::ErrorKind::AddrInUse => refusal.with_hint("--port 0 takes a port that is free"),
            _ => refusal,
        }
    })
}

fn check_readable(checkpoint: &CheckpointDir) -> Result<(), Failure> {
    match checkpoint.dir.join("tokenizer.json").is_file() {
        true => Ok(()),
        false => Err(no_tokenizer(&checkpoint.name).into()),
    }
}

fn no_tokenizer(model: &str) -> UserError {
    UserError::new(format_args!("{model} has no tokenizer, so it cannot be served"))
}
