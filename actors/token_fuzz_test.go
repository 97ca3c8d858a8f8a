package actors

import (
	"strings"
	"testing"

	"parley/capabilities"
)

// FuzzToken reads any text as a token. One that is taken is the text of its parts.
func FuzzToken(f *testing.F) {
	n := &Node{id: capabilities.NodeOf([32]byte{31: 1})}
	const prefix = "ply_"
	f.Add("")
	f.Add(prefix + strings.Repeat("0", 52) + "SECRET")
	f.Add(prefix + strings.Repeat("7ZZZZZZZZZZZZZZZZZZZZZZZZZ", 2) + "SECRET")
	f.Add(prefix + strings.Repeat("0", 52) + strings.Repeat("x", maxSecret+1))
	f.Add(prefix + strings.Repeat("é", 60))
	f.Fuzz(func(t *testing.T, text string) {
		agent, token, secret, ok := parseToken(n, prefix, text)
		if !ok {
			return
		}
		if again := prefix + agent.ULID.String() + token.ULID.String() + secret; !strings.EqualFold(again, text) || agent.Node != n.id || token.Node != n.id {
			t.Errorf("%q is taken as %q", text, again)
		}
	})
}
