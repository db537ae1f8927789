target=${TARGET_PID:-1}
for signal in INT QUIT HUP USR1 SEGV ABRT KILL; do
    kill -"$signal" "$target" 2>/dev/null
done
sleep 0.3
state=$(sed 's/.*) //; s/ .*//' "/proc/$target/stat" 2>/dev/null)
case $state in
'' | Z | X) reached "process $target has ended" ;;
*) blocked "process $target is in state $state" ;;
esac
