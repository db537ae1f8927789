cp /usr/bin/id suid-id && chmod 6755 suid-id || blocked 'the bit cannot be set'
before=$(id -u)
after=$(./suid-id -u 2>/dev/null)
if [ -n "$after" ] && [ "$after" != "$before" ]; then reached "became $after"; fi
planted "suid-id, still user ${after:-unknown}"
