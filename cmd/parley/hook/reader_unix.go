//go:build unix

package hook

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const lookEvery = time.Second // for a reader that has gone

// WhileRead returns a context that ends when the reader of a pipe or socket has closed it. The caller calls cancel.
func WhileRead(ctx context.Context, f *os.File) (while context.Context, cancel context.CancelFunc) {
	ctx, cancel = context.WithCancel(ctx)
	raw, err := f.SyscallConn()
	if err != nil {
		return ctx, cancel
	}
	go func() { // ends with ctx
		defer cancel()
		for ctx.Err() == nil {
			gone := false
			if err := raw.Control(func(fd uintptr) {
				look := []unix.PollFd{{Fd: int32(fd)}}
				_, _ = unix.Poll(look, 0)
				gone = look[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
			}); err != nil || gone {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(lookEvery):
			}
		}
	}()
	return ctx, cancel
}
