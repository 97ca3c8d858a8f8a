package main

import (
	"testing"

	"parley"
)

// TestRefusalOfACommandStaysItsOwn reads what a command that setup runs has written as it failed: its code and hint reach the person.
func TestRefusalOfACommandStaysItsOwn(t *testing.T) {
	for said, want := range map[string]parley.Error{
		"parley: INVALID_ARGUMENT: cannot listen on 127.0.0.1:7420: bind: address already in use\nhint: give another address with --listen, or --listen off for none\n": {
			Code: parley.InvalidArgument, Message: "parley start: cannot listen on 127.0.0.1:7420: bind: address already in use", Hint: "parley start: give another address with --listen, or --listen off for none",
		},
		"parley: NOT_RUNNING: no node\n": {Code: parley.NotRunning, Message: "parley start: no node"},
		"killed: 9\n":                    {Code: parley.Internal, Message: "parley start: killed: 9"},
		"":                               {Code: parley.Internal, Message: "parley start: "},
	} {
		if got := parley.AsError(refusalOf("start", said)); got.Code != want.Code || got.Message != want.Message || got.Hint != want.Hint {
			t.Errorf("%q: %+v", said, got)
		}
	}
}
