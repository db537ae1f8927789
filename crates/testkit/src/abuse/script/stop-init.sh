# The number can be given, so that the attempt can be seen to succeed where it is harmless.
target=${TARGET_PID:-1}
kill -STOP "$target" 2>/dev/null
sleep 0.3
state=$(sed 's/.*) //; s/ .*//' "/proc/$target/stat" 2>/dev/null)
kill -CONT "$target" 2>/dev/null
case $state in
T | t) reached "process $target was stopped" ;;
*) blocked "process $target is in state ${state:-unknown}" ;;
esac
