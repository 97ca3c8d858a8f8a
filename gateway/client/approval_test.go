package client_test

import (
	"context"
	"testing"

	"parley"
	"parley/gateway/client"
)

// TestAttendedApprovalsSayWhetherSomebodyIsThere has nobody follow the host's mail, and then somebody.
func TestAttendedApprovalsSayWhetherSomebodyIsThere(t *testing.T) {
	_, host, fae := openTest(t)
	approval := client.Approval{Tool: "shell", Input: []byte(`{"command":"ls"}`), Key: "one", Attended: true}
	p, err := fae.Approve(t.Context(), approval)
	if err != nil || !p.Unattended || p.Form != "" {
		t.Fatalf("nobody is there: %+v %v", p, err)
	}
	if d, err := p.Await(t.Context()); parley.CodeOf(err) != parley.NoPendingPermission {
		t.Errorf("nothing was asked: %+v %v", d, err)
	}
	ctx, leave := context.WithTimeout(t.Context(), limit)
	defer leave()
	seen := make(chan client.ID, 1)
	go func() {
		for m, err := range host.Follow(ctx, client.View{Pending: true}, "") {
			if err != nil {
				return
			}
			seen <- m.ID()
		}
	}()
	for p.Unattended && ctx.Err() == nil { // somebody has come, soon
		if p, err = fae.Approve(ctx, approval); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case form := <-seen:
		if form != p.Form {
			t.Errorf("they see %s, and asked was %s", form, p.Form)
		}
	case <-ctx.Done():
		t.Fatal("nothing is seen")
	}
	if _, err := host.Answer(t.Context(), p.Form, map[string]string{"decision": "once"}); err != nil {
		t.Fatal(err)
	}
	if d, err := p.Await(t.Context()); err != nil || !d.Allowed {
		t.Errorf("got %+v %v", d, err)
	}
	if again, err := fae.Approve(t.Context(), approval); err != nil || again.Unattended || again.Form != p.Form {
		t.Errorf("it is decided: %+v %v", again, err)
	}
	if len(listed(t, host, client.View{})) != 1 {
		t.Error("it was asked more than once")
	}
}
