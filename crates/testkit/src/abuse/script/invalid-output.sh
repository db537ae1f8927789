echo 'PLANTED invalid UTF-8 and a line of 64 MiB'
printf '\377\376\300\200\355\240\200 half a character: \342\202\n\000zero\000\n'
head -c 67108864 /dev/zero | tr '\0' a
exit 0
