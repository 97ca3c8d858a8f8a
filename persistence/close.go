package persistence

import (
	"context"
	"errors"
)

// Close makes durable what was appended, as long as ctx lets it, releases everyone who waits, writes the
// high-water mark and a snapshot of the index, and ends the server. Appends made after it began are lost.
// It returns why anything was lost that was not lost before.
func (j *Journal) Close(ctx context.Context) error {
	j.closed.Do(func() { j.ended = j.close(ctx) })
	return j.ended
}

func (j *Journal) close(ctx context.Context) error {
	var errs []error
	before := j.Err()
	if err := j.drain(ctx); err != nil {
		errs = append(errs, err)
	}
	after := j.Err()
	if after != nil && before == nil {
		errs = append(errs, after)
	}
	j.fail(errClosed)
	if err := j.drain(context.WithoutCancel(ctx)); err != nil { // all are released now, one way or the other
		errs = append(errs, err)
	}
	j.quiet()
	j.tasks.Wait()
	j.busy.Lock()
	defer j.busy.Unlock()
	if after == nil {
		if err := j.saveIndex(ctx); err != nil {
			j.log.Warn("the index snapshot cannot be stored", "error", err)
		}
	}
	if err := j.writeMark(); err != nil {
		j.log.Warn("the high-water mark is behind", "error", err)
	}
	j.way().close()
	j.frames.drop()
	return errors.Join(append(errs, j.high.close())...)
}

// drain waits until nothing is pending and everyone is released.
func (j *Journal) drain(ctx context.Context) error {
	o := &j.order
	o.Lock()
	if o.empty == nil {
		o.empty = make(chan struct{})
	}
	empty := o.empty
	o.settledSome()
	o.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
