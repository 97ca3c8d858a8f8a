package actors

import (
	"context"
	"slices"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

// openNode opens a node in a folder and closes it with the test.
func openNode(tb testing.TB, folder string) *Node {
	tb.Helper()
	n, err := Open(context.Background(), Options{Folder: folder, Name: "test"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { closeNode(tb, n) })
	return n
}

func closeNode(tb testing.TB, n *Node) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Patience)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		tb.Error(err)
	}
}

func guest(tb testing.TB, n *Node, name string) *Agent {
	tb.Helper()
	a, err := n.Host().Make(tb.Context(), NewAgent{Kind: events.Guest, Name: name})
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func textField(name string) []events.Field {
	return []events.Field{{Name: name, Type: events.Text, Required: true}}
}

func text(name, value string) map[string]capabilities.Value {
	return map[string]capabilities.Value{name: capabilities.String(value)}
}

func ask(tb testing.TB, a *Agent, q parley.Form) view.Asked {
	tb.Helper()
	if q.To == "" {
		q.To = "HOST"
	}
	if q.Description == "" {
		q.Description = "something"
	}
	if q.Fields == nil {
		q.Fields = textField("a")
	}
	asked, err := a.Ask(tb.Context(), q)
	if err != nil {
		tb.Fatal(err)
	}
	return asked
}

func TestHostAnswersGuest(t *testing.T) {
	folder := t.TempDir()
	n := openNode(t, folder)
	fae := guest(t, n, "fae")
	asked := ask(t, fae, parley.Form{Name: "config"})

	in, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{Pending: true})
	if err != nil || len(in.Messages) != 1 || in.Messages[0].FromName != "fae" {
		t.Fatalf("inbox %+v, %v", in, err)
	}
	answered := make(chan view.Outcome, 1)
	go func() {
		o, err := fae.Await(t.Context(), capabilities.FormID(asked.Promise))
		if err != nil {
			t.Error(err)
		}
		answered <- o
	}()
	if _, err := n.Host().Answer(t.Context(), capabilities.FormNumber(0), parley.Answer{Texts: []events.FieldText{{Name: "a", Text: "hello"}}}); err != nil {
		t.Fatal(err)
	}
	if o := <-answered; o.Status != view.StatusAnswered || o.Values.Text() != `{"a":"hello"}` || o.ByName != "HOST" {
		t.Fatalf("%+v", o)
	}
	_, err = n.Host().Answer(t.Context(), capabilities.FormNumber(0), parley.Answer{Values: text("a", "again")})
	if parley.CodeOf(err) != parley.AlreadyAnswered {
		t.Fatalf("second answer: %v", err)
	}
	closeNode(t, n)

	n = openNode(t, folder)
	fae, err = n.ActAs(t.Context(), "fae")
	if err != nil {
		t.Fatal(err)
	}
	again := ask(t, fae, parley.Form{Name: "config"})
	if again.Outcome == nil || again.Outcome.Values.Text() != `{"a":"hello"}` {
		t.Fatalf("%+v", again)
	}
}

func TestPagesCoverTheInbox(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	for range 5 {
		ask(t, fae, parley.Form{})
	}
	if err := n.Host().Dismiss(t.Context(), capabilities.FormNumber(1)); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "all arrived", func() bool {
		in, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{})
		return err == nil && len(in.Messages) == 4
	})
	var numbers []uint64
	for first, pages := uint64(0), 0; ; pages++ {
		in, err := n.Host().Mail().Page(t.Context(), view.MessageFilter{}, first, 2)
		if err != nil || len(in.Messages) > 2 || pages > 3 {
			t.Fatalf("%d messages, %v", len(in.Messages), err)
		}
		for _, m := range in.Messages {
			numbers = append(numbers, m.Number)
		}
		if first = in.Next; first == 0 {
			break
		}
	}
	if want := []uint64{0, 2, 3, 4}; !slices.Equal(numbers, want) {
		t.Errorf("%v, want %v", numbers, want)
	}
	sent, err := fae.Message(t.Context(), capabilities.FormNumber(0))
	if err != nil || !sent.Delivered {
		t.Errorf("a message that has arrived is not shown as delivered: %v", err)
	}
}
