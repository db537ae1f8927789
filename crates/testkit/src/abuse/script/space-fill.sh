need WORKSPACE_LIMIT
mkdir -p fill || blocked 'the workspace cannot be written'
count=0
while [ "$((count * 8388608))" -le "$((WORKSPACE_LIMIT * 2))" ]; do
    head -c 8388608 /dev/zero >"fill/$count" 2>/dev/null || break
    count=$((count + 1))
done
# Whoever watches from outside looks every now and then.
sleep 10
written=$((count * 8388608))
rm -rf fill
if [ "$written" -gt "$WORKSPACE_LIMIT" ]; then reached "$written bytes in the workspace"; fi
blocked "writing failed after $written bytes"
