package rule

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"parley"
)

// TestTrialDecidesAsTheRule tries the rules that calls offer on other calls. A trial says what the rule does.
func TestTrialDecidesAsTheRule(t *testing.T) {
	words := []string{"git", "push", "origin", "main", "'git'", `g"i"t`, "status", "ls", "-l", "a.go", "src/b.go", "|", "&&", ";", "rm", "-rf", "$HOME", `\git`, "ä"}
	files := []string{"a.go", "src/b.go", "src/c.txt", ".env", "src/'d'.go", `e\f.go`, "/etc/passwd"}
	folders := []string{testFolder, "/srv/other", ""}
	covered := 0
	call := func(rt *rapid.T) *parley.Permission {
		c := &parley.Permission{Tool: rapid.SampledFrom([]string{"Bash", "Edit", "Read"}).Draw(rt, "tool"), Folder: rapid.SampledFrom(folders).Draw(rt, "folder")}
		input := map[string]string{"description": rapid.SampledFrom([]string{"", "x"}).Draw(rt, "description")}
		if c.Tool == "Bash" {
			line := ""
			for _, w := range rapid.SliceOfN(rapid.SampledFrom(words), 1, 5).Draw(rt, "words") {
				line += w + " "
			}
			input["command"] = line
		} else {
			input = map[string]string{"file_path": c.Folder + "/" + rapid.SampledFrom(files).Draw(rt, "file")}
		}
		text, err := json.Marshal(input)
		if err != nil {
			rt.Fatal(err)
		}
		c.Input = string(text)
		return c
	}
	rapid.Check(t, func(rt *rapid.T) {
		made, past := call(rt), call(rt)
		past.Tool = made.Tool
		if rapid.Bool().Draw(rt, "made again") {
			past = made
		}
		tried := Try(past)
		read := Read(made)
		for _, c := range append(read.Offers(), read.Exact()) {
			for _, allow := range []bool{true, false} {
				s := Standing{Covers: &c, Allow: allow}
				want := len(Read(past).Decide([]Standing{s}).Rules) > 0
				if got := tried.Covers(Prepare(s)); got != want {
					rt.Fatalf("%s (allow %v) on %s: %v, want %v", Words(&c), allow, past.Input, got, want)
				}
				if want {
					covered++
				}
			}
		}
	})
	if covered == 0 {
		t.Error("no rule covered a call")
	}
}

// BenchmarkTrial tries a rule on calls of a tool in one folder: of its program, of others, and with quotes.
func BenchmarkTrial(b *testing.B) {
	offers := Read(&parley.Permission{Tool: "Bash", Folder: testFolder, Input: `{"command":"git push origin main"}`}).Offers()
	if len(offers) == 0 {
		b.Fatal("nothing is offered")
	}
	s := Prepare(Standing{Covers: &offers[0], Allow: true})
	for _, line := range []string{"git push origin feature-%d", "make test-%d", `grep -n 'word' file-%d`} {
		b.Run(line, func(b *testing.B) {
			for i := range b.N {
				Try(&parley.Permission{Tool: "Bash", Folder: testFolder, Input: fmt.Sprintf(`{"command":"`+line+`"}`, i)}).Covers(s)
			}
		})
	}
}
