need CANARY_PID
need CANARY_COMMAND
# The host looks afterwards whether its process lives; from here only a process of that name tells who was hit.
if [ ! -e "/proc/$CANARY_PID" ]; then
    kill -TERM "$CANARY_PID" 2>/dev/null && reached "signal sent to $CANARY_PID"
    blocked "there is no process $CANARY_PID"
fi
tr '\0' ' ' 2>/dev/null <"/proc/$CANARY_PID/cmdline" | grep -qF "$CANARY_COMMAND" ||
    blocked "$CANARY_PID is another process here"
kill -TERM "$CANARY_PID" 2>/dev/null && reached "signal sent to $CANARY_PID"
reached "$CANARY_PID can be seen, but not be signalled"
