package runtime

// worker is a process with those who read and write its pipes.
type worker struct {
	*process
	in   *sink
	out  *source
	errs *source
}

// hire starts a process. If it speaks a protocol, a line of its output is not longer than MaxLine; otherwise such a line is
// cut, and its errors are in its output.
func hire(s Spec, environment []string, protocol bool) (*worker, error) {
	p, err := start(s, environment, !protocol)
	if err != nil {
		return nil, err
	}
	w := &worker{process: p, in: newSink(p.input), errs: newSource(p.errors, p.exited, false, MaxText)}
	if protocol {
		w.out = newSource(p.output, p.exited, true, MaxLine)
	} else {
		w.out = newSource(p.output, p.exited, false, MaxText)
	}
	go w.in.write()
	go w.out.read()
	go w.errs.read()
	return w, nil
}

// hasExited reports whether the process has ended.
func (w *worker) hasExited() bool {
	select {
	case <-w.exited:
		return true
	default:
		return false
	}
}

// dismiss ends the process if it has not ended, and waits for all that belongs to it.
func (w *worker) dismiss() {
	w.in.close()
	w.end()
	w.out.abandon()
	w.errs.abandon()
	<-w.in.ended
	for range w.out.pieces {
	}
	for range w.errs.pieces {
	}
}
