need TMP_LIMIT
fill_folder /dev/shm
