//! Charts as SVG, drawn by hand: lines over a horizontal axis, and bars of stacked parts.

use std::fmt::Write;

/// Told apart with all kinds of colour vision (Okabe and Ito's palette, and two more).
const COLOURS: [&str; 10] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5b5b5b", "#f0e442", "#b0b0b0",
    "#8b4513",
];

const WIDTH: f64 = 720.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;

/// A named run of points.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<[f64; 2]>,
}

/// A named bar of parts, each with its name.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) parts: Vec<(String, f64)>,
}

/// Lines over `x`, both axes from zero.
pub(super) fn lines(x: &str, y: &str, lines: &[Line]) -> String {
    const HEIGHT: f64 = 320.0;
    const BOTTOM: f64 = 45.0;
    const TOP: f64 = 15.0;
    let points = || lines.iter().flat_map(|line| &line.points);
    let most = |axis: usize| round_up(points().map(|point| point[axis]).fold(0.0, f64::max));
    let (most_x, most_y) = (most(0), most(1));
    let across = |value: f64| LEFT + value / most_x * (WIDTH - LEFT - RIGHT);
    let up = |value: f64| HEIGHT - BOTTOM - value / most_y * (HEIGHT - BOTTOM - TOP);
    let mut svg = open(HEIGHT);
    for i in 0..=4 {
        let (at_x, at_y) = (most_x * f64::from(i) / 4.0, most_y * f64::from(i) / 4.0);
        let (left, right, level) = (LEFT, WIDTH - RIGHT, up(at_y));
        draw(
            &mut svg,
            format_args!(r#"<line class="grid" x1="{left}" x2="{right}" y1="{level:.1}" y2="{level:.1}"/>"#),
        );
        text(&mut svg, [LEFT - 8.0, level + 4.0], "end", &number(at_y));
        text(&mut svg, [across(at_x), HEIGHT - BOTTOM + 18.0], "middle", &number(at_x));
    }
    text(&mut svg, [(LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 6.0], "middle", x);
    text(&mut svg, [LEFT, TOP - 3.0], "start", y);
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let path: Vec<String> =
            line.points.iter().map(|p| format!("{:.1},{:.1}", across(p[0]), up(p[1]))).collect();
        let path = path.join(" ");
        draw(
            &mut svg,
            format_args!(r#"<polyline fill="none" stroke="{colour}" stroke-width="2" points="{path}"/>"#),
        );
        for point in &line.points {
            let (cx, cy, value) = (across(point[0]), up(point[1]), number(point[1]));
            draw(
                &mut svg,
                format_args!(
                    r#"<circle cx="{cx:.1}" cy="{cy:.1}" r="4" fill="{colour}"><title>{value}</title></circle>"#
                ),
            );
        }
    }
    svg += "</svg>\n";
    svg + &legend(lines.iter().map(|line| line.name.as_str()))
}

/// A bar for each of `bars`, `whole` being as long as there is room.
pub(super) fn bars(bars: &[Bar], whole: f64, unit: &str) -> String {
    const THICKNESS: f64 = 26.0;
    const PITCH: f64 = 54.0;
    let mut svg = open(PITCH * bars.len() as f64 + 10.0);
    let mut names: Vec<&str> = Vec::new();
    for (number_of_bar, bar) in bars.iter().enumerate() {
        let top = PITCH * number_of_bar as f64 + 22.0;
        let total: f64 = bar.parts.iter().map(|(_, value)| value).sum();
        text(&mut svg, [0.0, top - 7.0], "start", &format!("{}: {}{unit}", bar.name, number(total)));
        let full = WIDTH - RIGHT;
        draw(
            &mut svg,
            format_args!(r#"<rect class="whole" x="0" y="{top}" width="{full}" height="{THICKNESS}"/>"#),
        );
        let mut left = 0.0;
        for (name, value) in &bar.parts {
            let known = names.iter().position(|known| known == name);
            let colour = COLOURS[known.unwrap_or(names.len()) % COLOURS.len()];
            if known.is_none() {
                names.push(name);
            }
            let (width, label) = (value / whole * full, format!("{name}: {}{unit}", number(*value)));
            let label = escaped(&label);
            draw(
                &mut svg,
                format_args!(
                    r#"<rect x="{left:.1}" y="{top}" width="{width:.1}" height="{THICKNESS}" fill="{colour}"><title>{label}</title></rect>"#
                ),
            );
            left += width;
        }
    }
    svg += "</svg>\n";
    if names.len() > 1 { svg + &legend(names.into_iter()) } else { svg }
}

fn open(height: f64) -> String {
    format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\">\n")
}

fn draw(svg: &mut String, element: std::fmt::Arguments<'_>) {
    writeln!(svg, "{element}").expect("writing to a string");
}

fn text(svg: &mut String, [x, y]: [f64; 2], anchor: &str, text: &str) {
    let text = escaped(text);
    draw(svg, format_args!(r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#));
}

fn legend<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let entry = |(name, colour): (&str, &&str)| {
        format!("<li><i style=\"background:{colour}\"></i>{}</li>", escaped(name))
    };
    let entries: String = names.zip(COLOURS.iter().cycle()).map(entry).collect();
    format!("<ul class=\"legend\">{entries}</ul>\n")
}

/// The next number above that divides well into four.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.max(f64::MIN_POSITIVE).log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|&step| step >= value).unwrap_or(10.0 * power)
}

/// Three digits at most behind those that matter.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        ..0.1 => format!("{value:.3}"),
        ..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// As text in HTML or an attribute.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_a_round_number_above_everything() {
        let table = [(0.9, 1.0), (1.0, 1.0), (17.3, 20.0), (480.0, 600.0), (0.034, 0.04)];
        for (value, end) in table {
            assert!((round_up(value) - end).abs() < 1e-12, "{value}: {}", round_up(value));
        }
    }

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let bars = bars(&[Bar { name: "<b>".into(), parts: vec![("\"x\"".into(), 1.0)] }], 2.0, " %");
        assert!(bars.contains("&lt;b&gt;: 1.0 %") && bars.contains("&quot;x&quot;") && !bars.contains("<b>"));
    }

    #[test]
    fn a_line_reaches_from_corner_to_corner_if_its_values_do() {
        let line = Line { name: "a".into(), points: vec![[0.0, 0.0], [100.0, 10.0]] };
        let svg = lines("x", "y", &[line]);
        assert!(svg.contains("points=\"60.0,275.0 700.0,15.0\""), "{svg}");
    }
}
