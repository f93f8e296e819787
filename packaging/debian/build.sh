#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds Debian's packages from the files that git knows of and the crates that they need, which `make vendored` brings.
# The build itself asks no network.
#
#     DEBFULLNAME="Your Name" DEBEMAIL=you@where packaging/debian/build.sh FOLDER [OPTION OF dpkg-buildpackage]...
#
# FOLDER is made; the sources and the packages are in it. Options are -b, -d (cargo is not a Debian package) and the
# like.
set -eu
: "${DEBFULLNAME:?who makes the package}" "${DEBEMAIL:?the address for the package}"
[ $# -ge 1 ] || { sed -n 3,10p "$0" >&2; exit 2; }
mkdir -p "$1"
into=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
source=$into/h5z-gpu-$version
rm -rf "$source"
make -s --no-print-directory vendored >/dev/null
tar -x -C "$into" -f "target/h5z-gpu-$version.tar.gz"
cp -r packaging/debian "$source/debian"
rm "$source/debian/build.sh"
sed "s/@MAINTAINER@/$DEBFULLNAME <$DEBEMAIL>/" packaging/debian/control.in >"$source/debian/control"
{
    sed "s/@YEAR@/$(git log -1 --format=%ad --date=format:%Y)/" packaging/debian/copyright.in
    sed -e 's/^[[:space:]]*$/./' -e 's/^/ /' LICENSE-MIT
} >"$source/debian/copyright"
rm "$source"/debian/*.in
printf 'h5z-gpu (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s <%s>  %s\n' \
    "$version" "$DEBFULLNAME" "$DEBEMAIL" "$(git log -1 --format=%aD)" >"$source/debian/changelog"
cd "$source"
exec dpkg-buildpackage -us -uc "$@"
