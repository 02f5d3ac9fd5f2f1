//! What the precision rules must buy on the simulated engine, and how near its losses must be to the measured ones.

use xtask::ane_table::{Form, Report, Row};

/// How far from 1 a cosine is: what is lost.
fn loss(cosine: f64) -> f64 {
    1.0 - cosine
}

#[test]
fn rules_restore_what_the_engine_loses() {
    let Report { rows, calibration } = Report::compute().unwrap();
    for Row { name, broken, restored, fault, without_fault, .. } in rows {
        let Form { cosine, measured, .. } = broken;
        let ratio = loss(cosine) / loss(measured);
        assert!((1.0 / 3.0..3.0).contains(&ratio), "{name} loses {ratio} times what was measured: {cosine}");
        assert!(restored.cosine >= restored.measured, "{name}: {} < {}", restored.cosine, restored.measured);
        assert!(loss(without_fault) < loss(cosine) / 10.0, "{name} loses {without_fault} without `{fault}`");
    }
    let chosen = calibration.cosines.iter().find(|(start, ..)| *start == 4096).unwrap();
    for &(start, nearest, toward_zero) in &calibration.cosines {
        assert!(loss(nearest) < loss(0.9972) / 10.0, "to the nearest after {start}: {nearest}");
        let distance = |cosine: f64| (cosine - 0.9972).abs();
        assert!(distance(chosen.2) <= distance(toward_zero), "toward zero after {start}: {toward_zero}");
    }
}
