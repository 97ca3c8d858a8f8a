package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/internal/eventually"
)

const (
	loadGuests  = 4
	loadRetry   = 10 * time.Millisecond // between two attempts at a call
	loadAttempt = 2 * time.Second       // time limit of an attempt, whose result is then unknown
)

// load is programs that use a node: guests ask and its host answers. They repeat unacknowledged calls with the same key,
// wherever the node runs.
type load struct {
	t       *testing.T
	nodes   []*clusterNode // that may run the node
	current atomic.Int64   // the index of the last that acknowledged
	stop    chan struct{}
	tasks   sync.WaitGroup
	ended   sync.Once

	acks atomic.Int64

	mu       sync.Mutex
	latest   time.Time         // of the last acknowledgement
	longest  time.Duration     // between two acknowledgements
	asked    map[string]string // key by form
	answered map[string]string // answer by form
}

// startLoad makes the guests, which work until stopped is called.
func startLoad(t *testing.T, nodes ...*clusterNode) *load {
	t.Helper()
	l := &load{t: t, nodes: nodes, stop: make(chan struct{}), asked: map[string]string{}, answered: map[string]string{}}
	for i := range loadGuests {
		name := fmt.Sprint("guest", i)
		err := nodes[0].client.Call(t.Context(), "make_agent", api.MakeAgentRequest{Name: name}, nil)
		if err != nil && parley.CodeOf(err) != parley.NameTaken {
			t.Fatal(err)
		}
		l.tasks.Go(func() { l.work(name) })
	}
	t.Cleanup(l.end)
	return l
}

// end waits until each guest has finished its present form.
func (l *load) end() {
	l.ended.Do(func() { close(l.stop) })
	l.tasks.Wait()
}

func (l *load) work(name string) {
	for i := 0; ; i++ {
		select {
		case <-l.stop:
			return
		default:
		}
		key := fmt.Sprint(name, "/", i)
		form, ok := l.ask(name, key)
		if !ok {
			return
		}
		if i%4 == 3 {
			continue // some stay open
		}
		if !l.answer(name, form, "answer to "+key) {
			return
		}
	}
}

func (l *load) ask(name, key string) (form string, ok bool) {
	var asked view.Asked
	err := l.attempt(func(ctx context.Context, c *client.Client) error {
		return c.Call(ctx, "form", formRequest(name, "HOST", key), &asked)
	})
	if err != nil {
		l.t.Errorf("ask %s: %v", key, err)
		return "", false
	}
	form = asked.Form.String()
	l.acknowledged(l.asked, form, key)
	return form, true
}

func formRequest(as, to, key string) api.FormRequest {
	return api.FormRequest{Acting: api.Acting{As: as}, Form: parley.Form{
		To:          to,
		Description: key,
		Key:         key,
		Fields:      []events.Field{{Name: "a", Type: events.Text, Required: true}},
	}}
}

func answerRequest(form, value string) api.RespondFormRequest {
	return api.RespondFormRequest{FormRef: api.RefTo(form), Answer: parley.Answer{Values: map[string]capabilities.Value{"a": capabilities.String(value)}}}
}

func (l *load) answer(name, form, value string) bool {
	err := l.attempt(func(ctx context.Context, c *client.Client) error {
		err := c.Call(ctx, "respond_form", answerRequest(form, value), nil)
		if parley.CodeOf(err) != parley.AlreadyAnswered {
			return err
		}
		var got view.Outcome // of an earlier attempt without a response
		if err := c.Call(ctx, "await", api.AwaitRequest{Acting: api.Acting{As: name}, FormRef: api.RefTo(form)}, &got); err != nil {
			return err
		}
		if got.Values.Text() != answerText(value) {
			return fmt.Errorf("it has the answer %s", got.Values.Text())
		}
		return nil
	})
	if err != nil {
		l.t.Errorf("answer %s with %q: %v", form, value, err)
		return false
	}
	l.acknowledged(l.answered, form, value)
	return true
}

func answerText(value string) string {
	return capabilities.Record(map[string]capabilities.Value{"a": capabilities.String(value)}).Text()
}

// acknowledged records an acknowledged form or answer.
func (l *load) acknowledged(kept map[string]string, form, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.longest, l.latest = max(l.longest, now.Sub(l.latest)), now
	kept[form] = what
	l.acks.Add(1)
}

// attempt repeats a call at each node in turn until it is acknowledged or finally refused.
func (l *load) attempt(do func(context.Context, *client.Client) error) error {
	tick := time.NewTicker(loadRetry)
	defer tick.Stop()
	for {
		current := l.current.Load()
		ctx, cancel := context.WithTimeout(l.t.Context(), loadAttempt)
		err := do(ctx, l.nodes[current%int64(len(l.nodes))].client)
		gaveUp := ctx.Err() != nil
		cancel()
		switch code := parley.CodeOf(err); {
		case err == nil:
			return nil
		case l.t.Context().Err() != nil:
			return err
		case !gaveUp && code != parley.NotRunning && code != parley.ReadOnly && code != parley.Timeout:
			return err
		}
		l.current.CompareAndSwap(current, current+1)
		<-tick.C
	}
}

// more waits for a number of further acknowledgements.
func (l *load) more(t *testing.T, n int64) {
	t.Helper()
	want := l.acks.Load() + n
	eventually.Holds(t, "the load is acknowledged", func() bool { return l.acks.Load() >= want || t.Failed() })
}

// gap interrupts the load by a function, and returns the time without acknowledgements.
func (l *load) gap(t *testing.T, interrupt func()) time.Duration {
	t.Helper()
	l.mu.Lock()
	l.longest = 0
	l.mu.Unlock()
	interrupt()
	l.more(t, 2*loadGuests) // each guest may have one under way
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.longest
}

// check compares a node's state with the acknowledgements: each event is there, once, and both sides of each form agree.
func (l *load) check(t *testing.T, n *clusterNode) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	eventually.Holds(t, "all mail is delivered", func() bool {
		for i := range loadGuests {
			for _, e := range n.inbox(t, fmt.Sprint("guest", i)) {
				if !e.Delivered {
					return false
				}
			}
		}
		return true
	})
	var host map[string]view.Message
	eventually.Holds(t, "both sides agree", func() bool {
		host = n.inbox(t, "")
		return l.agree(t, n, host)
	})
	keys := map[string]bool{}
	for form, e := range host {
		if keys[e.Description] {
			t.Errorf("%q is asked twice", e.Description)
		}
		keys[e.Description] = true
		if want := l.answered[form]; want != "" && answerOf(e) != answerText(want) {
			t.Errorf("form %s: acknowledged %q, has %s", form, want, answerOf(e))
		}
	}
	for form, key := range l.asked {
		if _, ok := host[form]; !ok {
			t.Errorf("form %s, which asks %s, was acknowledged and is gone", form, key)
		}
	}
	n.verify(t)
}

func (l *load) agree(t *testing.T, n *clusterNode, host map[string]view.Message) bool {
	t.Helper()
	count := 0
	for i := range loadGuests {
		for form, e := range n.inbox(t, fmt.Sprint("guest", i)) {
			copied, ok := host[form]
			if !ok || answerOf(copied) != answerOf(e) {
				return false
			}
			count++
		}
	}
	return count == len(host)
}

// inbox returns all messages of an agent, and fails if one is repeated or a number is missing.
func (n *clusterNode) inbox(t *testing.T, as string) map[string]view.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	all := map[string]view.Message{}
	for first := uint64(0); ; {
		var page view.Inbox
		err := n.client.Call(ctx, "list_messages", api.ListMessagesRequest{
			Acting: api.Acting{As: as}, MessageFilter: view.MessageFilter{All: true}, First: first,
		}, &page)
		if err != nil {
			t.Fatalf("inbox of %q: %v", as, err)
		}
		for _, e := range page.Messages {
			if _, twice := all[e.MessageID.String()]; twice || e.Number != uint64(len(all)) {
				t.Fatalf("message %d of %q stands twice, or one before it is missing", e.Number, as)
			}
			all[e.MessageID.String()] = e
		}
		if first = page.Next; first == 0 {
			return all
		}
	}
}

func answerOf(e view.Message) string {
	if e.Outcome == nil {
		return ""
	}
	return e.Outcome.Values.Text()
}

// nightly returns the number of rounds: by day, or by night.
func nightly(day, night int) int {
	if os.Getenv("PARLEY_NIGHTLY") != "" {
		return night
	}
	return day
}
