package persistence

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// names flushes the names of a stream's files. The embedded server flushes each write before it acknowledges it. It does
// not flush the name of a file that it has made for it. Without the name there is no file after a power cut. What changes
// in a folder changes its time.
type names struct {
	folder string

	mu sync.Mutex
	at time.Time // of the folder when it was last flushed
}

// tick is longer than the steps in which a disk tells the time: within one, another name may be made.
const tick = 20 * time.Millisecond

// flush blocks until the names of all files are on disk that hold what was acknowledged.
func (n *names) flush() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	info, err := os.Stat(n.folder)
	if err == nil && !info.ModTime().Equal(n.at) {
		if err = SyncFolder(n.folder); err == nil && time.Since(info.ModTime()) > tick {
			n.at = info.ModTime()
		}
	}
	if err != nil {
		return fmt.Errorf("flush the disk: %w", err)
	}
	return nil
}
