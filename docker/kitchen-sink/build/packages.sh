#!/bin/bash
# Installs the distribution's packages that are not there yet. With nothing missing it touches no network.
set -euo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

wanted=(
    bash-completion build-essential ca-certificates cmake curl fd-find git jq libssl-dev make openssl pkg-config
    python3 python3-pip python3-venv ripgrep tree unzip wget xz-utils
)
missing=()
for package in "${wanted[@]}"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null | grep -qx installed || missing+=("$package")
done
if ((${#missing[@]} > 0)); then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update
    apt-get install -y --no-install-recommends "${missing[@]}"
    rm -rf /var/lib/apt/lists/*
fi

# Debian has the name `fd` for something else.
ln -sf "$(command -v fdfind)" /usr/local/bin/fd
