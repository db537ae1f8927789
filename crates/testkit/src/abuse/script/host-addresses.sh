need CANARY_HOST_ADDRS
need CANARY_PORT
set --
for address in $CANARY_HOST_ADDRS; do
    case $address in *:*) address="[$address]" ;; esac
    set -- "$@" "$address:$CANARY_PORT" "$address:22"
done
try_connect "$@"
