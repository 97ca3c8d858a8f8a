package exec

import (
	"context"
	"encoding/json"
	"sync"

	"parley"
	"parley/actors/runtime"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
)

// requests are the open questions of a run. Each of them waits in a goroutine, and is answered on the program's input.
type requests struct {
	ctx     context.Context
	cancel  context.CancelFunc // ends the waiting; what was asked stays asked
	host    runtime.Host
	in      *runtime.LineWriter
	slots   chan struct{}
	waiting sync.WaitGroup

	mu   sync.Mutex
	byID map[string]bool
}

func newRequests(ctx context.Context, d runtime.Host, in *runtime.LineWriter) *requests {
	r := &requests{host: d, in: in, slots: make(chan struct{}, runtime.MaxOpen), byID: map[string]bool{}}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r
}

// close cancels all waiting questions, and returns when their goroutines have ended.
func (r *requests) close() {
	r.cancel()
	r.waiting.Wait()
}

// open asks a question of the program, or refuses it.
func (r *requests) open(l line) {
	if err := r.enter(l.ID); err != nil {
		r.in.Offer(refusal(l.ID, err))
		return
	}
	r.waiting.Go(func() {
		defer func() { <-r.slots }()
		reply := r.settle(l)
		r.leave(l.ID) // it may be asked again as soon as it is answered
		if r.ctx.Err() == nil {
			r.in.Put(r.ctx, reply)
		}
	})
}

func (r *requests) enter(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[id] {
		return parley.Refuse(parley.InvalidArgument, "%q is open already", id)
	}
	select {
	case r.slots <- struct{}{}:
	default:
		return parley.Refuse(parley.RateLimited, "%d questions are open already", runtime.MaxOpen)
	}
	r.byID[id] = true
	return nil
}

func (r *requests) leave(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, id)
}

// settle waits for the end of a question, and returns the line for the program.
func (r *requests) settle(l line) runtime.Frame {
	if l.Type == typeApproval {
		d, err := r.host.Approve(r.ctx, l.call())
		if err != nil {
			return refusal(l.ID, err)
		}
		return runtime.NewFrame(decisionLine{Type: "decision", ID: l.ID, Approved: d.Allowed && !d.Ended, Always: d.Always, Reason: d.Reason})
	}
	q, err := l.question()
	if err != nil {
		return refusal(l.ID, err)
	}
	a, err := r.host.Ask(r.ctx, q)
	if err != nil {
		return refusal(l.ID, err)
	}
	answer := answerLine{Type: "answer", ID: l.ID, Status: a.Status, By: a.By, Note: a.Note}
	if len(a.Values) > 0 {
		answer.Values = a.Values
		if l.Type == typeAsk {
			answer.Value = firstValue(q.Fields, a.Values)
		}
	}
	return runtime.NewFrame(answer)
}

// firstValue returns the value of the first field that has one. An answer in other words is that of its widget.
func firstValue(fields []events.Field, values []byte) json.RawMessage {
	var given map[string]json.RawMessage
	if json.Unmarshal(values, &given) != nil {
		return nil
	}
	for i, f := range fields {
		v, ok := given[f.Name]
		if !ok || string(v) == "null" {
			continue
		}
		if form.TakesOther(fields, i) {
			return inWords(f.Name, values)
		}
		return v
	}
	return nil
}

// inWords returns the answer to a widget that takes other words.
func inWords(name string, values []byte) json.RawMessage {
	v, err := capabilities.ParseJSON(values)
	if err != nil {
		return nil
	}
	given, _ := v.AsRecord()
	text, err := json.Marshal(form.WidgetAnswer(name, given))
	if err != nil {
		return nil
	}
	return text
}
