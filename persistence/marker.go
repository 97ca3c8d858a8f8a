package persistence

import (
	"context"
	"time"
)

// markEvery is how long the high-water mark may be behind the log.
const markEvery = 20 * time.Millisecond

// marker keeps the high-water mark near the last commit, until ctx ends.
func (j *Journal) marker(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.marks:
		}
		if err := j.writeMark(); err != nil {
			j.log.Warn("the high-water mark is behind", "error", err)
		}
		timer.Reset(markEvery)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// writeMark puts the last commit on the mark. That it fails does not fail the journal: the commit is
// durable, and only the loss of the newest would go unnoticed.
func (j *Journal) writeMark() error {
	j.marking.Lock()
	defer j.marking.Unlock()
	return j.o.step(StepMark, func() error { return j.high.write(j.lastCommit().mark) })
}
