// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions and variables of a library, looked up by their names. Used by the plugin and by the doors, each
//! with a `Module` of its own.

/// Tables of functions and of ids of the host: of a table every one is there, or there is no table.
macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident {
        $(fn $fun:ident = $symbol:ident($($arg:ty),*) $(-> $ret:ty)?;)*
        $(variadic $more:ident = $more_symbol:ident($($more_arg:ty),*) -> $more_ret:ty;)*
        $(static $id:ident = $id_symbol:ident;)*
    })*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name {
            $(pub $fun: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
            $(pub $more: unsafe extern "C" fn($($more_arg),*, ...) -> $more_ret,)*
            $(pub $id: *const Hid,)*
        }

        impl $name {
            /// `Err`: the first symbol that is missing.
            pub fn find(module: &$crate::module::Module) -> Result<Self, &'static str> {
                // SAFETY: a symbol of such a name in an HDF5 of 1.10 or later, or in a netCDF of 4.9 or later, has the
                // type that its table says: `tests/hdf5` compares them.
                unsafe {
                    Ok($name {
                        $($fun: module.typed(stringify!($symbol))?,)*
                        $($more: module.typed(stringify!($more_symbol))?,)*
                        $($id: module.typed(stringify!($id_symbol))?,)*
                    })
                }
            }
        })*
    };
}
