package people

import (
	"testing"

	"parley/actors/view"
	"parley/capabilities"
)

func id(n byte) capabilities.ID { return capabilities.ID{ULID: [16]byte{n}} }

func coding(n byte, kind, title, folder string) view.AgentStatus {
	return view.AgentStatus{ID: id(n), Name: "claude-code-x-1", Title: title, Created: capabilities.Time(n), Labels: map[string]string{LabelKind: kind, LabelProgram: "claude-code", LabelFolder: folder}}
}

func TestAgentsHaveNames(t *testing.T) {
	elsewhere := coding(12, CodingAgent, "Codex · shop", "/x/shop")
	elsewhere.ID.Node, elsewhere.Name = capabilities.NodeOf([32]byte{1}), "their-codex"
	n := NamesOf(id(1), []view.AgentStatus{
		coding(2, CodingAgent, "Claude Code · shop", "/home/me/acme/shop"),
		coding(3, CodingSession, "Claude Code · shop · 1", "/home/me/acme/shop"),
		coding(4, CodingSession, "Claude Code · shop · 2", "/home/me/acme/shop"),
		coding(5, CodingAgent, "Codex · shop", "/home/me/acme/shop"),
		coding(6, CodingAgent, "Claude Code · api", "/home/me/acme/api"),
		coding(7, CodingAgent, "Claude Code · api", "/home/me/other/api"),
		coding(8, CodingAgent, "Codex · deep", "b3a0"),
		{ID: id(9), Name: "planner", Title: "Plans"},
		{ID: id(10), Title: "Claude Code · shop"}, // a title alone is no coding agent
		elsewhere,
	})
	for want, i := range map[string]capabilities.ID{
		"you": id(1), "Claude Code · shop · 2": id(4), "Codex · shop": id(5), "Claude Code · acme/api": id(6), "Claude Code · other/api": id(7), "Codex · deep": id(8), "planner": id(9), "their-codex": elsewhere.ID,
	} {
		if got := n.Of(i, "pet"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, i := range []byte{2, 3} { // a folder with one session is one agent for a person
		if got := n.Of(id(i), ""); got != "Claude Code · shop" {
			t.Errorf("%q", got)
		}
	}
	if got := n.Of(id(77), "pet"); got != "pet" {
		t.Errorf("%q", got)
	}
}
