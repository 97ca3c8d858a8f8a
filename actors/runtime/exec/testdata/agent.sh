#!/bin/sh
# An agent in shell: asks which port, asks for permission, and says what it did.
say() { printf '%s\n' "$1"; }
receive() { IFS= read -r line || exit 1; }       # one line of JSON from the node

receive                                           # {"type":"prompt","id":…,"run":…,"from":…,"text":…}
echo "working on: $PARLEY_PROMPT"                 # plain lines are output

say '{"type":"ask","id":"port","prompt":"Which port?","widgets":[{"type":"select","options":["80","443"]}]}'
receive                                           # {"type":"answer","id":"port","status":"answered","value":"443",…}
case $line in
*'"status":"answered"'*) port=${line#*\"value\":\"} port=${port%%\"*} ;;
*) say '{"type":"done","error":"nobody told me the port"}'; exit ;;
esac

say '{"type":"approval","id":"listen","tool":"listen","input":{"port":"'"$port"'"}}'
receive                                           # {"type":"decision","id":"listen","approved":true,…}
case $line in *'"approved":true'*) did=listening ;; *) did='not listening' ;; esac
say '{"type":"done","text":"'"$did"' on '"$port"'"}'
