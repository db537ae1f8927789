echo 'PLANTED two seconds of output'
timeout 2 yes 'flood flood flood flood flood flood flood flood flood flood flood flood flood'
exit 0
