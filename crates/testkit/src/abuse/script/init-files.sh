init=/proc/${TARGET_PID:-1}
try_open "$init/mem" "$init/oom_score_adj" "$init/uid_map" "$init/coredump_filter" "$init/timerslack_ns"
