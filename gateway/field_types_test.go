package gateway

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"parley/events"
	"parley/mailbox/form"
)

// The page's script has the table of field types as a module, and what else lists the types lists those of the table.
func TestListsOfFieldTypes(t *testing.T) {
	t.Parallel()
	text := func(begin, between, end string) string { return begin + strings.Join(form.Names(), between) + end }
	const enum = "\"enum\": [\n                  "
	for path, list := range map[string]struct{ pattern, want string }{
		"web/assets/static/types.js":      {`(?s)^.*$`, typesModule(t)},
		"web/assets/static/elements.d.ts": {`type\?: '' \| 'text'[^;]*;`, text("type?: '' | '", "' | '", "';")},
		"mcp/tools.json":                  {`"enum": \[\s*"text",[^\]]*\]`, text(enum+"\"", "\",\n                  \"", "\"\n                ]")},
		"../docs/forms.md":                {"`type` \\| `text`[^|]*\\|", text("`type` | `", "` `", "` |")},
	} {
		had, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		lists := regexp.MustCompile(list.pattern)
		got := lists.ReplaceAllLiteral(had, []byte(list.want))
		if !lists.Match(had) {
			t.Errorf("%s has no list of the types of fields", path)
		}
		if bytes.Equal(got, had) {
			continue
		}
		if f := flag.Lookup("rewrite"); f == nil || f.Value.String() != "true" {
			t.Errorf("%s is another: look at what changed, and run go test -run %s ./gateway -rewrite if it is wanted", path, t.Name())
		} else if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// typesModule returns the table as a module of JavaScript.
func typesModule(t *testing.T) string {
	t.Helper()
	type row struct {
		Says   string          `json:"says"`
		Asks   form.Control    `json:"asks"`
		Ticks  form.Control    `json:"ticks,omitempty"`
		Takes  form.Taking     `json:"takes"`
		Given  []events.Option `json:"given,omitempty"`
		Format string          `json:"format,omitempty"`
		Hint   bool            `json:"hint,omitempty"`
	}
	var b strings.Builder
	b.WriteString("// Written from the node's table of field types by a test, TestListsOfFieldTypes: not by hand.\n\n" +
		"/** What each type says, by which kind of control it asks, also with options (ticks), whether it takes options, and whether it has a placeholder (hint). */\n" +
		"export const types = {\n")
	for _, is := range form.Types {
		text, err := json.Marshal(row{is.Says, is.Asks, is.Ticks, is.Takes, is.Given, is.Format, is.Hint})
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("  \"" + string(is.Name) + "\": " + string(text) + ",\n")
	}
	return b.String() + "};\n"
}
