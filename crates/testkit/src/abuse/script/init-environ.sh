if ! content=$(tr '\0' ' ' 2>/dev/null <"/proc/${TARGET_PID:-1}/environ"); then blocked 'cannot be read'; fi
if [ -z "$content" ]; then blocked 'empty or unreadable'; fi
# The word is in two pieces so that the script does not find itself.
case $content in *can""ary-*) reached 'it holds a secret' ;; esac
reached "$(printf %s "$content" | wc -c) bytes can be read"
