package runtime

// Worker is a process with the readers and the writer of its pipes.
type Worker struct {
	*process
	In   *LineWriter
	Out  *LineReader
	Errs *LineReader
}

// StartWorker starts a process. With a protocol, a line of output over MaxLine is an error. Without one, long lines are
// cut, and standard error is merged into the output.
func StartWorker(s Spec, environment []string, protocol bool) (*Worker, error) {
	p, err := start(s, environment, !protocol)
	if err != nil {
		return nil, err
	}
	w := &Worker{process: p, In: newLineWriter(p.input), Errs: newLineReader(p.errors, p.Exited, false, MaxText)}
	if protocol {
		w.Out = newLineReader(p.output, p.Exited, true, MaxLine)
	} else {
		w.Out = newLineReader(p.output, p.Exited, false, MaxText)
	}
	go w.In.write()
	go w.Out.read()
	go w.Errs.read()
	return w, nil
}

// HasExited reports whether the process has ended.
func (w *Worker) HasExited() bool {
	select {
	case <-w.Exited:
		return true
	default:
		return false
	}
}

// Shutdown ends the process if it still runs, and waits for its readers and its writer.
func (w *Worker) Shutdown() {
	w.In.Close()
	w.End()
	w.Out.abandon()
	w.Errs.abandon()
	<-w.In.ended
	for range w.Out.Pieces {
	}
	for range w.Errs.Pieces {
	}
}
