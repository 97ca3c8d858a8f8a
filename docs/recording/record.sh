#!/bin/sh
# Makes docs/recording.svg. It needs asciinema 2 and the npm package svg-term-cli, and parley in PATH.
set -e
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'parley stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
export PARLEY_STATE="$folder/state" PARLEY_LISTEN=off HOME="$folder" TERM=xterm-256color
asciinema rec -q --cols 96 --rows 24 -c "$PWD/session.sh" "$folder/session.cast"
svg-term --in "$folder/session.cast" --out ../recording.svg --window --no-cursor --width 96 --height 24
