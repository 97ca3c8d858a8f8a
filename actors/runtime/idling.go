package runtime

import "parley"

// idling drops what a process puts out between runs.
type idling struct {
	quit, done chan struct{}
}

func idle(w *worker) *idling {
	i := &idling{quit: make(chan struct{}), done: make(chan struct{})}
	go i.drop(w)
	return i
}

func (i *idling) drop(w *worker) {
	defer close(i.done)
	out, errs := w.out.pieces, w.errs.pieces
	for {
		select {
		case p, ok := <-out:
			if !ok {
				out = nil
			} else if l, plain, _ := parseLine(p.text); !plain && l.ID != "" {
				w.in.offer(refusal(l.ID, parley.Refuse(parley.InvalidArgument, "there is no run that this is for")))
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

func (i *idling) stop() {
	close(i.quit)
	<-i.done
}

// idlingErrors keeps the end of what an agent writes to standard error between turns.
type idlingErrors struct{ quit, done chan struct{} }

func idleErrors(p *peer) *idlingErrors {
	i := &idlingErrors{quit: make(chan struct{}), done: make(chan struct{})}
	go i.keep(p)
	return i
}

func (i *idlingErrors) keep(p *peer) {
	defer close(i.done)
	errs := p.errs.pieces
	for {
		select {
		case piece, ok := <-errs:
			if !ok {
				errs = nil
			}
			p.note(piece.text)
		case <-i.quit:
			return
		}
	}
}

func (i *idlingErrors) stop() {
	close(i.quit)
	<-i.done
}
