package disktest

import (
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Disk is a mounted file system. Its methods may be called from any goroutine.
type Disk struct {
	path string
	root *folder

	mu      sync.Mutex
	room    int64 // bytes that files may grow by; less than 0 is no limit
	onFlush func(name string) error
	onWrite func(name string)
}

// Mount mounts an empty disk until the test ends. Where nothing can be mounted the test is skipped.
func Mount(t testing.TB) *Disk {
	t.Helper()
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skip("no file system can be mounted here: ", err)
	} else if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	d := &Disk{path: t.TempDir(), room: -1}
	d.root = &folder{disk: d}
	long := time.Hour // nobody changes the files but by way of the kernel
	server, err := fs.Mount(d.path, d.root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "disktest", Name: "disktest"},
		EntryTimeout: &long, AttrTimeout: &long,
	})
	if err != nil {
		t.Skip("no file system can be mounted here: ", err)
	}
	watch := watchdog(t, d.path)
	t.Cleanup(func() {
		d.OnFlush(nil)
		d.OnWrite(nil)
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
		_ = watch.Process.Kill()
		_ = watch.Wait()
	})
	return d
}

// watchdog takes the disk away when the test's process was killed: a call of its own that waits for an answer of its own
// keeps a process from ending.
func watchdog(t testing.TB, path string) *exec.Cmd {
	t.Helper()
	status := "/proc/" + strconv.Itoa(os.Getpid()) + "/status"
	watch := exec.Command("sh", "-c", `while grep -qs '^State:[^ZX]*$' "$1"; do sleep 1; done; umount -f -l "$2"`, "sh", status, path)
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	return watch
}

// Path returns the folder where the disk is mounted.
func (d *Disk) Path() string { return d.path }

// SetRoom sets how many bytes files may grow by before writes fail with ENOSPC. A disk without any room takes no new
// files either. Less than 0 is no limit.
func (d *Disk) SetRoom(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = bytes
}

// OnFlush has fn called before each flush of a file or folder, by its path on the disk. An error makes the flush fail
// with EIO: what was written since the one before is still read, and will never be on the disk. fn may block.
func (d *Disk) OnFlush(fn func(name string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onFlush = fn
}

// OnWrite has fn called before each write to a file, by its path on the disk. fn may block.
func (d *Disk) OnWrite(fn func(name string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onWrite = fn
}

// Cut writes into a folder what is on the disk at this moment: what would be found after the power was cut.
func (d *Disk) Cut(into string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.root.writeTo(into)
}

// take reserves room for a file to grow, and returns how much of it there is. The lock is held.
func (d *Disk) take(bytes int64) int64 {
	if d.room < 0 {
		return bytes
	}
	bytes = min(bytes, d.room)
	d.room -= bytes
	return bytes
}

// flush calls the hook and then do, with the lock.
func (d *Disk) flush(n *fs.Inode, do func(failed bool)) syscall.Errno {
	d.mu.Lock()
	hook := d.onFlush
	d.mu.Unlock()
	var err error
	if hook != nil {
		err = hook(n.Path(nil))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	do(err != nil)
	if err != nil {
		return syscall.EIO
	}
	return 0
}
