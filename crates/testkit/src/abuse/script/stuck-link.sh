rm -rf STUCK.md
ln -s "${BOTTLE_CANARY_PATH:-/etc/shadow}" STUCK.md && planted 'STUCK.md leads to a file of the host'
blocked 'no link can be made'
