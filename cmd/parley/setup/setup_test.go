package setup

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/datadriven"

	"parley/cmd/parley/hook"
)

// TestSetupKeepsOtherSettings adds hooks and servers to all kinds of settings, and again to the results.
func TestSetupKeepsOtherSettings(t *testing.T) {
	hooks := []eventHook{ownHook(hook.PermissionRequest, "parley hook claude-code")}
	server := mcpServer{Type: "stdio", Command: "parley", Args: []string{"mcp", "--as", "fae"}}
	enterings := map[string]func(string) (string, error){
		"hook": func(text string) (string, error) {
			return entered(text, func(o object) (object, error) {
				is, ok := enterHooks(o, "claude-code", hooks)
				if !ok {
					return nil, fmt.Errorf("its hooks are not as they should be")
				}
				return is, nil
			})
		},
		"server": func(text string) (string, error) {
			return entered(text, func(o object) (object, error) { return enterServer(o, server) })
		},
		"block": func(text string) (string, error) {
			if text != "" {
				text += "\n" // the reader of the test file removes it
			}
			is, err := withBlock([]byte(text), serverBlock(server))
			return string(is), err
		},
	}
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			enter := enterings[d.Cmd]
			if enter == nil {
				t.Fatalf("%s: no command %s", d.Pos, d.Cmd)
			}
			once, err := enter(d.Input)
			if err != nil {
				return err.Error() + "\n"
			}
			again, err := enter(once)
			if d.Cmd == "block" {
				again, err = enter(once[:len(once)-1])
			}
			if err != nil || again != once {
				t.Errorf("%s: entered twice it is another (%v):\n%s", d.Pos, err, again)
			}
			return once
		})
	})
}

func entered(text string, enter func(object) (object, error)) (string, error) {
	was, ok := readObject([]byte(text))
	if !ok {
		return "", fmt.Errorf("no JSON object")
	}
	is, err := enter(was)
	if err != nil {
		return "", err
	}
	return string(indented(is.encode())), nil
}

func TestTOMLStrings(t *testing.T) {
	for s, want := range map[string]string{
		`a`: `"a"`, `a"b\`: `"a\"b\\"`, "a\x7f\n&": `"a\u007f\n&"`, "é": `"é"`,
	} {
		if got := tomlString(s); got != want {
			t.Errorf("%q is %s, want %s", s, got, want)
		}
	}
}
