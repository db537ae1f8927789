#!/bin/bash
# Makes the user `forklift` with the ids 1000:1000 and the folders that are mounted over. Ubuntu's images have given
# these ids away; whoever has them there is nobody that is needed.
set -euo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

if holder=$(getent passwd 1000 | cut -d: -f1) && [ -n "$holder" ] && [ "$holder" != forklift ]; then
    userdel "$holder"
fi
if group=$(getent group 1000 | cut -d: -f1) && [ -n "$group" ] && [ "$group" != forklift ]; then
    groupdel "$group"
fi
getent group forklift > /dev/null || groupadd --gid 1000 forklift
getent passwd forklift > /dev/null ||
    useradd --uid 1000 --gid 1000 --create-home --shell /bin/bash forklift
install -d -o forklift -g forklift /workspace /harness-state
