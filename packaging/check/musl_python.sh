#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds CPython for musl, as Alpine Linux has one, from Debian's sources: a few minutes.
#
#     musl_python.sh FOLDER      FOLDER/bin/python3 is made; it looks for other libraries in FOLDER/lib, where zlib is
#
# No setting of this machine's apt is changed.
set -eu
prefix=$1
work=$prefix/work
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
touch "$work/status"
. /etc/os-release
echo "deb-src http://deb.debian.org/debian $VERSION_CODENAME main" >"$work/sources.list"
cat >"$work/apt.conf" <<EOF
Dir::Etc::SourceList "$work/sources.list"; Dir::Etc::SourceParts "-";
Dir::State::Lists "$work/lists"; Dir::Cache "$work/cache"; Dir::State::status "$work/status";
EOF
export APT_CONFIG="$work/apt.conf"
cd "$work"
apt-get update -qq
apt-get source -qq --download-only python3.11 libffi zlib
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
CPPFLAGS="-I$prefix/include" LDFLAGS="-L$prefix/lib -Wl,-rpath,$prefix/lib" PKG_CONFIG_PATH="$prefix/lib/pkgconfig" \
    ./configure --quiet --prefix="$prefix" --without-ensurepip --disable-test-modules
make -s -j2
make -s install
"$prefix/bin/python3" -c "import ctypes, zlib"
rm -rf "$work"
