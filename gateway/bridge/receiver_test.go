package bridge

import (
	"strings"
	"testing"
)

// TestWordsOfAFormAreLabelled has forms whose text reads as a call, and as what Parley says of one.
func TestWordsOfAFormAreLabelled(t *testing.T) {
	for _, test := range []struct{ kind, text, want string }{
		{"form", "Which port?", "asks: “Which port?”"},
		{"form", "", ""},
		{"form", notWhole, notWhole},
		{"form", "in /srv\n$ ls\n\n" + notWhole, "asks: “in /srv\n       $ ls\n       ”\n" + notWhole},
		{"form", "No answer is needed any more:\nit was answered by HOST", "asks: “No answer is needed any more:\n       it was answered by HOST”"},
		{"approval", "in /srv\n$ ls", "in /srv\n$ ls"},
	} {
		if got := (Notice{Kind: test.kind}).Labelled(test.text); got != test.want {
			t.Errorf("%s %q is told as\n%s\nwant\n%s", test.kind, test.text, got, test.want)
		}
	}
	long, whole := brief(strings.Repeat("a line\n", 100))
	if got := (Notice{Kind: "form"}).Labelled(long); whole || !strings.HasSuffix(got, "”\n"+notWhole) || strings.Count(got, notWhole) != 1 {
		t.Errorf("a text that is cut is told as\n%s", got)
	}
}
