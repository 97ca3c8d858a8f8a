package api

import (
	"testing"

	"parley"
)

func TestLoadRefusesAboveItsBounds(t *testing.T) {
	const room = 3 * BodyFree
	l, account := NewLoad(2, 1, room), &testAccount{limit: map[Kind]int64{KindMemory: 2 * BodyFree}}
	admit := func(k Kind, size int, want parley.Code) func() {
		t.Helper()
		leave, err := l.Admit(k, account, size)
		if parley.CodeOf(err) != want {
			t.Fatalf("%v, want %q", err, want)
		}
		return leave
	}
	first := admit(KindCalls, 10, "")
	second := admit(KindCalls, 10, "")
	admit(KindCalls, 10, parley.RateLimited) // a third call
	wait := admit(KindWaits, 10, "")         // waits have places of their own
	admit(KindWaits, 10, parley.RateLimited)
	if l.Calls() != 2 {
		t.Errorf("%d calls are under way", l.Calls())
	}
	second()
	admit(KindCalls, room, parley.RateLimited)         // the connection's room
	admit(KindCalls, 2*BodyFree+1, parley.RateLimited) // the account's
	large := admit(KindCalls, BodyFree+1, "")          // a refusal keeps no room of either
	if account.taken[KindMemory] != BodyFree+1 {
		t.Errorf("%d bytes are charged", account.taken[KindMemory])
	}
	for _, leave := range []func(){first, wait, large} {
		leave()
	}
	if l.Calls() != 0 || account.taken[KindMemory] != 0 {
		t.Errorf("%d calls and %d bytes stay", l.Calls(), account.taken[KindMemory])
	}
	if free, err := l.Keep(nil, room); err != nil {
		t.Errorf("the whole room: %v", err)
	} else {
		free()
	}
}
