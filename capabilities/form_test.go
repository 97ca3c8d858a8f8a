package capabilities

import (
	"strings"
	"testing"

	"parley/internal/fault"
)

func TestParseFormRef(t *testing.T) {
	id := testID(9)
	locator := Locator{ID: id, Kind: "form"}.String()
	for _, c := range []struct {
		text string
		want FormRef
	}{
		{"0", FormNumber(0)}, {"#7", FormNumber(7)}, {"18446744073709551615", FormNumber(1<<64 - 1)},
		{id.String(), FormID(id)}, {locator, FormID(id)},
	} {
		got, err := ParseFormRef(c.text)
		if err != nil || got != c.want {
			t.Errorf("%s: %v %v", c.text, got, err)
		}
		if again, err := ParseFormRef(got.String()); err != nil || again != got {
			t.Errorf("%s is parsed as %v, %v", got, again, err)
		}
	}
	if n, ok := FormNumber(0).Number(); n != 0 || !ok || FormNumber(0).IsZero() {
		t.Error("message 0 is taken for none")
	}
	if _, ok := FormID(id).Number(); ok || FormID(id).ID() != id {
		t.Error("an ID is taken for a number")
	}
	for _, bad := range []string{"", "#", "##1", "01", "-1", "1.0", "18446744073709551616", id.ULID.String(), locatorScheme + "://x", strings.Repeat("9", 30)} {
		ref, err := ParseFormRef(bad)
		if fault.CodeOf(err) != fault.InvalidArgument || !ref.IsZero() || !strings.HasSuffix(err.Error(), "is neither a message's number nor an ID") {
			t.Errorf("%q: %v %v", bad, ref, err)
		}
	}
}
