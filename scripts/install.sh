#!/bin/sh
# Installs Bottleworks (forklift, wf, bot-bottle) from a release, below ~/.local:
#
#   sh install.sh
#
# PREFIX    the folder that gets bin and share [default: ~/.local]
# BASE_URL  the folder of the release: https://, http:// or file:// [default: that of the release that this script is of]
# VERSION   the version [default: that of the release that this script is of]
# SIGNERS   a file of allowed signers (ssh-keygen); the checksums must then be signed by one of them
#
# Nothing is installed unless its checksum is right. To remove it: the files that are listed at the end.
set -eu

repository='@REPOSITORY@'
VERSION=${VERSION:-@VERSION@}
PREFIX=${PREFIX:-$HOME/.local}

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

case $repository$VERSION in
*@*) [ -n "${BASE_URL-}" ] && case $VERSION in @*) false ;; esac ||
    fail 'this copy is of no release: set BASE_URL and VERSION, or take install.sh from a release' ;;
esac
BASE_URL=${BASE_URL:-$repository/releases/download/v$VERSION}

[ "$(uname -s)" = Linux ] || fail "Bottleworks runs on Linux; on $(uname -s) use the container image"
case $(uname -m) in
x86_64 | amd64) target=x86_64-unknown-linux-musl ;;
aarch64 | arm64) target=aarch64-unknown-linux-musl ;;
*) fail "there is no program for $(uname -m); build it: cargo install --path crates/bottleworks" ;;
esac

# fetch <name>: a file of the release, into the working folder.
fetch() {
    case $BASE_URL in
    file://*) cp "${BASE_URL#file://}/$1" "$work/$1" 2>/dev/null ;;
    *)
        if command -v curl >/dev/null; then
            curl --fail --silent --show-error --location --output "$work/$1" "$BASE_URL/$1"
        elif command -v wget >/dev/null; then
            wget --quiet --output-document "$work/$1" "$BASE_URL/$1"
        else
            fail 'curl or wget is needed'
        fi
        ;;
    esac || fail "could not fetch $BASE_URL/$1"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=bottleworks-$VERSION-$target
fetch "$name.tar.gz"
fetch SHA256SUMS

if [ -n "${SIGNERS-}" ]; then
    fetch SHA256SUMS.sig
    signer=$(ssh-keygen -Y find-principals -f "$SIGNERS" -s "$work/SHA256SUMS.sig" 2>/dev/null | head -n 1) || signer=
    [ -n "$signer" ] && ssh-keygen -q -Y verify -n bottleworks -f "$SIGNERS" -I "$signer" \
        -s "$work/SHA256SUMS.sig" <"$work/SHA256SUMS" >/dev/null ||
        fail "SHA256SUMS is not signed by one of $SIGNERS"
fi
grep "  $name.tar.gz\$" "$work/SHA256SUMS" >"$work/sum" || fail "SHA256SUMS does not name $name.tar.gz"
(cd "$work" && sha256sum --check --status sum) || fail "the checksum of $name.tar.gz is wrong; nothing is installed"

tar -xzf "$work/$name.tar.gz" -C "$work"
mkdir -p "$PREFIX/bin" "$PREFIX/share"
# A program that runs now keeps its file: the new one gets the name.
cp "$work/$name/bin/bottleworks" "$PREFIX/bin/.bottleworks.new"
mv -f "$PREFIX/bin/.bottleworks.new" "$PREFIX/bin/bottleworks"
for command in forklift wf bot-bottle; do ln -sfn bottleworks "$PREFIX/bin/$command"; done
cp -R "$work/$name/share/." "$PREFIX/share/"

echo "installed bottleworks $VERSION: forklift, wf and bot-bottle in $PREFIX/bin, manual pages and completions in $PREFIX/share"
for need in git bwrap; do
    command -v "$need" >/dev/null || echo "missing: $need (Debian: apt install git bubblewrap)"
done
case :$PATH: in
*":$PREFIX/bin:"*) ;;
*) echo "$PREFIX/bin is not in PATH: export PATH=\"$PREFIX/bin:\$PATH\"" ;;
esac
echo 'try it: forklift demo'
