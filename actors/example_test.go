package actors_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// node opens a node in a new folder and makes a guest.
func node(ctx context.Context) (host, fae *actors.Agent, end func()) {
	folder, err := os.MkdirTemp("", "parley")
	if err != nil {
		log.Fatal(err)
	}
	n, err := actors.Open(ctx, actors.Options{Folder: folder})
	if err != nil {
		log.Fatal(err)
	}
	fae, err = n.Host().Make(ctx, actors.NewAgent{Kind: events.Guest, Name: "fae"})
	if err != nil {
		log.Fatal(err)
	}
	return n.Host(), fae, func() {
		if err := n.Close(ctx); err != nil {
			log.Fatal(err)
		}
		if err := os.RemoveAll(folder); err != nil {
			log.Fatal(err)
		}
	}
}

// A guest asks its host for a setting and waits for the answer.
func ExampleAgent_Ask() {
	ctx := context.Background()
	host, fae, end := node(ctx)
	defer end()

	asked, err := fae.Ask(ctx, parley.Form{
		To:          "HOST",
		Description: "Which port?",
		Fields:      []events.Field{{Name: "port", Type: events.Number, Required: true}},
	})
	if err != nil {
		log.Fatal(err)
	}
	in, err := host.Mail().Inbox(ctx, view.MessageFilter{Pending: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(in.Messages[0].FromName, "asks:", in.Messages[0].Description)

	_, err = host.Answer(ctx, capabilities.FormNumber(0), parley.Answer{Values: map[string]capabilities.Value{"port": capabilities.Int(443)}})
	if err != nil {
		log.Fatal(err)
	}
	outcome, err := fae.Await(ctx, capabilities.FormID(asked.Form))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(outcome.Status, outcome.Values.Text())
	// Output:
	// fae asks: Which port?
	// answered {"port":443}
}

// An invalid answer is refused with an error for each field, and the form stays open.
func ExampleAgent_Answer() {
	ctx := context.Background()
	host, fae, end := node(ctx)
	defer end()

	_, err := fae.Ask(ctx, parley.Form{
		To:          "HOST",
		Description: "Deploy",
		Fields: []events.Field{
			{Name: "service", Type: events.Text, Required: true},
			{Name: "port", Type: events.Number, Pattern: []byte(`{"type":"integer","maximum":65535}`)},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = host.Answer(ctx, capabilities.FormNumber(0), parley.Answer{Values: map[string]capabilities.Value{"port": capabilities.Int(70000)}})
	e := parley.AsError(err)
	fmt.Println(e.Code)
	fmt.Println("service:", e.Fields["service"])
	fmt.Println("port:", e.Fields["port"])
	// Output:
	// INVALID_ANSWER
	// service: required
	// port: at most 65535
}

// An answer can be a live reference, which can be revoked.
func ExampleRequests_Resolve() {
	ctx := context.Background()
	host, fae, end := node(ctx)
	defer end()

	if _, err := host.Make(ctx, actors.NewAgent{Kind: events.Guest, Name: "worker"}); err != nil {
		log.Fatal(err)
	}
	if _, err := fae.Requests().Send(ctx, parley.Request{To: "HOST", Text: "a worker, please", Name: "helper"}); err != nil {
		log.Fatal(err)
	}
	if _, err := host.Requests().Resolve(ctx, capabilities.FormNumber(0), "worker", capabilities.Facet{}); err != nil {
		log.Fatal(err)
	}
	_, err := fae.Send(ctx, "helper", "hello")
	fmt.Println("sent:", err)

	grants, err := host.Names().Grants(ctx, view.GrantFilter{})
	if err != nil {
		log.Fatal(err)
	}
	if err := host.Names().Revoke(ctx, grants[0].ID); err != nil {
		log.Fatal(err)
	}
	_, err = fae.Send(ctx, "helper", "hello again")
	fmt.Println(parley.CodeOf(err))
	// Output:
	// sent: <nil>
	// NOT_PERMITTED
}

// Follow yields the present messages and then later ones, each once and without a gap.
func ExampleMail_Follow() {
	ctx := context.Background()
	host, fae, end := node(ctx)
	defer end()

	for _, text := range []string{"one", "two", "three"} {
		if _, err := fae.Send(ctx, "HOST", text); err != nil {
			log.Fatal(err)
		}
	}
	for e, err := range host.Mail().Follow(ctx, view.MessageFilter{}, 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d. %s\n", e.Number, e.Text)
		if e.Text == "three" {
			break
		}
	}
	// Output:
	// 0. one
	// 1. two
	// 2. three
}

// A node in a program, in four lines. README.md has them without the checks.
func ExampleOpen() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "parley")
	check(err)
	n, err := actors.Open(ctx, actors.Options{Folder: folder})
	check(err)
	fae, err := n.Host().Make(ctx, actors.NewAgent{Kind: events.Guest, Name: "fae"})
	check(err)
	asked, err := fae.Ask(ctx, parley.Form{To: "HOST", Description: "Which port?", Fields: []events.Field{{Name: "port", Type: events.Number}}})
	check(err)

	_, err = n.Host().Answer(ctx, capabilities.FormNumber(0), parley.Answer{Values: map[string]capabilities.Value{"port": capabilities.Int(443)}})
	check(err)
	outcome, err := fae.Await(ctx, capabilities.FormID(asked.Form))
	check(err)
	fmt.Println(outcome.Status)

	check(n.Close(ctx))
	check(os.RemoveAll(folder))
	// Output: answered
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
