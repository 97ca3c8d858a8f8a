package rule

import (
	"encoding/json"
	"strings"
	"testing"

	"parley"
)

// TestRuleForLongInputHasDigest makes the rules for inputs around the bound. Each rule covers its own input alone, and
// stores little.
func TestRuleForLongInputHasDigest(t *testing.T) {
	callOf := func(tool, key string, size int) *parley.Permission {
		return &parley.Permission{Tool: tool, Input: `{"` + key + `":"` + strings.Repeat("x", size) + `"}`, Folder: testFolder}
	}
	for _, size := range []int{maxEssence - 200, maxEssence, 256<<10 - 100} {
		for _, c := range []*parley.Permission{callOf("Write", "content", size), callOf("Bash", "command", size)} {
			rules := allOf(c)[:1]
			if stored := len(rules[0].Covers.Input); stored > maxEssence || size >= maxEssence && stored > 100 {
				t.Errorf("%s of %d bytes: the rule stores %d", c.Tool, size, stored)
			}
			other, elsewhere := new(*c), new(*c)
			other.Input = strings.Replace(c.Input, "xx", "xy", 1)
			elsewhere.Folder = "/srv"
			if !allows(rules, c) || allows(rules, other) || allows(rules, elsewhere) {
				t.Errorf("%s of %d bytes: the rule covers it %v, another %v, it in another folder %v", c.Tool, size, allows(rules, c), allows(rules, other), allows(rules, elsewhere))
			}
			if words := Words(rules[0].Covers); size >= maxEssence && !strings.HasPrefix(words, "exactly the long input with the SHA-256 digest ") {
				t.Errorf("it reads %q", words)
			}
		}
	}
	described := func(words string) *parley.Permission {
		input, _ := json.Marshal(map[string]string{"command": strings.Repeat("make x;", maxEssence/7+1), "description": words})
		return &parley.Permission{Tool: "Bash", Input: string(input), Folder: testFolder}
	}
	if !allows(allOf(described("one"))[:1], described("another")) {
		t.Error("the description of a long command line counts")
	}
	document := &parley.Permission{Tool: "Write", Input: `"` + Read(callOf("Write", "content", maxEssence)).essence + `"`, Folder: testFolder}
	if allows(allOf(callOf("Write", "content", maxEssence))[:1], document) {
		t.Error("an input that reads as the digest is covered")
	}
}

// TestSeveralRulesAllowNoLongInput allows a command line by a rule for each command. With a long description the host
// is asked, and a rule that denies one of the commands still denies the call.
func TestSeveralRulesAllowNoLongInput(t *testing.T) {
	described := func(words string) *parley.Permission {
		input, _ := json.Marshal(map[string]string{"command": "git status && git log", "description": words})
		return &parley.Permission{Tool: "Bash", Input: string(input), Folder: testFolder}
	}
	short, long := described("x"), described(strings.Repeat("x", maxParts))
	rules := append(allOf(commandCall("git status"))[1:], allOf(commandCall("git log"))[1:]...)
	if !allows(rules, short) || allows(rules, long) {
		t.Errorf("the rules allow the short call %v, the long one %v", allows(rules, short), allows(rules, long))
	}
	rules[0].Allow = false
	for _, c := range []*parley.Permission{short, long} {
		if d := Read(c).Decide(rules); len(d.Rules) != 1 || d.Allow {
			t.Errorf("a denied command of %d bytes: %+v", len(c.Input), d)
		}
	}
}
