package call

import (
	"testing"

	"pgregory.net/rapid"
)

func TestCommandIsReplacedInPlace(t *testing.T) {
	for input, want := range map[string]string{
		`{"command":"a"}`: `{"command":"x <\" && y"}`,
		"{ \"timeout\" : 5 ,\n \"command\"\t:\"a\" , \"b\":[1]}": "{ \"timeout\" : 5 ,\n \"command\"\t:\"x <\\\" && y\" , \"b\":[1]}",
		`{"a":{"command":"inner"},"command":"outer"}`:            `{"a":{"command":"inner"},"command":"x <\" && y"}`,
		`{"comm\u0061nd":"a"}`:                                   `{"comm\u0061nd":"x <\" && y"}`,
	} {
		if got := WithCommand(input, `x <" && y`); got != want {
			t.Errorf("%s: %s, want %s", input, got, want)
		}
	}
	for _, input := range []string{`{}`, `{"command":["a"]}`, `["command"]`, `no`, `{"command":"a","command":"b"}`} {
		if line, ok := CommandIn(input); ok {
			t.Errorf("%s has the command %q", input, line)
		}
	}
}

// TestReplacedCommandIsReadBack replaces the command of an input by any text.
func TestReplacedCommandIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.String().Draw(t, "line")
		got, ok := CommandIn(WithCommand(`{"description":"d","command":"old","n":1}`, line))
		if !ok || got != line {
			t.Errorf("%q, want %q", got, line)
		}
	})
}
