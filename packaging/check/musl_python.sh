#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds CPython for musl, as Alpine Linux has one, from Debian's sources: a few minutes.
#
#     musl_python.sh FOLDER      FOLDER/bin/python3 is made; it looks for other libraries in FOLDER/lib, where zlib is
#
# It runs by the musl of Debian 13, FOLDER/musl: that of Debian 12 is 1.2.3, which knows no relative relocations (RELR),
# and ends by SIGSEGV with NumPy's wheels, whose libraries have such.
#
# No setting of this machine's apt is changed.
set -eu
prefix=$1
work=$prefix/work
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
touch "$work/status"
. /etc/os-release
printf '%s\n' "deb-src http://deb.debian.org/debian $VERSION_CODENAME main" \
    "deb http://deb.debian.org/debian trixie main" >"$work/sources.list"
cat >"$work/apt.conf" <<EOF
Dir::Etc::SourceList "$work/sources.list"; Dir::Etc::SourceParts "-";
Dir::State::Lists "$work/lists"; Dir::Cache "$work/cache"; Dir::State::status "$work/status";
EOF
export APT_CONFIG="$work/apt.conf"
cd "$work"
apt-get update -qq
apt-get source -qq --download-only python3.11 libffi zlib
apt-get -qq download musl/trixie
dpkg -x musl_*.deb "$prefix/musl"
loader=$prefix/musl/usr/lib/x86_64-linux-musl/libc.so
for archive in *.orig.tar.*; do tar -xf "$archive"; done
# configure asks the compiler for Debian's name of the system.
cat >cc <<'EOF'
#!/bin/sh
case $* in *-print-multiarch*) echo x86_64-linux-musl; exit ;; esac
exec musl-gcc "$@"
EOF
chmod +x cc
export CC="$work/cc" CFLAGS="-O1 -fPIC"
(cd zlib-*/ && ./configure --prefix="$prefix" && make -s && make -s install)
(cd libffi-*/ && ./configure --quiet --host=x86_64-linux-musl --disable-shared --prefix="$prefix" \
    CFLAGS="$CFLAGS -idirafter /usr/include -idirafter /usr/include/$(gcc -print-multiarch)" &&
    make -s && make -s install)
cd Python-*/
export CPPFLAGS="-I$prefix/include" PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
LDFLAGS="-L$prefix/lib -Wl,-rpath,$prefix/lib,-I,$loader" \
    ./configure --quiet --prefix="$prefix" --without-ensurepip --disable-test-modules
make -s -j2
make -s install
"$prefix/bin/python3" -c "import ctypes, zlib"
rm -rf "$work"
