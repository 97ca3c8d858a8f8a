package setup

import (
	"strings"
	"testing"
)

// TestFrontMatterThatIsUnclearIsNamed spells the hook of a skill in the ways that Claude Code reads: each is named, or said to be unreadable.
func TestFrontMatterThatIsUnclearIsNamed(t *testing.T) {
	t.Parallel()
	for matter, want := range map[string]string{
		"hooks:\n  PreToolUse:\n    - hooks:\n        - type: command\n          command: echo hi\n": `"echo hi" on PreToolUse`,
		"hooks:\n  PreToolUse:\n    - hooks:\n        - command: \"echo 'hi' # you\" # said\n":       `: "echo 'hi' # you" on PreToolUse`,
		"hooks: {'PreToolUse': [{hooks: [{command: 'echo \"hi\"', type: command}]}]}\n":              `: "echo "hi"" on PreToolUse`,
		"? hooks\n: PreToolUse:\n    - hooks: []\n":                                                  "cannot be read",
		"hooks:\n  \"PreTool\\x55se\":\n    - hooks: []\n":                                           "cannot be read",
		"\"h\\u006foks\":\n  PreToolUse: []\n":                                                       "cannot be read",
		"hooks:\n\tPreToolUse:\n\t\t- hooks: []\n":                                                   "cannot be read",
		"name: a\ndescription: what\tit ? does\n":                                                    "",
	} {
		got := ": " + strings.Join(frontMatterHooks("---\n"+matter+"---\nwords\n"), ", ")
		if !strings.Contains(got, want) || (want == "") != (got == ": ") {
			t.Errorf("%q: %q, wanted %q", matter, got, want)
		}
	}
}
