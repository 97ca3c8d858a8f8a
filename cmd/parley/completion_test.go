package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hostileWords are names with shell syntax, as others may choose them.
var hostileWords = []string{
	"$(touch pwned)one", "$(touch pwned)two", "`touch pwned`", "'; touch pwned; '", `"; touch pwned; "`, "a b", `back\slash`, "x;touch pwned", "x&touch pwned&",
	"(touch pwned)", "{touch,pwned}", "~root", "*", "?", "!!", "${IFS}", "$HOME", "a=$(touch pwned)=b", "k:$(touch pwned)", "k:(touch pwned)", ">pwned", "größe",
}

// shellScript returns the completion script of a shell, in a folder with a parley that completes to words.
func shellScript(t *testing.T, name string, words []string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	var out, errs bytes.Buffer
	p := &program{
		environment: environment{stdout: &out, stderr: &errs, lookup: func(name string) (string, bool) { return folder, name == "HOME" }},
		args:        []string{"completion", name},
	}
	if code := p.run(t.Context()); code != exitDone {
		t.Fatalf("%d: %s", code, errs.String())
	}
	var offered strings.Builder
	for _, w := range words {
		offered.WriteString(w + "\tsaid by $(touch pwned)\n")
	}
	for file, text := range map[string]string{
		"script": out.String(), "words": offered.String() + ":36\n",
		"parley": "#!/bin/sh\n[ \"$1\" = __complete ] && printf '%s\\n' \"$@\" > asked\ncat words\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// runShell runs text in a shell, and returns its output. It fails if a hostile word was run.
func runShell(t *testing.T, folder, text string, shell ...string) string {
	t.Helper()
	if _, err := exec.LookPath(shell[0]); err != nil {
		t.Skipf("there is no %s", shell[0])
	}
	c := exec.CommandContext(t.Context(), shell[0], append(shell[1:], "-c", text)...)
	c.Dir, c.Env = folder, []string{"PATH=" + folder + ":" + os.Getenv("PATH"), "HOME=" + folder, "LC_ALL=C.UTF-8"}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(folder, "pwned")); err == nil {
		t.Fatalf("it was run: %s", out)
	}
	return string(out)
}

// completeInBash prints the candidates of bash after typed, one a line.
const completeInBash = `
_get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]}; words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; }
source ./script
complete_with() { # TYPE WORD…
	COMP_TYPE=$1; shift
	COMP_WORDS=(parley "$@"); COMP_CWORD=$#; COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}; COMPREPLY=()
	$(complete -p parley | sed 's/.*-F \([^ ]*\).*/\1/') parley "${COMP_WORDS[COMP_CWORD]}" parley 2>/dev/null
	printf '%s\n' "${COMPREPLY[@]}"
}
`

func TestBashCompletionRunsNoCommand(t *testing.T) {
	t.Parallel()
	folder := shellScript(t, "bash", hostileWords)
	got := strings.Split(strings.TrimSpace(runShell(t, folder, completeInBash+"complete_with 9 show ''", "bash", "--norc")), "\n")
	if len(got) != len(hostileWords) {
		t.Fatalf("%d candidates: %q", len(got), got)
	}
	for i, word := range got {
		if said := runShell(t, folder, "printf %s "+word, "bash", "--norc"); said != hostileWords[i] {
			t.Errorf("%s stands for %q, want %q", word, said, hostileWords[i])
		}
	}
	// Two words have a common prefix: it is inserted and completed again, in both modes.
	for _, kind := range []string{"9", "63", "33", "37"} {
		both := strings.Split(strings.TrimSpace(runShell(t, folder, completeInBash+"complete_with "+kind+` show '\$\(touch\ pwned'`, "bash", "--norc")), "\n")
		if len(both) != 2 {
			t.Errorf("of type %s: %q", kind, both)
		}
		if kind == "63" { // a listing only
			continue
		}
		prefix := both[0]
		for !strings.HasPrefix(both[1], prefix) {
			prefix = prefix[:len(prefix)-1]
		}
		runShell(t, folder, completeInBash+"complete_with 9 show '"+prefix+"'", "bash", "--norc")
	}
	alone := shellScript(t, "bash", hostileWords[:1])
	if got := strings.TrimSpace(runShell(t, alone, completeInBash+"complete_with 9 show ''", "bash", "--norc")); runShell(t, alone, "printf %s "+got, "bash", "--norc") != hostileWords[0] {
		t.Errorf("alone: %s", got)
	}
}

func TestFishCompletionRunsNoCommand(t *testing.T) {
	t.Parallel()
	folder := shellScript(t, "fish", hostileWords)
	for _, word := range hostileWords {
		if err := os.WriteFile(filepath.Join(folder, "word"), []byte(word), 0o600); err != nil {
			t.Fatal(err)
		}
		out := runShell(t, folder, "source ./script; set -l word (string escape -- (cat word)); complete -C \"parley show $word \"", "fish", "--no-config")
		if !strings.Contains(out, "größe") {
			t.Errorf("after %s it completes to %q", word, out)
		}
		if asked, err := os.ReadFile(filepath.Join(folder, "asked")); err != nil || string(asked) != "__complete\nshow\n"+word+"\n\n" {
			t.Errorf("the node was asked %q, %v", asked, err)
		}
	}
}

func TestZshCompletionRunsNoCommand(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"$(touch pwned)one", "'; touch pwned; '", "a=$(touch pwned)=b"} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			folder := shellScript(t, "zsh", []string{word})
			// A terminal in which TAB, a blank and TAB are pressed. After each, ^X writes the line to a file.
			out := runShell(t, folder, `
zmodload zsh/zpty
zpty -b z 'TERM=dumb zsh -f -i'
zpty -w z 'PS1= PROMPT= ; autoload -Uz compinit && compinit -u -D; setopt nobeep; source ./script; shown() { print -r -- "<$BUFFER>" > buffer.part; mv buffer.part buffer; }; zle -N shown; bindkey "^X" shown; : > ready'
await() { repeat 2000; do [[ -e $1 ]] && return; sleep 0.01; done; print "no $1"; exit 1; }
await ready
zpty -w -n z $'parley show \t\x18'; await buffer; rm buffer
zpty -w -n z $' \t\t\x18'; await buffer
cat buffer
zpty -d z
`, "zsh", "-f")
			if !strings.HasPrefix(out, "<parley show ") {
				t.Errorf("%q", out)
			}
			if _, err := os.Stat(filepath.Join(folder, "asked")); err != nil {
				t.Error("nothing was completed")
			}
		})
	}
}

func TestUnprintableNamesAreNotCompleted(t *testing.T) {
	t.Parallel()
	for _, word := range hostileWords {
		if !isCompletable(word) {
			t.Errorf("%q is left out", word)
		}
	}
	for _, word := range []string{"", "-rf", "--reveal", "a\nb", "a\tb", "\x1b[31m", "a\u202eb", "a\u200bb", "_activeHelp_ x", "\xff"} {
		if isCompletable(word) {
			t.Errorf("%q is offered", word)
		}
	}
}
