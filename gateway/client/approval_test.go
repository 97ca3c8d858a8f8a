package client_test

import (
	"context"
	"strings"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/client"
)

// TestApprovalReportsWhetherItIsAttended asks first without a follower of the host's mail, and then with one.
func TestApprovalReportsWhetherItIsAttended(t *testing.T) {
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
	for p.Unattended && ctx.Err() == nil { // until the follower is known
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
	shown := listed(t, host, client.View{})[0]
	other := shown
	other.Digest = strings.Repeat("0", len(shown.Digest))
	if _, err := host.Decide(t.Context(), other, "once", ""); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("another call than was shown is decided: %v", err)
	}
	if o, err := host.Decide(t.Context(), shown, "once", "go on"); err != nil || !o.Allowed {
		t.Fatalf("the host allows it: %+v %v", o, err)
	}
	if d, err := p.Await(t.Context()); err != nil || !d.Allowed || d.Reason != "go on" || d.Outcome.Digest != shown.Digest {
		t.Errorf("got %+v %v", d, err)
	}
	if again, err := fae.Approve(t.Context(), approval); err != nil || again.Unattended || again.Form != p.Form {
		t.Errorf("it is decided: %+v %v", again, err)
	}
	if len(listed(t, host, client.View{})) != 1 {
		t.Error("it was asked more than once")
	}
}

// TestDecideManyHasAResultForEach decides on two approvals, of which one has ended and one is changed by its host.
func TestDecideManyHasAResultForEach(t *testing.T) {
	_, host, fae := openTest(t)
	first, err := fae.Approve(t.Context(), client.Approval{Tool: "shell", Input: []byte(`{"command":"ls"}`)})
	if err != nil {
		t.Fatal(err)
	}
	second, err := fae.Approve(t.Context(), client.Approval{Tool: "shell", Input: []byte(`{"command":"make"}`), Editable: true})
	if err != nil {
		t.Fatal(err)
	}
	shown := listed(t, host, client.View{Pending: true})
	const other = `{"command":"make test"}`
	if _, err := host.Answer(t.Context(), second.Form, map[string]string{"decision": "once", "input": other}); err != nil {
		t.Fatal(err)
	}
	many := api.DecideManyRequest{Key: client.NewKey()}
	for _, m := range shown {
		many.Decisions = append(many.Decisions, parley.Decision{Form: m.MessageID, Digest: m.Digest, Decision: "deny", Reason: "not now"})
	}
	got, err := api.DecideMany.Do(t.Context(), host, many)
	results := got.Results
	if err != nil || len(results) != 2 || results[0].Error != nil || results[0].Outcome.Status != view.StatusAnswered || parley.CodeOf(results[1].Error) != parley.AlreadyAnswered {
		t.Fatalf("%+v %v", results, err)
	}
	if d, err := first.Await(t.Context()); err != nil || d.Allowed || d.Reason != "not now" {
		t.Errorf("%+v %v", d, err)
	}
	if d, err := second.Await(t.Context()); err != nil || !d.Allowed || string(d.Input) != other || d.Outcome.EditedDigest == d.Outcome.Digest {
		t.Errorf("%+v %v", d, err)
	}
}
