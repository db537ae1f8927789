if [ "$(wc -l </proc/net/route 2>/dev/null || echo 0)" -gt 1 ]; then reached 'there is a route'; fi
# Kernels put fallback tunnels into every namespace; without an address or a route they lead nowhere.
while read -r _ _ _ _ flags name; do
    if [ "$name" != lo ]; then reached "$name has an IPv6 address ($flags)"; fi
done 2>/dev/null </proc/net/if_inet6
blocked 'no route and no address but loopback'
