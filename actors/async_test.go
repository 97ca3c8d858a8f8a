package actors

import (
	"fmt"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/internal/eventually"
)

// asyncResult is one result of an asynchronous call.
type asyncResult struct {
	asked   *view.Asked
	outcome view.Outcome
	err     error
}

// startAsk starts an ask whose results are sent to a channel.
func startAsk(a *Agent, ask parley.Form) (results <-chan asyncResult, forget func()) {
	ch := make(chan asyncResult, 4)
	forget = BeginAsk(a, ask,
		func(asked view.Asked, err error) { ch <- asyncResult{asked: &asked, err: err} },
		func(o view.Outcome, err error) { ch <- asyncResult{outcome: o, err: err} })
	return ch, forget
}

// TestAsyncAskDeliversOutcomeOnce asks without a goroutine that waits. The ask's result comes first and then the outcome,
// once.
func TestAsyncAskDeliversOutcomeOnce(t *testing.T) {
	n := openWith(t, Options{Folder: t.TempDir()})
	fae := guest(t, n, "fae")
	ask := parley.Form{To: "HOST", Description: "x", Key: "k", Fields: textField("a")}
	results, _ := startAsk(fae, ask)
	asked := <-results
	if asked.err != nil || asked.asked == nil || asked.asked.Outcome != nil {
		t.Fatalf("%+v", asked)
	}
	again, _ := startAsk(fae, ask) // the same form
	if second := <-again; second.err != nil || second.asked.Form != asked.asked.Form {
		t.Fatalf("%+v", second)
	}
	dropped, forget := startAsk(fae, ask)
	<-dropped
	forget()
	ref := capabilities.FormID(asked.asked.Form)
	waited := make(chan asyncResult, 2)
	BeginAwait(fae, ref, nil, func(o view.Outcome, err error) { waited <- asyncResult{outcome: o, err: err} })
	answered := make(chan asyncResult, 2)
	answer := parley.Answer{Values: map[string]capabilities.Value{"a": capabilities.String("yes")}}
	BeginAnswer(t.Context(), n.Host(), ref, answer, func(o view.Outcome, err error) { answered <- asyncResult{outcome: o, err: err} })
	for name, ch := range map[string]<-chan asyncResult{"the ask": results, "the second": again, "an await": waited, "the answer": answered} {
		got := <-ch
		if v := fmt.Sprint(got.outcome.Values); got.err != nil || got.asked != nil || got.outcome.Status != view.StatusAnswered || v == "" {
			t.Errorf("%s: %+v", name, got)
		}
		if len(ch) > 0 {
			t.Errorf("%s has another result: %+v", name, <-ch)
		}
	}
	if len(dropped) > 0 {
		t.Errorf("a forgotten ask has the result %+v", <-dropped)
	}
	late, _ := startAsk(fae, ask)
	if got := <-late; got.err != nil || got.asked.Outcome == nil || got.asked.Outcome.Status != view.StatusAnswered {
		t.Errorf("after its end: %+v", got)
	}
	BeginAnswer(t.Context(), n.Host(), ref, answer, func(o view.Outcome, err error) { answered <- asyncResult{outcome: o, err: err} })
	if got := <-answered; parley.CodeOf(got.err) != parley.AlreadyAnswered {
		t.Errorf("a second answer: %+v", got)
	}
	wrong, _ := startAsk(fae, parley.Form{To: "unknown", Description: "x", Fields: textField("a")})
	if got := <-wrong; parley.CodeOf(got.err) != parley.UnknownRecipient {
		t.Errorf("for an unknown recipient: %+v", got)
	}
	eventually.Holds(t, "no call waits", func() bool { return n.ended.count.Load() == 0 })
}

// BenchmarkAsyncAsks keeps as many asks pending as the name says, without a goroutine for any of them.
func BenchmarkAsyncAsks(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			n := openWith(b, Options{Folder: b.TempDir()})
			ended := make(chan error, callers)
			agents := make([]*Agent, callers)
			for i := range agents {
				agents[i] = guest(b, n, fmt.Sprintf("g%d", i))
			}
			begin := func(i, k int) {
				BeginAsk(agents[i], parley.Form{To: "HOST", Description: "x", Key: fmt.Sprint(k), Fields: textField("a")},
					func(asked view.Asked, err error) {
						if err != nil {
							ended <- err
							return
						}
						BeginAnswer(b.Context(), n.Host(), capabilities.FormID(asked.Form), parley.Answer{Values: map[string]capabilities.Value{"a": capabilities.String("y")}},
							func(_ view.Outcome, err error) {
								if err != nil {
									ended <- err
								}
							})
					},
					func(_ view.Outcome, err error) { ended <- err })
			}
			b.ResetTimer()
			for i := range min(callers, b.N) {
				begin(i, i)
			}
			for k := range b.N {
				if err := <-ended; err != nil {
					b.Fatal(err)
				}
				if next := k + callers; next < b.N {
					begin(next%callers, next)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
		})
	}
}
