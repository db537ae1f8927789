echo 'PLANTED escape sequences and right-to-left marks'
printf '\033[2J\033[1;1Hcleared\033]0;title\007\033]52;c;cm0gLXJm\007\033]8;;http://example.com\033\\link\033]8;;\033\\\n'
printf 'harmless\rREPLACED\n\302\23331mC1\n\342\200\256desrever\342\200\254 \342\201\246isolate\342\201\251\n\033P+q\033\\\033c'
printf '\n::set-output name=x::y\n::error::forged\n##[error]forged\n'
exit 0
