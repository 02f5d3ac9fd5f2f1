//! A drawing of how hidden states drift apart on their way through the network.
//!
//! ```text
//! 1 - cosine, logarithmic   |          .--worst position
//!                           |   .--'''   .--mean
//!                           |.-'  ..--'''
//!                           +------------------------
//!                            in 0 1 2 3 …  norm logits
//! ```

use std::error::Error;

use lone_bundle::LayerKind;
use lone_verify::Similarity;
use plotters::coord::combinators::LogCoord;
use plotters::coord::ranged1d::SegmentedCoord;
use plotters::coord::types::RangedCoordusize;
use plotters::prelude::*;

use super::report::{Report, kind_in_words};
use crate::failure::Failure;

const SIZE: (u32, u32) = (1000, 560);
/// Drift is not drawn below this: cosines are sums of f64 products of f32 numbers.
const LEAST_DRIFT: f64 = 1e-9;

const MEAN: RGBColor = RGBColor(0x1f, 0x4e, 0x9c);
const WORST: RGBColor = RGBColor(0xc4, 0x4e, 0x1b);
const BAR: RGBColor = RGBColor(0x70, 0x70, 0x70);
const FULL: RGBColor = RGBColor(0xdb, 0xe7, 0xf6);
const SLIDING: RGBColor = RGBColor(0xe2, 0xf2, 0xdf);

/// One place along the network.
struct Place {
    label: String,
    kind: Option<LayerKind>,
    cosine: Similarity,
}

/// Draws `report`, as SVG.
///
/// # Errors
/// If the drawing is none.
pub(super) fn drawing(report: &Report) -> Result<String, Failure> {
    let places = places(report);
    let mut svg = String::new();
    draw(&mut svg, &places, report)
        .map_err(|error| Failure::internal(format_args!("drawing failed: {error}")))?;
    Ok(svg)
}

fn places(report: &Report) -> Vec<Place> {
    let hidden = report.hidden.iter().map(|stage| Place {
        label: match stage.stage.as_str() {
            "embeddings" => "in".to_owned(),
            "final norm" => "norm".to_owned(),
            layer => layer.trim_start_matches("layer ").to_owned(),
        },
        kind: stage.kind,
        cosine: stage.cosine,
    });
    let logits = Place { label: "logits".to_owned(), kind: None, cosine: report.logits.cosine };
    hidden.chain([logits]).collect()
}

type Chart<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<SegmentedCoord<RangedCoordusize>, LogCoord<f64>>>;
type Drawn = Result<(), Box<dyn Error>>;

fn draw(svg: &mut String, places: &[Place], report: &Report) -> Drawn {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let bar = drift(report.min_cos);
    let (least, most) = extent(places, bar);
    let mut chart = ChartBuilder::on(&root)
        .caption(
            format!("{} on {}, against {}", report.model, report.backend, report.reference),
            ("sans-serif", 20),
        )
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(76)
        .build_cartesian_2d((0..places.len() - 1).into_segmented(), (least..most).log_scale())?;
    draw_bands(&mut chart, places, (least, most))?;
    draw_axes(&mut chart, places)?;
    draw_line(&mut chart, places, "worst position", WORST, |cosine| cosine.worst)?;
    draw_line(&mut chart, places, "mean over positions", MEAN, |cosine| cosine.mean)?;
    draw_bar(&mut chart, places.len(), bar, report.min_cos)?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(BAR.mix(0.4))
        .label_font(("sans-serif", 14))
        .draw()?;
    Ok(root.present()?)
}

fn drift(cosine: f64) -> f64 {
    (1.0 - cosine).max(LEAST_DRIFT)
}

/// From below the least to above the largest drift, with room for the legend.
fn extent(places: &[Place], bar: f64) -> (f64, f64) {
    let drifts = places.iter().flat_map(|place| [drift(place.cosine.mean), drift(place.cosine.worst)]);
    let (least, most) = drifts.fold((bar, bar), |(least, most), x| (least.min(x), most.max(x)));
    (least / 3.0, most * 100.0)
}

/// Layers of attention stand on a ground of their own colour.
fn draw_bands(chart: &mut Chart<'_, '_>, places: &[Place], (least, most): (f64, f64)) -> Drawn {
    for (kind, colour) in [(LayerKind::FullAttention, FULL), (LayerKind::SlidingAttention, SLIDING)] {
        let of_kind = places.iter().enumerate().filter(|(_, place)| place.kind == Some(kind));
        let bands: Vec<_> = of_kind
            .map(|(i, _)| {
                let corners = [(SegmentValue::Exact(i), least), (SegmentValue::Exact(i + 1), most)];
                Rectangle::new(corners, colour.filled())
            })
            .collect();
        if !bands.is_empty() {
            let key = move |(x, y)| Rectangle::new([(x, y - 6), (x + 22, y + 6)], colour.filled());
            chart.draw_series(bands)?.label(kind_in_words(kind)).legend(key);
        }
    }
    Ok(())
}

fn draw_axes(chart: &mut Chart<'_, '_>, places: &[Place]) -> Drawn {
    let label = |value: &SegmentValue<usize>| match value {
        SegmentValue::CenterOf(i) => places.get(*i).map_or_else(String::new, |place| place.label.clone()),
        SegmentValue::Exact(_) | SegmentValue::Last => String::new(),
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(places.len())
        .x_label_formatter(&label)
        .y_label_formatter(&|drift| format!("{drift:.0e}"))
        .x_desc("layer")
        .y_desc("1 - cosine (lower is closer)")
        .label_style(("sans-serif", 14))
        .axis_desc_style(("sans-serif", 15))
        .draw()?;
    Ok(())
}

fn draw_line(
    chart: &mut Chart<'_, '_>,
    places: &[Place],
    name: &str,
    colour: RGBColor,
    of: fn(&Similarity) -> f64,
) -> Drawn {
    let points = || {
        let places = places.iter().enumerate();
        places.map(|(i, place)| (SegmentValue::CenterOf(i), drift(of(&place.cosine))))
    };
    let key = move |(x, y)| PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(2));
    chart.draw_series(LineSeries::new(points(), colour.stroke_width(2)))?.label(name).legend(key);
    chart.draw_series(points().map(|point| Circle::new(point, 4, colour.filled())))?;
    Ok(())
}

/// Where the mean of the logits must stay below.
fn draw_bar(chart: &mut Chart<'_, '_>, places: usize, bar: f64, min_cos: f64) -> Drawn {
    let ends = [(SegmentValue::Exact(0), bar), (SegmentValue::Exact(places), bar)];
    let key = |(x, y)| PathElement::new([(x, y), (x + 22, y)], BAR.stroke_width(1));
    chart
        .draw_series(DashedLineSeries::new(ends, 5, 4, BAR.stroke_width(1)))?
        .label(format!("bar for the logits' mean: {min_cos}"))
        .legend(key);
    Ok(())
}
