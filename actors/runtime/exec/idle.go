package exec

import (
	"parley"
	"parley/actors/runtime"
)

// idling drops what a process puts out between runs.
type idleOutput struct {
	quit, done chan struct{}
}

func startIdle(w *runtime.Worker) *idleOutput {
	i := &idleOutput{quit: make(chan struct{}), done: make(chan struct{})}
	go i.drop(w)
	return i
}

func (i *idleOutput) drop(w *runtime.Worker) {
	defer close(i.done)
	out, errs := w.Out.Pieces, w.Errs.Pieces
	for {
		select {
		case p, ok := <-out:
			if !ok {
				out = nil
			} else if l, plain, _ := parseLine(p.Text); !plain && l.ID != "" {
				w.In.Offer(refusal(l.ID, parley.Refuse(parley.InvalidArgument, "there is no run that this is for")))
			}
		case _, ok := <-errs:
			if !ok {
				errs = nil
			}
		case <-i.quit:
			return
		}
	}
}

func (i *idleOutput) stop() {
	close(i.quit)
	<-i.done
}
