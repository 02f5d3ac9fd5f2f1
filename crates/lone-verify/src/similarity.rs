//! Cosines of rows, and what many of them come to.

use serde::Serialize;

/// Cosine of the angle between `a` and `b`, in f64. Rows of zeros are like each other and like nothing else; a row with
/// a number that is not finite is like nothing.
///
/// # Panics
/// If the rows differ in length.
pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len(), "rows of one width");
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    let (a_squared, b_squared) = (dot(a, a), dot(b, b));
    if !(a_squared + b_squared).is_finite() {
        return 0.0;
    }
    if a_squared == 0.0 || b_squared == 0.0 {
        return f64::from(u8::from(a_squared == b_squared));
    }
    (dot(a, b) / (a_squared * b_squared).sqrt()).clamp(-1.0, 1.0)
}

/// How alike the rows of two tables are, by their cosines.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Similarity {
    /// Over all positions.
    pub mean: f64,
    /// The least.
    pub worst: f64,
    /// Where that is.
    pub worst_position: usize,
    /// At the last position.
    pub last: f64,
}

impl Similarity {
    /// Of two tables with a row for each of `positions`, of which there is at least one.
    ///
    /// # Panics
    /// If the tables are not made of as many equal rows.
    pub fn of(positions: &[usize], a: &[f32], b: &[f32]) -> Self {
        assert_eq!(a.len(), b.len(), "tables of one shape");
        assert!(!positions.is_empty() && a.len().is_multiple_of(positions.len()), "a row for each position");
        let width = a.len() / positions.len();
        let rows = a.chunks_exact(width).zip(b.chunks_exact(width));
        let cosines: Vec<f64> = rows.map(|(a, b)| cosine(a, b)).collect();
        let worst = (0..cosines.len()).min_by(|&i, &j| cosines[i].total_cmp(&cosines[j]));
        let worst = worst.expect("there is a position");
        Similarity {
            mean: cosines.iter().sum::<f64>() / cosines.len() as f64,
            worst: cosines[worst],
            worst_position: positions[worst],
            last: cosines[cosines.len() - 1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cosine_is_that_of_the_angle() {
        assert_eq!(cosine(&[3.0, 4.0], &[6.0, 8.0]), 1.0);
        assert_eq!(cosine(&[1.0, 0.0], &[0.0, 1.0]), 0.0);
        assert_eq!(cosine(&[1.0, 2.0], &[-1.0, -2.0]), -1.0);
        assert!((cosine(&[1.0, 0.0], &[1.0, 1.0]) - 0.5f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn large_and_small_rows_neither_overflow_nor_vanish() {
        assert_eq!(cosine(&[3e38, 0.0], &[3e38, 0.0]), 1.0);
        assert_eq!(cosine(&[1e-30, 0.0], &[1e-30, 0.0]), 1.0);
    }

    #[test]
    fn zeros_are_like_zeros_and_what_is_not_finite_is_like_nothing() {
        assert_eq!(cosine(&[0.0, 0.0], &[0.0, 0.0]), 1.0);
        assert_eq!(cosine(&[0.0, 0.0], &[1.0, 0.0]), 0.0);
        assert_eq!(cosine(&[f32::NAN, 0.0], &[1.0, 0.0]), 0.0);
        assert_eq!(cosine(&[f32::INFINITY, 0.0], &[f32::INFINITY, 0.0]), 0.0);
    }

    #[test]
    fn many_rows_come_to_a_mean_a_worst_and_a_last() {
        let (a, b) = ([1.0, 0.0, 1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0, 2.0, 0.0]);
        let similarity = Similarity::of(&[4, 7, 9], &a, &b);
        assert_eq!((similarity.worst, similarity.worst_position, similarity.last), (0.0, 7, 1.0));
        assert!((similarity.mean - 2.0 / 3.0).abs() < 1e-12);
    }
}
