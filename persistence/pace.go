package persistence

import (
	"context"
	"time"

	"parley/internal/fair"
)

const (
	piece       = 2 * time.Millisecond // of a task that reads the whole log, between two rests
	rests       = 3                    // times as long as a piece, so that a quarter of one processor is what others lose
	longestRest = 20 * time.Millisecond
)

// pace has a task that reads the whole log rest three times as long as it works, while others write: backups, checks and archiving. It is
// used by one goroutine.
type pace struct {
	directory *directory
	rest      *fair.Rest
	began     time.Time // of the piece
}

func newPace(d *directory) *pace {
	return &pace{directory: d, rest: fair.NewRest(d.lastCommit().Number), began: time.Now()}
}

// each returns fn with the rests between its calls. It ends with the cause of ctx.
func (p *pace) each(ctx context.Context, fn func(number uint64, bytes []byte) error) func(number uint64, bytes []byte) error {
	return func(number uint64, bytes []byte) error {
		if err := fn(number, bytes); err != nil {
			return err
		}
		now := time.Now()
		took := now.Sub(p.began)
		if took < piece {
			return nil
		}
		if p.rest.Due(p.directory.lastCommit().Number, now) {
			select {
			case <-time.After(min(rests*took, longestRest)):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		p.began = time.Now()
		return nil
	}
}
