init=/proc/${TARGET_PID:-1}
# This one can be opened by everyone; what counts is whether it can be written.
(echo 50001 >"$init/timerslack_ns") 2>/dev/null && reached "$init/timerslack_ns can be written"
try_open "$init/mem" "$init/oom_score_adj" "$init/uid_map" "$init/coredump_filter"
