// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trajectories of rigid molecules: whole numbers, sums, products, quotients and square roots.

use super::Random;

/// Rigid molecules of three atoms, or of a fourth between them where the seed is even, that drift and turn from frame
/// to frame: frames, atoms and components. From a seed of 100 on some are holes.
pub fn molecules(dims: &[u64], random: &mut Random, seed: u64) -> Vec<f64> {
    const SITES: [[f64; 3]; 4] = [[0.0; 3], [0.0957, 0.0, 0.0], [-0.024, 0.0927, 0.0], [0.0105, 0.0137, 0.0]];
    let (parts, atoms) = (dims[dims.len() - 1] as usize, dims[dims.len() - 2] as usize);
    let (frames, period) = (dims[..dims.len() - 2].iter().product::<u64>(), if seed.is_multiple_of(2) { 4 } else { 3 });
    let mut step = |of: &mut [f64], by: f64| of.iter_mut().for_each(|v| *v += by * (random.unit() - 0.5));
    let mut all: Vec<([f64; 3], [f64; 4])> = vec![([2.0; 3], [0.0; 4]); atoms.div_ceil(period)];
    all.iter_mut().for_each(|(center, turn)| {
        step(center, 4.0);
        step(turn, 2.0);
    });
    let mut values = Vec::new();
    for _ in 0..frames {
        for i in 0..atoms {
            let (center, turn) = all[i / period];
            let length = turn.iter().map(|q| q * q).sum::<f64>().sqrt();
            let [w, x, y, z] = turn.map(|q| q / length);
            let [a, b, _] = SITES[i % period];
            let place = [
                center[0] + a * (1.0 - 2.0 * (y * y + z * z)) + b * 2.0 * (x * y - w * z),
                center[1] + a * 2.0 * (x * y + w * z) + b * (1.0 - 2.0 * (x * x + z * z)),
                center[2] + a * 2.0 * (x * z - w * y) + b * 2.0 * (y * z + w * x),
                center[0] - center[1],
            ];
            values.extend(&place[..parts]);
        }
        all.iter_mut().for_each(|(center, turn)| {
            step(center, 0.05);
            step(turn, 0.3);
        });
    }
    let is_hole = |i: usize| seed >= 100 && i % 89 == 88;
    values.iter().enumerate().map(|(i, &x)| if is_hole(i) { f64::NAN } else { x }).collect()
}

/// Rigid molecules of whole numbers that turn by quarters and mirror themselves from frame to frame: distances are the
/// same to the bit, atoms lie on lines, in planes and at right angles. Of the seed's digits the last one says how large
/// they are, the one before how many atoms they have, and an odd one before that lets some places be one off. From a
/// seed of 1000 on they are rods.
pub fn crystals(dims: &[u64], random: &mut Random, seed: u64) -> Vec<f64> {
    const SIZES: [i64; 10] = [1, 2, 3, 5, 8, 13, 40, 1000, 1_000_000, 300_000_000];
    let [frames, atoms, parts] = [0, 1, 2].map(|k| dims[k] as usize);
    let [size, period, off] = [1, 10, 100].map(|unit| (seed / unit % 10) as usize);
    let size = SIZES[size];
    let mut any = |size: i64| random.below(2 * size as usize + 1) as i64 - size;
    let mut sites: Vec<[i64; 3]> = (0..period).map(|_| [0; 3].map(|_| any(size))).collect();
    if seed >= 1000 {
        let rod = sites[0];
        for site in &mut sites {
            let along = any(4);
            *site = rod.map(|k| along * (k / 4));
        }
    }
    let mut centers = vec![[0; 3]; atoms.div_ceil(period)];
    let mut values = Vec::new();
    for _ in 0..frames {
        for center in &mut centers {
            *center = center.map(|c| (c + any(size)) % (4 * size));
            let (first, mirror) = ((any(1) + 1) as usize, any(4) + 4);
            for site in &sites {
                let place = [0, 1, 2].map(|k| {
                    let noise = if off % 2 == 1 && any(5) == 5 { any(1) } else { 0 };
                    center[k] + site[(k + first) % 3] * (1 - 2 * (mirror >> k & 1)) + noise
                });
                values.extend(place[..parts].iter().map(|&x| x as f64));
            }
        }
    }
    values
}
