package call_test

import (
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/gateway/call"
	"parley/gateway/call/risk"
)

// TestUsesAreReadAsFacts reads uses of resources: what each does is known, and who uses what stands apart from what an agent says.
func TestUsesAreReadAsFacts(t *testing.T) {
	for _, c := range []struct {
		kind  capabilities.Kind
		input string
		line  string
		mark  string
		level risk.Level
	}{
		{capabilities.KindFolder, `{"input":{},"verb":"list"}`, "List the folder notes", "", risk.None},
		{capabilities.KindFolder, `{"input":{"path":"docs/plan.md"},"verb":"read"}`, "Read docs/plan.md in notes", "", risk.None},
		{capabilities.KindFolder, `{"input":{"path":"docs/id_rsa"},"verb":"read"}`, "Read docs/id_rsa in notes", "Private keys", risk.High},
		{capabilities.KindFolder, `{"input":{"content":"a\nb\n","path":"docs/plan.md"},"verb":"write"}`, "Write docs/plan.md in notes", "Changes data", risk.Notable},
		{capabilities.KindFile, `{"input":{},"verb":"read"}`, "Read the file notes", "", risk.None},
		{capabilities.KindSecret, `{"input":{"url":"https://api.example/v1"},"verb":"request"}`, "Request GET https://api.example/v1", "", risk.None},
		{capabilities.KindSecret, `{"input":{"method":"POST","url":"https://api.example/v1"},"verb":"request"}`, "Request POST https://api.example/v1", "Changes data", risk.Notable},
		{capabilities.KindSecret, `{"input":{"method":"DELETE","url":"https://api.example/prod/1"},"verb":"request"}`, "Request DELETE https://api.example/prod/1", "Deletes in prod", risk.High},
		{capabilities.KindTool, `{"input":{},"verb":"list"}`, "List the tool notes", "", risk.None},
		{capabilities.KindTool, `{"input":{"arguments":{"text":"x"},"tool":"find_text"},"verb":"call"}`, "Use notes · find_text", "", risk.None},
		{capabilities.KindTool, `{"input":{"tool":"delete_all"},"verb":"call"}`, "Use notes · delete_all", "Deletes data", risk.Notable},
		{capabilities.KindTool, `{"input":{},"verb":"call","more":1}`, "Use use notes", "Can't be read", risk.High},
	} {
		p := parley.Permission{Tool: "use notes", Input: c.input, Use: &parley.AskedUse{Holder: "fae", Through: "bob", Kind: c.kind, Name: "notes", Called: "the \"plans\""}}
		r := call.Read(&p)
		mark := append(r.Risks.Marks(), "")[0]
		if !strings.HasPrefix(r.Line, c.line) || mark != c.mark || r.Risks.Level() != c.level {
			t.Errorf("%s of a %s is %q with %q, %v", c.input, c.kind, r.Line, mark, r.Risks)
		}
		rows := r.Rows()
		if want := `Used by fae: the ` + string(c.kind) + ` notes, which it calls "the \"plans\"", and has from bob`; len(call.Said(&p)) > 0 || rows[0].Text != want || rows[0].Kind != call.FolderRow {
			t.Errorf("the rows are %v", rows)
		}
	}
	for _, c := range []struct{ use, want string }{{"", "an agent without a name"}, {"bob", "an agent that has it from bob"}} {
		if got := call.Holder(&parley.AskedUse{Through: c.use}); got != c.want {
			t.Errorf("the holder is %q", got)
		}
	}
	write := call.Read(&parley.Permission{Input: `{"input":{"content":"a\nb\n","path":"p"},"verb":"write"}`, Use: &parley.AskedUse{Kind: capabilities.KindFolder, Name: "n"}})
	if !slices.ContainsFunc(write.Blocks, func(b call.Block) bool { return b.Kind == call.File && b.Path == "p" && b.Added == 2 }) {
		t.Errorf("a write shows %+v", write.Blocks)
	}
}
