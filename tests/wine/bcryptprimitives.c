/* SPDX-License-Identifier: MIT OR Apache-2.0
   bcryptprimitives.dll, which Windows has since version 7 and Wine since 8.18: Rust's standard library asks it for
   random numbers. For Debian 12's Wine 8.0 alone; nothing of it is shipped.

       x86_64-w64-mingw32-gcc -shared -O2 -s -o bcryptprimitives.dll bcryptprimitives.c -ladvapi32
*/
#include <windows.h>

#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *bytes, SIZE_T count) {
    while (count) {
        ULONG some = count < 1u << 30 ? (ULONG)count : 1u << 30;
        if (!RtlGenRandom(bytes, some))
            return FALSE;
        bytes += some;
        count -= some;
    }
    return TRUE;
}
