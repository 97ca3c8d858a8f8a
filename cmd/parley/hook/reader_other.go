//go:build !unix

package hook

import (
	"context"
	"os"
)

// WhileRead returns a context that ends with ctx or by cancel: this system does not tell a writer whether the reader of
// a pipe has closed it.
func WhileRead(ctx context.Context, _ *os.File) (while context.Context, cancel context.CancelFunc) {
	return context.WithCancel(ctx)
}
