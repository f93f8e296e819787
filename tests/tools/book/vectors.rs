// SPDX-License-Identifier: MIT OR Apache-2.0
//! Written from codecs/src/codec/dense/FORMAT.md, §4.5: plain, slow, and without a look at the crate.

use super::super::{Refusal, need, number};
use super::{Coder, Head, bin, magnitude};

type Vector = [i32; 4];
type Real = [f64; 3];

fn minus(v: Vector, w: Vector) -> Vector {
    [0, 1, 2, 3].map(|k| v[k].wrapping_sub(w[k]))
}

fn plus(v: Vector, w: Vector) -> Vector {
    [0, 1, 2, 3].map(|k| v[k].wrapping_add(w[k]))
}

fn real(v: Vector) -> Real {
    [0, 1, 2].map(|k| f64::from(v[k]))
}

fn dot(v: Real, w: Real) -> f64 {
    v[0] * w[0] + v[1] * w[1] + v[2] * w[2]
}

fn cross(v: Real, w: Real) -> Real {
    [v[1] * w[2] - v[2] * w[1], v[2] * w[0] - v[0] * w[2], v[0] * w[1] - v[1] * w[0]]
}

/// M of the document.
fn cut(n: i64) -> i64 {
    magnitude(n.min(i64::from(i32::MAX)) as u32).into()
}

fn size(v: Vector) -> i64 {
    cut(v.iter().map(|x| i64::from(x.unsigned_abs())).sum())
}

fn length(v: Vector) -> i64 {
    let [x, y, z, w] = v.map(f64::from);
    (16.0 * (x * x + y * y + z * z + w * w).sqrt()).floor() as i64
}

fn round(x: f64) -> i32 {
    // `as` brings it into the range.
    (x + 0.5).floor() as i32
}

/// The bin of G of the document.
fn bin_of_square(x: f64) -> usize {
    if x < 1.0 {
        return bin(0);
    }
    let e = (0..).take_while(|&e| 2f64.powi(e) <= x).last().unwrap_or(0);
    let part = (128.0 * (x / 2f64.powi(e) - 1.0)).floor() as u32;
    bin(((128 * e as u32 + part) / 2).min(3983))
}

fn root(x: f64) -> f64 {
    x.max(0.0).sqrt()
}

#[derive(Clone, Copy, Default)]
struct Estimates {
    errors: [Option<i64>; 4],
    /// For the lags 1, 2, 3: length and deviation.
    lags: [Option<(i64, i64)>; 3],
}

impl Estimates {
    fn of(old: Self, role: Self) -> Self {
        let error = |k: usize| match (old.errors[k], role.errors[k]) {
            (Some(old), Some(role)) => Some((3 * old + role) / 4),
            (old, role) => old.or(role),
        };
        let lag = |k: usize| match (old.lags[k], role.lags[k]) {
            (Some((l, d)), Some((m, e))) if (l - m).abs() <= 32 + 2 * d.min(e) => Some(((l + m) / 2, (d + e) / 2)),
            (Some((l, d)), Some((_, e))) => Some((l, d.max(e))),
            (old, role) => old.or(role),
        };
        Estimates { errors: [0, 1, 2, 3].map(error), lags: [0, 1, 2].map(lag) }
    }

    fn error(&mut self, k: usize, v: Vector) {
        let x = 16 * size(v);
        self.errors[k] = Some(self.errors[k].map_or(x, |e| e + ((5 * (x - e)) >> 4)));
    }

    fn length(&mut self, lag: usize, v: Vector) {
        let x = length(v);
        self.lags[lag - 1] = Some(match self.lags[lag - 1] {
            None => (x, x / 2),
            Some((l, d)) => match (x - l).abs() {
                y if y > 128 + 6 * d => (x, y.min(x)),
                y => (l + ((x - l) >> 2), d + ((3 * (y - d)) >> 3)),
            },
        });
    }
}

#[derive(Clone, Copy)]
enum Way {
    Distance,
    Sphere,
    Circle,
    Point,
    Error(usize),
    Unknown,
}

/// The lags of an atom as the choice finds them: the first, and the rigid ones behind it.
#[derive(Default)]
struct Lags {
    first: usize,
    rigid: Vec<usize>,
}

/// The table of *Choice*, by the number of components.
fn choice(known: &Estimates, components: usize) -> (Way, Lags) {
    let (mut rows, mut lags) = (Vec::new(), Lags::default());
    let of = |lag: usize| known.lags[lag - 1];
    if let Some((l, first)) = (1..=3).filter_map(|k| of(k).map(|(l, _)| (l, k))).min() {
        let mut rigid: Vec<(i64, usize)> =
            (1..=3).filter_map(|k| of(k).filter(|&(_, d)| 6 * d < l).map(|(_, d)| (d, k))).collect();
        rigid.sort_unstable();
        let n = |k: usize| of(k).map_or(0, |(_, d)| cut(d).max(32));
        let of_first = rigid.iter().any(|r| r.1 == first) && components == 3;
        lags = Lags { first, rigid: rigid.into_iter().map(|r| r.1).filter(|&k| k != first).collect() };
        rows.push((3 * cut(l) + 24, Way::Distance));
        if of_first {
            rows.push((2 * cut(l) + n(first) + 39, Way::Sphere));
        }
        if let (true, [second, ..]) = (of_first, &lags.rigid[..]) {
            rows.push((cut(l) + 2 * n(first).max(n(*second)) + 41, Way::Circle));
        }
        if let (true, [_, third]) = (of_first, &lags.rigid[..]) {
            rows.push((3 * n(first).max(n(*third)) + 54, Way::Point));
        }
    }
    rows.extend((0..4).filter_map(|k| known.errors[k].map(|e| (3 * (e / 16) + 114, Way::Error(k)))));
    // `min_by_key` takes the first of equals.
    (rows.into_iter().min_by_key(|row| row.0).map_or(Way::Unknown, |row| row.1), lags)
}

/// An atom while it is decoded.
struct Atom<'a, 'b> {
    coder: &'a mut Coder<'b>,
    components: usize,
    known: Estimates,
    lags: Lags,
    /// The frame before this one, or the part of this one where roles are; which atom of it is this one.
    likes: (&'a [Vector], usize),
    /// This frame up to this atom.
    frame: &'a [Vector],
    v: Vector,
}

impl Atom<'_, '_> {
    fn number(&mut self, group: usize, bin: usize) -> Result<i32, Refusal> {
        self.coder.number(64 * group + bin)
    }

    /// Component k, less a guess; answers the magnitude of what was coded.
    fn component(&mut self, k: usize, context: (usize, usize), guess: i32) -> Result<i64, Refusal> {
        let c = self.number(context.0, context.1)?;
        self.v[k] = c.wrapping_add(guess);
        Ok(magnitude(c.unsigned_abs()).into())
    }

    fn error(&mut self, e: i64) -> Result<(), Refusal> {
        let (g0, mut m) = (e / 16, [0; 4]);
        for k in 0..self.components {
            let g = match k {
                0 => g0,
                1 => (g0 + m[0]) / 2,
                _ => (g0 + (m[k - 1] + m[k - 2]) / 2) / 2,
            };
            m[k] = self.component(k, (12 + k.min(2), bin(16 * g as u32)), 0)?;
        }
        Ok(())
    }

    /// The length of a lag as a real, and the vector to its atom from that of the first one.
    fn lag(&self, lag: usize) -> (f64, Real) {
        let at = |k: usize| self.frame[self.frame.len() - k];
        let (l, _) = self.known.lags[lag - 1].expect("a known lag");
        (l as f64 / 16.0, real(minus(at(lag), at(self.lags.first))))
    }

    /// 8 · κ.
    fn steady(&self, lags: &[usize]) -> usize {
        let k = lags.iter().filter_map(|&k| self.known.lags[k - 1]).map(|(_, d)| d).max();
        8 * (cut(k.unwrap_or(0)) / 8 - 2).clamp(0, 7) as usize
    }

    fn part(&self, y: f64) -> usize {
        let (r, _) = self.lag(self.lags.first);
        [0.125, 0.25, 0.5, 0.75].iter().filter(|&&step| y >= step * r).count()
    }

    /// Of the first components; answers R.
    fn distance(&mut self, components: usize) -> Result<f64, Refusal> {
        let (r, _) = self.lag(self.lags.first);
        let mut rest = r * r;
        for k in 0..components {
            self.component(k, (15 + k.min(2), bin_of_square(rest)), 0)?;
            rest -= f64::from(self.v[k]) * f64::from(self.v[k]);
        }
        Ok(rest)
    }

    fn sphere(&mut self) -> Result<(), Refusal> {
        let rho = root(self.distance(2)?);
        let n = round(rho);
        let s = if n >= 1 { self.number(23, 16)? } else { 1 };
        let c = self.number(18, self.steady(&[self.lags.first]) + self.part(rho))?;
        self.v[2] = c.wrapping_add(n).wrapping_mul(s);
        Ok(())
    }

    fn circle(&mut self) -> Result<(), Refusal> {
        let second = self.lags.rigid[0];
        let steady = self.steady(&[self.lags.first, second]);
        let ((r, _), (r2, u)) = (self.lag(self.lags.first), self.lag(second));
        let [x, y, z] = u;
        let b = dot(u, u).max(1.0);
        let alpha = (r * r + b - r2 * r2) / 2.0;
        let omega = (r * r - alpha * alpha / b).max(0.0) * (1.0 - x * x / b).max(0.0);
        self.component(0, (19, bin_of_square(omega)), round(alpha * x / b))?;
        let x_of_v = f64::from(self.v[0]);
        let g = (y * y + z * z).sqrt().max(1.0);
        let rest = r * r - x_of_v * x_of_v;
        let alpha = (alpha - x_of_v * x) / g;
        let h = root(rest - alpha * alpha);
        let (y0, z0) = match self.number(23, 17)? {
            0.. => ((alpha * y - h * z) / g, (alpha * z + h * y) / g),
            _ => ((alpha * y + h * z) / g, (alpha * z - h * y) / g),
        };
        self.component(1, (20, steady + self.part(h)), round(y0))?;
        let y_of_v = f64::from(self.v[1]);
        let (guess, steep) = if (z * y0).abs() < (z0 * y).abs() || z.abs() < 4.0 {
            let rho = root(rest - y_of_v * y_of_v);
            (if z0 < 0.0 { -rho } else { rho }, if rho < 1.0 { 16.0 } else { y0.abs() / rho })
        } else {
            (z0 - (y_of_v - y0) * y / z, (y / z).abs())
        };
        let steps = [0.5, 1.0, 2.0, 4.0].iter().filter(|&&step| steep >= step).count();
        self.component(2, (21, steady + steps), round(guess))?;
        Ok(())
    }

    fn point(&mut self) -> Result<(), Refusal> {
        let (first, second, third) = (self.lags.first, self.lags.rigid[0], self.lags.rigid[1]);
        let ((r, _), (r2, u), (r3, w)) = (self.lag(first), self.lag(second), self.lag(third));
        let (a, c, d) = (dot(u, u), dot(u, w), dot(w, w));
        let delta = a * d - c * c;
        if delta <= 0.02 * (a * d) {
            return self.circle();
        }
        let (alpha, beta) = ((r * r + a - r2 * r2) / 2.0, (r * r + d - r3 * r3) / 2.0);
        let (by_u, by_w) = ((alpha * d - beta * c) / delta, (beta * a - alpha * c) / delta);
        let foot = [0, 1, 2].map(|k| by_u * u[k] + by_w * w[k]);
        let eta = r * r - dot(foot, foot);
        let mut sigma = 0.0;
        if eta >= 4.0 + 0.002 * (r * r) {
            let (frame, i) = self.likes;
            let lay = |lag: usize| real(minus(frame[i - lag], frame[i - first]));
            let hand = dot(cross(lay(second), lay(third)), lay(0));
            sigma = if hand < 0.0 { -(eta / delta).sqrt() } else { (eta / delta).sqrt() };
        }
        let normal = cross(u, w);
        let guess = [0, 1, 2].map(|k| round(foot[k] + sigma * normal[k]));
        let steady = self.steady(&[first, second, third]);
        let x = self.component(0, (22, steady), guess[0])?;
        let y = self.component(1, (22, steady + 1 + (x / 8).min(3) as usize), guess[1])?;
        self.component(2, (22, steady + 5 + ((x + y) / 16).min(2) as usize), guess[2])?;
        Ok(())
    }
}

/// *Time*: T or B of an atom, by two weights.
fn in_time(before: &[Vec<Vector>], i: usize, weights: &[i64]) -> Vector {
    let step = |k: usize| match before.len() {
        t if t > k => minus(before[t - k][i], before[t - k - 1][i]),
        _ => [0; 4],
    };
    let (s1, s2) = (step(1).map(i64::from), step(2).map(i64::from));
    plus(
        before[before.len() - 1][i],
        [0, 1, 2, 3].map(|k| ((weights[0] * s1[k] + weights[1] * s2[k] + 32) >> 6) as i32),
    )
}

/// The quanta of a tile.
pub fn quanta(head: &Head, extents: [usize; 3], bytes: &[u8]) -> Result<Vec<i32>, Refusal> {
    let [frames, atoms, components] = extents;
    let weights = head.weights.ok_or("dense: vectors without weights")?;
    need((2..=4).contains(&components), "dense: components of vectors")?;
    let period = number(bytes, 0, 2)? as usize;
    need((1..=16).contains(&period), "dense: a period")?;
    let mut coder = Coder::new(head, &bytes[2..])?;
    let (mut q, mut old): (Vec<Vec<Vector>>, _) = (Vec::new(), vec![Estimates::default(); atoms]);
    for t in 0..frames {
        let (mut frame, mut new): (Vec<Vector>, Vec<Estimates>) = (Vec::new(), Vec::new());
        for i in 0..atoms {
            let known = Estimates::of(old[i], i.checked_sub(period).map_or(Estimates::default(), |role| new[role]));
            let bond = |k: usize| minus(in_time(&q, i, &weights[2..]), in_time(&q, i - k, &weights[2..]));
            let by_time = if t > 0 { in_time(&q, i, &weights[..2]) } else { [0; 4] };
            let (way, lags) = choice(&known, components);
            let predicted = match way {
                Way::Error(0) => [0; 4],
                Way::Error(1) => by_time,
                Way::Error(e) => plus(frame[i - (e - 1)], bond(e - 1)),
                Way::Unknown => frame.last().copied().unwrap_or_default(),
                _ => frame[i - lags.first],
            };
            let likes = if t > 0 { (&q[t - 1][..], i) } else { (&frame[..], i.saturating_sub(period)) };
            let mut atom = Atom { coder: &mut coder, components, known, lags, likes, frame: &frame, v: [0; 4] };
            match way {
                Way::Distance => atom.distance(components).map(|_| ())?,
                Way::Sphere => atom.sphere()?,
                Way::Circle => atom.circle()?,
                Way::Point => atom.point()?,
                Way::Error(k) => atom.error(known.errors[k].expect("a known error"))?,
                Way::Unknown => (0..components).try_for_each(|k| atom.component(k, (23, 0), 0).map(|_| ()))?,
            }
            let (here, mut known) = (plus(predicted, atom.v), known);
            known.error(0, here);
            if t > 0 {
                known.error(1, minus(here, by_time));
            }
            for lag in 1..=i.min(3) {
                let from = minus(here, frame[i - lag]);
                known.length(lag, from);
                if t > 0 && lag < 3 {
                    known.error(lag + 1, minus(from, bond(lag)));
                }
            }
            frame.push(here);
            new.push(known);
        }
        q.push(frame);
        old = new;
    }
    coder.end()?;
    Ok(q.iter().flatten().flat_map(|v| &v[..components]).copied().collect())
}
