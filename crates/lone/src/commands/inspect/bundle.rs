//! A bundle: model, programs, caches, sizes on disk, and whether its files are what was written.

use std::fmt;
use std::path::Path;

use lone_bundle::{
    Bundle, DamagedFile, FileDamage, Graph, GraphFunction, GraphKind, LayerKind, ModelFacts, Placement,
    Provenance, Role,
};
use serde::Serialize;

use super::Report;
use super::package::{OpCounts, PackageReport, PortReport};
use super::placement;
use crate::bundle::{damaged_files, not_as_written};
use crate::failure::Failure;
use crate::quantity::{Bytes, counted};
use crate::ui::Ui;

/// What a bundle holds.
#[derive(Debug, Serialize)]
pub(super) struct BundleReport {
    bundle: String,
    schema: u32,
    /// Of all its files.
    bytes: u64,
    model: ModelFacts,
    graphs: Vec<GraphReport>,
    embeddings: FileReport,
    caches: CacheReport,
    provenance: Provenance,
    /// Where it runs, if a Mac has been asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<Placement>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<CheckReport>,
}

#[derive(Debug, Serialize)]
struct GraphReport {
    package: String,
    kind: GraphKind,
    /// Of the whole package.
    bytes: u64,
    functions: Vec<ShapeReport>,
}

#[derive(Debug, Serialize)]
struct ShapeReport {
    name: String,
    role: Role,
    tokens: usize,
    ctx: usize,
    inputs: Vec<PortReport>,
    outputs: Vec<PortReport>,
    ops: OpCounts,
}

#[derive(Debug, Serialize)]
struct FileReport {
    file: String,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct CacheReport {
    /// What each further token of context costs.
    bytes_per_token: u64,
    /// What a session costs, by context length.
    sessions: Vec<SessionReport>,
}

#[derive(Debug, Serialize)]
struct SessionReport {
    ctx: usize,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct CheckReport {
    files: usize,
    changed: Vec<ChangedFile>,
}

#[derive(Debug, Serialize)]
struct ChangedFile {
    path: String,
    #[serde(flatten)]
    damage: Damage,
}

/// How a file is not as written.
#[derive(Debug, Serialize)]
#[serde(tag = "damage", rename_all = "lowercase")]
enum Damage {
    Missing,
    Size { expected_bytes: u64, found_bytes: u64 },
    Hash { expected_blake3: String, found_blake3: String },
}

impl BundleReport {
    /// Opens the bundle and every package in it; with `check`, hashes every file, and opens what is undamaged.
    pub(super) fn of(dir: &Path, check: bool, ui: &Ui) -> Result<Self, Failure> {
        let bundle = if check { Bundle::open_description(dir)? } else { Bundle::open(dir)? };
        let check = if check { Some(CheckReport::of(&bundle, dir, ui)?) } else { None };
        let changed = |graph: &Graph| {
            let inside = format!("{}/", graph.package);
            check
                .as_ref()
                .is_some_and(|check| check.changed.iter().any(|file| file.path.starts_with(&inside)))
        };
        // A package that is known to be damaged may not open; the check has named the file, which says more.
        let graphs = bundle.graphs.iter().filter(|graph| !changed(graph));
        let graphs = graphs.map(|graph| GraphReport::of(&bundle, graph, dir)).collect::<Result<_, _>>()?;
        let sessions =
            bundle.contexts().into_iter().map(|ctx| SessionReport { ctx, bytes: bundle.cache_bytes(ctx) });
        Ok(BundleReport {
            bundle: dir.display().to_string(),
            schema: bundle.schema,
            bytes: bundle.files.iter().map(|file| file.bytes).sum(),
            graphs,
            embeddings: FileReport {
                bytes: bytes_within(&bundle, &bundle.embeddings.file),
                file: bundle.embeddings.file.clone(),
            },
            caches: CacheReport {
                bytes_per_token: bundle.cache_bytes_per_token(),
                sessions: sessions.collect(),
            },
            model: bundle.model,
            provenance: bundle.provenance,
            placement: bundle.placement,
            check,
        })
    }

    /// The outcome of `--check`.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let changed = self.check.as_ref().map_or(&[][..], |check| &check.changed);
        if changed.is_empty() {
            return Ok(());
        }
        Err(not_as_written(&self.bundle, changed.iter().map(|file| file.path.as_str())).into())
    }
}

impl GraphReport {
    fn of(bundle: &Bundle, graph: &Graph, dir: &Path) -> Result<Self, Failure> {
        let package = PackageReport::of(&dir.join(&graph.package))?;
        let mut functions = Vec::new();
        for function in package.functions {
            let shape = graph.functions.iter().find(|shape| shape.name == function.name);
            let shape: &GraphFunction = shape.ok_or_else(|| {
                Failure::user(format_args!(
                    "{}: bundle.json does not list function `{}`",
                    graph.package, function.name
                ))
            })?;
            functions.push(ShapeReport {
                name: function.name,
                role: shape.role,
                tokens: shape.tokens,
                ctx: shape.ctx,
                inputs: function.inputs,
                outputs: function.outputs,
                ops: function.ops,
            });
        }
        Ok(GraphReport {
            package: graph.package.clone(),
            kind: graph.kind,
            bytes: bytes_within(bundle, &graph.package),
            functions,
        })
    }
}

/// Bytes of the file at `path`, or of all files in the directory of that name.
fn bytes_within(bundle: &Bundle, path: &str) -> u64 {
    let within =
        |file: &str| file == path || file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    bundle.files.iter().filter(|file| within(&file.path)).map(|file| file.bytes).sum()
}

impl CheckReport {
    fn of(bundle: &Bundle, dir: &Path, ui: &Ui) -> Result<Self, Failure> {
        let changed =
            damaged_files(bundle, dir, ui)?.into_iter().map(|DamagedFile { path, damage }| ChangedFile {
                path,
                damage: match damage {
                    FileDamage::Missing => Damage::Missing,
                    FileDamage::Size { expected, found } => {
                        Damage::Size { expected_bytes: expected, found_bytes: found }
                    }
                    FileDamage::Hash { expected, found } => {
                        Damage::Hash { expected_blake3: expected, found_blake3: found }
                    }
                },
            });
        Ok(CheckReport { files: bundle.files.len(), changed: changed.collect() })
    }

    fn print(&self, ui: &Ui) -> Result<(), Failure> {
        if self.changed.is_empty() {
            return ui.line(format_args!("\nAll {} are as written.", counted(self.files, "file")));
        }
        ui.heading("\nNot as written")?;
        for file in &self.changed {
            ui.line(format_args!("  {}  {}", file.path, file.damage))?;
        }
        Ok(())
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Missing => write!(f, "is missing"),
            Damage::Size { expected_bytes, found_bytes } => {
                write!(f, "has {found_bytes} bytes, expected {expected_bytes}")
            }
            Damage::Hash { .. } => write!(f, "has another hash"),
        }
    }
}

impl Report for BundleReport {
    fn print(&self, ui: &Ui) -> Result<(), Failure> {
        ui.heading(format_args!("{} ({})", self.model.name, self.model.model_type))?;
        ui.line(format_args!("  bundle       {}, {}", self.bundle, Bytes(self.bytes)))?;
        print_model(&self.model, ui)?;
        ui.heading("\nPrograms")?;
        for graph in &self.graphs {
            graph.print(ui)?;
        }
        ui.line(format_args!("  {}  {}", self.embeddings.file, Bytes(self.embeddings.bytes)))?;
        ui.heading("\nCaches")?;
        ui.line(format_args!("  each token of context costs {}", Bytes(self.caches.bytes_per_token)))?;
        for session in &self.caches.sessions {
            ui.line(format_args!("  a session of {} tokens costs {}", session.ctx, Bytes(session.bytes)))?;
        }
        ui.heading("\nProvenance")?;
        ui.line(format_args!("  converted by lone {}", self.provenance.lone_version))?;
        ui.line(format_args!("  checkpoint   blake3 {}", self.provenance.source_hash))?;
        for (flag, value) in self.provenance.flags.iter().filter(|(_, value)| !value.is_null()) {
            ui.line(format_args!("  {flag:<20} {value}"))?;
        }
        if let Some(placement) = &self.placement {
            placement::print(placement, ui)?;
        }
        self.check.as_ref().map_or(Ok(()), |check| check.print(ui))
    }
}

impl GraphReport {
    fn print(&self, ui: &Ui) -> Result<(), Failure> {
        let content = match self.kind {
            GraphKind::Chunk { layers } => format!("layers {} to {}", layers.start, layers.end() - 1),
            GraphKind::Head { vocabulary } => {
                format!("vocabulary {} to {}", vocabulary.start, vocabulary.end() - 1)
            }
        };
        ui.line(format_args!("  {}  {content}, {}", self.package, Bytes(self.bytes)))?;
        let ports = |ports: &[PortReport]| {
            let ports: Vec<String> = ports.iter().map(|port| format!("{} {}", port.name, port.ty)).collect();
            ports.join(", ")
        };
        let ops: Vec<String> = self.functions.iter().map(|function| function.ops.line()).collect();
        for (index, function) in self.functions.iter().enumerate() {
            let shape = counted(function.tokens, "token");
            let context =
                if function.ctx > 0 { format!(", context {}", function.ctx) } else { String::new() };
            ui.line(format_args!("    {}: {shape}{context}", function.name))?;
            ui.line(format_args!("      in   {}", ports(&function.inputs)))?;
            ui.line(format_args!("      out  {}", ports(&function.outputs)))?;
            // All shapes of a graph usually have the same operations.
            if index == 0 || ops[index] != ops[index - 1] {
                ui.line(format_args!("      ops  {}", ops[index]))?;
            }
        }
        Ok(())
    }
}

fn print_model(model: &ModelFacts, ui: &Ui) -> Result<(), Failure> {
    let count = |kind| model.layers.iter().filter(|layer| **layer == kind).count();
    let window = model.sliding_window.map_or_else(String::new, |window| format!(" of window {window}"));
    let layers = [
        (count(LayerKind::Conv), "convolution".to_owned()),
        (count(LayerKind::FullAttention), "full attention".to_owned()),
        (count(LayerKind::SlidingAttention), format!("sliding attention{window}")),
    ];
    let layers = layers.iter().filter(|(count, _)| *count > 0).map(|(count, kind)| format!("{count} {kind}"));
    ui.line(format_args!("  parameters   {}", model.parameters))?;
    ui.line(format_args!(
        "  layers       {}: {}",
        model.layers.len(),
        layers.collect::<Vec<_>>().join(", ")
    ))?;
    ui.line(format_args!("  widths       hidden {}, feed-forward {}", model.hidden_size, model.ffn_size))?;
    ui.line(format_args!(
        "  attention    {} heads of {}, {} for keys and values",
        model.heads, model.head_dim, model.kv_heads
    ))?;
    ui.line(format_args!("  convolution  {} taps", model.conv_taps))?;
    ui.line(format_args!("  vocabulary   {}", model.vocab_size))?;
    ui.line(format_args!("  made for     {} positions", model.max_positions))
}
