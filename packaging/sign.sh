#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Signs plugins for those builds of HDF5 (2.2 and newer, HDF5_REQUIRE_SIGNED_PLUGINS) that load no others.
#
#     packaging/sign.sh KEY.pem PLUGIN...
#
# KEY.pem is a private RSA key of 2048 bits or more, which nobody else may read. Behind the plugin are written the
# signature of its bytes (PKCS #1 v1.5, SHA-512) and 14 bytes: the algorithm's number, the signature's length in four
# bytes with the lowest first, eight fixed bytes, and the version of this form: HDF5's src/H5PLsig.h. HDF5's own tool
# for it, h5sign, is in no package yet. `strip` takes a signature away.
set -eu
[ $# -ge 2 ] || { sed -n 3,5p "$0" >&2; exit 2; }
key=$1
shift
[ -z "$(find "$key" -perm /066)" ] || { echo "$key can be read or changed by others: chmod 600 $key" >&2; exit 1; }
mark=$(printf '\211HPS\r\n\032\n\001' | od -An -tx1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for plugin; do
    if [ "$(tail -c 9 "$plugin" | od -An -tx1)" = "$mark" ]; then
        echo "$plugin is signed already" >&2
        exit 1
    fi
    openssl dgst -sha512 -sign "$key" -out "$work/signature" "$plugin"
    length=$(wc -c <"$work/signature")
    [ "$length" -ge 256 ] || { echo "$key: HDF5 wants an RSA key of 2048 bits or more" >&2; exit 1; }
    {
        cat "$plugin" "$work/signature"
        printf "\\003\\$(printf %03o $((length % 256)))\\$(printf %03o $((length / 256)))\\000\\000"
        printf '\211HPS\r\n\032\n\001'
    } >"$work/signed"
    cat "$work/signed" >"$plugin"
done
