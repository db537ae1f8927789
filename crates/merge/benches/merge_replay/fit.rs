//! Logistic regression by Newton's method, small and exact enough for a dozen features.

/// One case: its features, whether it held, and its weight.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) features: Vec<f64>,
    pub(crate) held: bool,
    pub(crate) weight: f64,
}

const STEPS: usize = 15;

/// The weights that explain the cases best; `ridge` keeps them small, except for the first.
pub(crate) fn fit(cases: &[Case], ridge: f64) -> Vec<f64> {
    let Some(first) = cases.first() else { return Vec::new() };
    let mut weights = vec![0.0; first.features.len()];
    for _ in 0..STEPS {
        let step = newton_step(cases, &weights, ridge);
        let largest = step.iter().fold(0.0_f64, |largest, part| largest.max(part.abs()));
        weights.iter_mut().zip(step).for_each(|(weight, part)| *weight += part);
        if largest < 1e-5 {
            break;
        }
    }
    weights.iter().map(|weight| (weight * 1e4).round() / 1e4).collect()
}

fn newton_step(cases: &[Case], weights: &[f64], ridge: f64) -> Vec<f64> {
    let size = weights.len();
    let mut rows: Vec<Vec<f64>> = vec![vec![0.0; size + 1]; size];
    for at in 0..size {
        rows[at][at] = if at == 0 { 1e-6 } else { ridge };
        rows[at][size] = if at == 0 { 0.0 } else { -ridge * weights[at] };
    }
    for Case { features, held, weight } in cases {
        let score: f64 =
            features.iter().zip(weights).map(|(feature, weight)| feature * weight).sum();
        let share = 1.0 / (1.0 + (-score.clamp(-30.0, 30.0)).exp());
        let (miss, spread) = (f64::from(u8::from(*held)) - share, share * (1.0 - share));
        for at in 0..size {
            rows[at][size] += weight * miss * features[at];
            for other in 0..size {
                rows[at][other] += weight * spread * features[at] * features[other];
            }
        }
    }
    solve(rows)
}

/// Gauss with pivots.
fn solve(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let size = rows.len();
    for at in 0..size {
        let by_size =
            |one: &usize, other: &usize| rows[*one][at].abs().total_cmp(&rows[*other][at].abs());
        let pivot = (at..size).max_by(by_size).unwrap_or(at);
        rows.swap(at, pivot);
        let upper = rows[at].clone();
        for row in rows.iter_mut().skip(at + 1) {
            let factor = row[at] / upper[at];
            row.iter_mut().zip(&upper).skip(at).for_each(|(cell, above)| *cell -= factor * above);
        }
    }
    let mut found = vec![0.0; size];
    for at in (0..size).rev() {
        let known: f64 = (at + 1..size).map(|other| rows[at][other] * found[other]).sum();
        found[at] = (rows[at][size] - known) / rows[at][at];
    }
    found
}
