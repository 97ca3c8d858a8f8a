#!/bin/sh
# What the recording shows: an agent asks to run a command, the node is killed, and the question is still there.
pid() { sed -n 1p "$PARLEY_STATE/parley.lock"; }
cd "$HOME"
enter() {
	printf '\033[1;32m$\033[0m '
	sleep 0.6
	printf '%s\n' "$1" | sed 's/./&\n/g' | while IFS= read -r c; do
		printf '%s' "${c:- }"
		sleep 0.025
	done
	printf '\n'
	sleep 0.2
	eval "$1"
	sleep "${2:-0.8}"
}
enter 'parley start'
enter 'parley mkguest fae'
enter "parley approve shell '{\"command\":\"git push origin main\"}' --as fae && echo fae: pushing &" 0.5
enter 'parley permit ls' 1.5
enter 'kill -9 $(pid)     # nobody is told goodbye'
enter 'parley start'
enter 'parley permit ls' 1.5
enter "parley allow 0 --always --rule 2" 2.5
enter 'parley inbox --all' 3
