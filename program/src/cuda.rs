// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the CUDA driver says of itself and its devices, as far as it gets.

use crate::library::{function, reason};
use libloading::Library;
use serde_json::{Value, json};
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::ptr;

/// The driver's library.
const DRIVER: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };

type Number = unsafe extern "C" fn(*mut c_int) -> c_int;
type Attribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;

/// "error" is why it says no more, "missing" that there is no driver.
pub(crate) fn ask() -> Value {
    // SAFETY: the driver's library, whose constructors every CUDA program runs; this process has nothing to lose.
    let cuda = match unsafe { Library::new(DRIVER) } {
        Ok(library) => std::mem::ManuallyDrop::new(library),
        Err(why) => return json!({"missing": reason(&why)}),
    };
    let mut answer = json!({"devices": []});
    let mut number = 0;
    // SAFETY: the driver's own signatures, the same since CUDA 4; what they write to outlives the calls.
    unsafe {
        if let Ok(version) = function::<Number>(&cuda, "cuDriverGetVersion")
            && version(&mut number) == 0
        {
            answer["cuda"] = json!([number / 1000, number % 1000 / 10]);
        }
        let Ok(init) = function::<unsafe extern "C" fn(c_uint) -> c_int>(&cuda, "cuInit") else { return answer };
        let code = init(0);
        if code != 0 {
            answer["error"] = format!("cuInit answers {code}{}", named(&cuda, code)).into();
            answer["code"] = code.into();
            return answer;
        }
        let Ok(count) = function::<Number>(&cuda, "cuDeviceGetCount") else { return answer };
        if count(&mut number) == 0 {
            answer["devices"] = (0..number).filter_map(|k| device(&cuda, k)).collect();
        }
    }
    answer
}

fn device(cuda: &Library, k: c_int) -> Option<Value> {
    type Get = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
    type Name = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
    type Memory = unsafe extern "C" fn(*mut usize, c_int) -> c_int;
    let (mut device, mut name, mut total) = (0, [0u8; 256], 0);
    // SAFETY: the driver's own signatures; what they write to outlives the calls and has the length that is told.
    unsafe {
        let (get, name_of) =
            (function::<Get>(cuda, "cuDeviceGet").ok()?, function::<Name>(cuda, "cuDeviceGetName").ok()?);
        if get(&mut device, k) != 0 || name_of(name.as_mut_ptr().cast(), name.len() as c_int, device) != 0 {
            return None;
        }
        let text = CStr::from_bytes_until_nul(&name).ok()?.to_string_lossy().into_owned();
        let mut found = json!({"name": text});
        if let Ok(memory) = function::<Memory>(cuda, "cuDeviceTotalMem_v2")
            && memory(&mut total, device) == 0
        {
            found["memory_bytes"] = total.into();
        }
        if let Ok(ask) = function::<Attribute>(cuda, "cuDeviceGetAttribute") {
            // 75 and 76: the compute capability, major and minor.
            let mut parts = [0; 2];
            if parts.iter_mut().zip(75..).all(|(part, what)| ask(part, what, device) == 0) {
                found["capability"] = json!(parts);
            }
        }
        Some(found)
    }
}

fn named(cuda: &Library, code: c_int) -> String {
    type ErrorName = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;
    let mut text = ptr::null();
    // SAFETY: the driver's own signature; the name is a constant of it.
    unsafe {
        match function::<ErrorName>(cuda, "cuGetErrorName") {
            Ok(name) if name(code, &mut text) == 0 && !text.is_null() => {
                format!(" ({})", CStr::from_ptr(text).to_string_lossy())
            }
            _ => String::new(),
        }
    }
}
