//! `lone bench`: how fast models run here, beside how fast memory can be read and numbers multiplied.
//!
//! Those limits are measured first and again whenever all arms have had a turn, so that one minute's machine is compared
//! with the same minute's.

mod arm;
mod chart;
mod csv;
mod html;
mod memory;
mod report;
mod statistics;
mod table;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use lone_cpu::bandwidth::Memory;
use lone_cpu::{CpuBackend, CpuOptions, Isa, Pages, Pool, arithmetic, cores};
use lone_engine::NgramSimple;
use lone_mil::Backend;

use super::{Context, save};
use crate::args::{AnePreset, BackendChoice, BenchArgs, EngineArgs, SourceArgs};
use crate::bundle::BundleSource;
use crate::failure::{Failure, UserError};
use crate::{backend, energy, speculation};
use arm::{Arm, Workload};
use report::Report;

/// Measures the bundles in `args`.
///
/// # Errors
/// As bundles and the backend have it; [`Failure::Interrupted`] after Ctrl-C.
pub(crate) fn execute(args: &BenchArgs, context: &Context) -> Result<(), Failure> {
    context.watch_for_interrupts();
    let work = Workload::new(&args.prompt_tokens, args.decoded, args.spec);
    // What cannot compute here is said before anything is fetched or converted.
    let backends = backends(args, context)?;
    let bundles = bundles(args, context)?;
    let isa = args.isa.unwrap_or_else(Isa::detect);
    let pages = if args.huge_pages { Pages::Huge } else { Pages::Usual };
    let memory = Memory::new(pages, isa)
        .map_err(|error| UserError::new(format_args!("no memory to read: {error}")))?;
    let mut limits: Vec<Limits<'_>> =
        thread_counts(args).into_iter().map(|threads| Limits::new(&memory, isa, threads)).collect();
    let mut meter = energy::open(&context.environment).ok();
    let mut arms = Vec::new();
    for setting in &backends {
        for dir in &bundles {
            arms.push(Arm::load(dir, setting, &work)?);
        }
    }
    for turn in 1..=args.repeat {
        limits.iter_mut().for_each(Limits::measure);
        for arm in &mut arms {
            if context.interrupt.is_raised() {
                return Err(Failure::Interrupted("no measurement is complete".into()));
            }
            context.ui.note(format_args!("turn {turn} of {}: {}", args.repeat, arm.name()));
            arm.take_turn(&work, meter.as_mut())?;
        }
    }
    show(&Report::new(args, pages, &arms, &limits), args, context)
}

fn show(report: &Report, args: &BenchArgs, context: &Context) -> Result<(), Failure> {
    // First, so that no measurement is lost to a path that cannot be written.
    if args.json {
        context.ui.json(report)?;
    } else if args.csv {
        context.ui.write(&csv::lines(report))?;
    } else {
        table::print(report, &context.ui)?;
    }
    args.html.as_ref().map_or(Ok(()), |path| Ok(save(path, &html::page(report))?))
}

/// The bundles that were named, and that of the checkpoint.
fn bundles(args: &BenchArgs, context: &Context) -> Result<Vec<PathBuf>, Failure> {
    let mut sources: Vec<SourceArgs> =
        args.bundle.iter().map(|dir| SourceArgs { bundle: Some(dir.clone()), model: None }).collect();
    sources.extend(args.model.clone().map(|model| SourceArgs { bundle: None, model: Some(model) }));
    let resolve = |source: &SourceArgs| {
        let mut resolved = BundleSource::resolve(source, &args.conversion)?;
        if let BundleSource::Converted(_, options) = &mut resolved
            && args.spec
        {
            speculation::widen(options, NgramSimple::USUAL_M)?;
        }
        Ok(resolved)
    };
    let resolved: Vec<BundleSource> = sources.iter().map(resolve).collect::<Result<_, Failure>>()?;
    resolved.iter().map(|source| source.directory(context, |_| Ok(()))).collect()
}

fn thread_counts(args: &BenchArgs) -> Vec<NonZeroUsize> {
    let asked: Vec<_> = args.threads.iter().filter_map(|&threads| NonZeroUsize::new(threads)).collect();
    if asked.is_empty() { vec![cores::physical_cores()] } else { asked }
}

/// Who computes, and how.
struct Setting {
    backend: Box<dyn Backend>,
    /// Of the CPU backend.
    threads: Option<usize>,
    fast_int16: bool,
}

/// The backend that was asked for, once for each number of threads and each way to compute if these matter to it.
fn backends(args: &BenchArgs, context: &Context) -> Result<Vec<Setting>, UserError> {
    let (backend, units) = (backend::resolve(args.backend, args.units, context)?, args.units);
    if args.fast_int16 {
        backend::check_fast_int16(backend, args.isa.unwrap_or_else(Isa::detect))?;
    }
    if backend != BackendChoice::Cpu {
        if let Some(isa) = args.isa {
            let what = format_args!("--isa {isa} is for the CPU backend, which is not what computes here");
            return Err(UserError::new(what).with_hint("--backend cpu"));
        }
        let engine = EngineArgs {
            backend,
            threads: None,
            huge_pages: false,
            fast_int16: false,
            ane_preset: AnePreset::M1,
            units,
        };
        let backend = backend::choose(&engine, context)?;
        return Ok(vec![Setting { backend, threads: None, fast_int16: false }]);
    }
    let cpu = |threads: NonZeroUsize, fast_int16: bool| {
        let options = CpuOptions {
            threads: Some(threads),
            profile: args.shows_profile(),
            huge_pages: args.huge_pages,
            isa: args.isa,
            fast_int16,
            ..CpuOptions::default()
        };
        Setting { backend: Box::new(CpuBackend::new(options)), threads: Some(threads.get()), fast_int16 }
    };
    let ways = if args.fast_int16 { &[false, true][..] } else { &[false] };
    let settings = |threads| ways.iter().map(move |&fast_int16| cpu(threads, fast_int16));
    Ok(thread_counts(args).into_iter().flat_map(settings).collect())
}

/// How fast some threads read memory, and multiply and add.
struct Limits<'a> {
    memory: &'a Memory,
    isa: Isa,
    pool: Pool,
    bytes_per_second: Vec<f64>,
    /// A multiply-add is two.
    flops_per_second: Vec<f64>,
}

impl<'a> Limits<'a> {
    /// Readings of each in a turn.
    const READINGS: usize = 5;

    fn new(memory: &'a Memory, isa: Isa, threads: NonZeroUsize) -> Self {
        let pool = Pool::new(threads);
        Limits { memory, isa, pool, bytes_per_second: Vec::new(), flops_per_second: Vec::new() }
    }

    fn measure(&mut self) {
        for _ in 0..Self::READINGS {
            self.bytes_per_second.push(self.memory.bytes_per_second(&self.pool));
            self.flops_per_second.push(2.0 * arithmetic::multiply_adds_per_second(&self.pool, self.isa));
        }
    }
}
