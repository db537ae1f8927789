#!/bin/bash
# Installs one language runtime in a pinned version, if RUNTIMES names it. What is downloaded is compared with the
# checksum that its makers publish beside it before any of it is run; nothing is piped from the network into a shell.
set -euo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

readonly rustup=1.28.2 rust=1.90.0 n=10.2.0 node=22.20.0 bun=1.2.23 pyenv=2.6.8

case " ${RUNTIMES:-} " in
*" $1 "*) ;;
*)
    echo "$1 is left out"
    exit 0
    ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

machine=$(uname -m)
get() { curl --fail --silent --show-error --location --proto '=https' --retry 3 --output "$2" "$1"; }
link() { ln -sf "$1"/* /usr/local/bin/; }

case $1 in
rust)
    base=https://static.rust-lang.org/rustup/archive/$rustup/$machine-unknown-linux-gnu
    get "$base/rustup-init" rustup-init
    get "$base/rustup-init.sha256" published
    echo "$(cut -d' ' -f1 published)  rustup-init" | sha256sum --check --quiet
    chmod +x rustup-init
    export RUSTUP_HOME=/opt/rust/rustup CARGO_HOME=/opt/rust/cargo
    ./rustup-init -y --no-modify-path --profile minimal --default-toolchain "$rust" --component clippy --component rustfmt
    # The proxies look for their home in the environment; the tools themselves do not have to.
    link "/opt/rust/rustup/toolchains/$rust-$machine-unknown-linux-gnu/bin"
    ;;
node)
    get "https://registry.npmjs.org/n/-/n-$n.tgz" n.tgz
    get "https://registry.npmjs.org/n/$n" n.json
    published=$(jq --raw-output .dist.integrity n.json)
    [ "sha512-$(openssl dgst -sha512 -binary n.tgz | base64 --wrap=0)" = "$published" ]
    tar -xzf n.tgz
    N_PREFIX=/usr/local bash package/bin/n install "$node"
    install -m 755 package/bin/n /usr/local/bin/n
    ;;
bun)
    case $machine in x86_64) name=bun-linux-x64-baseline ;; *) name=bun-linux-aarch64 ;; esac
    base=https://github.com/oven-sh/bun/releases/download/bun-v$bun
    get "$base/$name.zip" "$name.zip"
    get "$base/SHASUMS256.txt" published
    grep " $name.zip\$" published | sha256sum --check --quiet
    unzip -q "$name.zip"
    install -m 755 "$name/bun" /usr/local/bin/bun
    ln -sf bun /usr/local/bin/bunx
    ;;
pyenv)
    git clone --quiet --depth 1 --branch "v$pyenv" https://github.com/pyenv/pyenv.git /opt/pyenv
    ln -sf /opt/pyenv/bin/pyenv /usr/local/bin/pyenv
    ;;
*)
    echo "unknown runtime '$1'" >&2
    exit 2
    ;;
esac
