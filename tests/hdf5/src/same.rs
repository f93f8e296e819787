// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two types that C passes, stores and returns in the same way.

use crate::hdf5::{CanApply, ErrorRecord, FilterLen, SetLocal};
use crate::theirs::{
    H5D_fill_time_t, H5D_fill_value_t, H5D_layout_t, H5E_direction_t, H5E_error2_t, H5I_type_t, H5S_class_t,
    H5S_sel_type, H5S_seloper_t, H5T_class_t, H5T_norm_t, H5T_order_t, H5T_sign_t, hbool_t,
};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// `Self`, a type of the bindings, is `Ours` to C.
pub(crate) trait Same<Ours> {}

/// Compiles where a type of the bindings is ours.
pub(crate) const fn same<Theirs: Same<Ours> + Copy, Ours>(_: Theirs) {}

/// As [`same`], for two fields. References, because a pointer to what may change would be taken for one to what may
/// not.
pub(crate) fn pair<Theirs: Same<Ours>, Ours>(_: &Theirs, _: &Ours) {}

macro_rules! same {
    ($($theirs:ty => $ours:ty,)*) => {
        $(impl Same<$ours> for $theirs {}
        const _: () = {
            assert!(size_of::<$theirs>() == size_of::<$ours>() && align_of::<$theirs>() == align_of::<$ours>())
        };)*
    };
}

same! {
    () => (),
    c_char => c_char,
    c_int => c_int,
    c_uint => c_uint,
    c_void => c_void,
    i64 => i64,
    u64 => u64,
    usize => usize,
    isize => isize,
    f64 => f64,
    // C's `bool`: the bindings take any byte.
    hbool_t => bool,
    H5E_error2_t => ErrorRecord,
    // Enumerations that the plugin reads as numbers.
    H5E_direction_t => c_int,
    H5D_fill_time_t => c_int,
    H5D_fill_value_t => c_int,
    H5D_layout_t => c_int,
    H5I_type_t => c_int,
    H5S_class_t => c_int,
    H5S_sel_type => c_int,
    H5S_seloper_t => c_int,
    H5T_class_t => c_int,
    H5T_norm_t => c_int,
    H5T_order_t => c_int,
    H5T_sign_t => c_int,
    // What callbacks return, each in a type of its own.
    c_int => CanApply,
    c_int => SetLocal,
    usize => FilterLen,
}

impl<T: Same<U>, U> Same<*const U> for *const T {}
impl<T: Same<U>, U> Same<*mut U> for *mut T {}
impl<T: Same<U>, U> Same<Option<U>> for Option<T> {}

/// Functions by their number of arguments.
macro_rules! functions {
    ($($theirs:ident $ours:ident)*) => {
        impl<R: Same<S>, S, $($theirs: Same<$ours>, $ours),*> Same<unsafe extern "C" fn($($ours),*) -> S>
            for unsafe extern "C" fn($($theirs),*) -> R {}
    };
}

functions! {}
functions! { A0 B0 }
functions! { A0 B0 A1 B1 }
functions! { A0 B0 A1 B1 A2 B2 }
functions! { A0 B0 A1 B1 A2 B2 A3 B3 }
functions! { A0 B0 A1 B1 A2 B2 A3 B3 A4 B4 }
functions! { A0 B0 A1 B1 A2 B2 A3 B3 A4 B4 A5 B5 }
functions! { A0 B0 A1 B1 A2 B2 A3 B3 A4 B4 A5 B5 A6 B6 }
functions! { A0 B0 A1 B1 A2 B2 A3 B3 A4 B4 A5 B5 A6 B6 A7 B7 }

/// `H5Epush2`, the one with a format and what it formats.
type Variadic<A, B, C, D, E, F, G, H, R> = unsafe extern "C" fn(A, B, C, D, E, F, G, H, ...) -> R;
impl<A0, A1, A2, A3, A4, A5, A6, A7, R, B0, B1, B2, B3, B4, B5, B6, B7, S>
    Same<Variadic<B0, B1, B2, B3, B4, B5, B6, B7, S>> for Variadic<A0, A1, A2, A3, A4, A5, A6, A7, R>
where
    (A0, A1, A2, A3): All<(B0, B1, B2, B3)>,
    (A4, A5, A6, A7): All<(B4, B5, B6, B7)>,
    R: Same<S>,
{
}

/// Each of four is the same as its counterpart.
trait All<Ours> {}
impl<A: Same<E>, B: Same<F>, C: Same<G>, D: Same<H>, E, F, G, H> All<(E, F, G, H)> for (A, B, C, D) {}
