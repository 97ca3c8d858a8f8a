package mailbox

import (
	"encoding/json"
	"slices"
	"strings"

	"parley"
)

// A standing rule is for calls of a tool whose input has the same shape. Of a command line that is the whole
// command, or its first two words where the first is a program with commands of its own. A command line that is
// more than one simple command, or runs whatever it is given, is nobody's shape but its own. So is any other
// input: to the letter.

// maxInput bounds the input of a call that is to be approved, in bytes: all of it is shown.
const maxInput = maxDescription

// shapeOf gives the shape of a call's input, a JSON document.
func shapeOf(input string) string {
	if command, ok := commandOf(input); ok && isSimple(command) {
		words := strings.Fields(command)
		if len(words) > 1 && slices.Contains(commanders(), words[0]) && isPlainWord(words[1]) {
			return "command: " + words[0] + " " + words[1] + " …"
		}
		return "command: " + strings.Join(words, " ")
	}
	return "exactly: " + input
}

// commandOf gives the command line that an input is: an object with nothing in it but that, and perhaps a description
// or a title. Coding agents describe the same command in other words each time, and nothing is run by those.
func commandOf(input string) (string, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(input), &fields) != nil {
		return "", false
	}
	var command, words string
	for _, name := range []string{"description", "title"} {
		if described, ok := fields[name]; ok && json.Unmarshal(described, &words) == nil {
			delete(fields, name)
		}
	}
	if len(fields) != 1 || json.Unmarshal(fields["command"], &command) != nil {
		return "", false
	}
	return command, true
}

// commanders are programs whose second word says what they do.
func commanders() []string {
	return []string{"apt", "apt-get", "brew", "bun", "cargo", "docker", "gh", "git", "go", "kubectl", "npm", "pnpm", "pip", "systemctl", "terraform", "yarn"}
}

// runners run what they are given: a rule for one would be a rule for everything.
func runners() []string {
	return []string{
		"ash", "awk", "bash", "busybox", "csh", "dash", "deno", "doas", "env", "eval", "exec", "find", "fish", "gawk", "ksh", "lua", "make", "nice",
		"node", "nohup", "npx", "parallel", "perl", "php", "powershell", "pwsh", "python", "python2", "python3", "ruby", "sed", "setsid", "sh", "source", "ssh",
		"su", "sudo", "tclsh", "time", "timeout", "watch", "xargs", "zsh",
	}
}

// isSimple reports whether a command line is one plain command: no path to its program, nothing that the shell
// would make more of.
func isSimple(command string) bool {
	words := strings.Fields(command)
	if len(words) == 0 || strings.ContainsAny(command, "\n\r;|&$`<>(){}[]*?~!#\"'\\=") {
		return false
	}
	return isPlainWord(words[0]) && !slices.Contains(runners(), words[0])
}

// isPlainWord reports whether a word is a name, and no path, option or number.
func isPlainWord(word string) bool {
	for i, r := range word {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '-' && r != '_' && (r < '0' || r > '9')) {
			return false
		}
	}
	return word != ""
}

// checkInput refuses what cannot be the input of a call.
func checkInput(tool, input string) error {
	if tool == "" {
		return parley.Refuse(parley.InvalidForm, "an approval needs the name of a tool")
	}
	if err := checkText("a tool's name", tool, maxTitle); err != nil {
		return err
	}
	if err := checkText("an input", input, maxInput); err != nil {
		return err
	}
	if !json.Valid([]byte(input)) {
		return parley.Refuse(parley.InvalidForm, "the input of a call is a JSON document")
	}
	return nil
}
