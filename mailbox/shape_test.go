package mailbox

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestShapeOfACommand(t *testing.T) {
	for command, want := range map[string]string{
		"ls":                    "command: ls",
		"  ls   -la ":           "command: ls -la",
		"git status":            "command: git status …",
		"git status -s":         "command: git status …",
		"git -C elsewhere log":  "command: git -C elsewhere log",
		"go test ./...":         "command: go test …",
		"rm notes":              "command: rm notes",
		"cat file.txt":          "command: cat file.txt",
		"":                      "exactly",
		"git status; rm x":      "exactly",
		"git status && rm x":    "exactly",
		"git log | sh":          "exactly",
		"git log > file":        "exactly",
		"git log\nrm x":         "exactly",
		"echo $(rm x)":          "exactly",
		"echo `rm x`":           "exactly",
		"echo $HOME":            "exactly",
		"rm *":                  "exactly",
		"rm ~":                  "exactly",
		"A=b ls":                "exactly",
		"./ls":                  "exactly",
		"/bin/ls":               "exactly",
		"../ls":                 "exactly",
		"bash script":           "exactly",
		"python3 script":        "exactly",
		"sudo ls":               "exactly",
		"xargs rm":              "exactly",
		"env ls":                "exactly",
		"ls 'a b'":              "exactly",
		`ls \; rm`:              "exactly",
		"find x -delete":        "exactly",
		"2ls":                   "exactly",
		"git status # and more": "exactly",
		"g\u0456t status":       "exactly", // a letter that only looks like one
	} {
		input, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		if got := shapeOf(string(input)); got != want && (want != "exactly" || !strings.HasPrefix(got, "exactly: ")) {
			t.Errorf("%q has the shape %q, want %q", command, got, want)
		}
	}
}

func TestInputsOfOtherToolsAreTheirOwnShape(t *testing.T) {
	for _, input := range []string{
		`{"command":"ls","timeout":5}`, `{"command":"ls","description":["ls"]}`, `{"description":"ls"}`, `{"title":"ls"}`, `{"command":"ls","title":5}`, `{"script":"ls","description":"ls"}`, `{"command":["ls"]}`, `{"path":"x"}`, `"ls"`, `null`, `[1]`, `{}`,
	} {
		if got := shapeOf(input); !strings.HasPrefix(got, "exactly: ") {
			t.Errorf("%s has the shape %q", input, got)
		}
	}
	if shapeOf(`{"command":"git status","description":"Look","title":"See"}`) != shapeOf(`{"command":"git status -s"}`) {
		t.Error("a command is another by the words that describe it")
	}
	if shapeOf(`{"path":"x"}`) == shapeOf(`{"path":"y"}`) {
		t.Error("different inputs have one shape")
	}
}
