//go:build unix

package disktest

import (
	"errors"
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

// Disk is a mounted file system. It is safe for concurrent use.
type Disk struct {
	path string
	root *folder

	mu      sync.Mutex
	room    int64 // bytes that files may grow by; less than 0 is no limit
	onFlush func(name string) error
	onWrite func(name string)
	onRead  func(name string) error
	onName  func(name string) error
	record  *Record // nil records nothing
}

// busyFor is how long a disk may have files open after its test: a process that another test starts has those of this one until it runs
// its program.
const busyFor = 10 * time.Second

// Mount mounts an empty disk until the test ends. It skips the test if nothing can be mounted.
func Mount(t testing.TB) *Disk {
	t.Helper()
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skip("no file system can be mounted here: ", err)
	} else if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	d := &Disk{path: t.TempDir(), room: -1}
	d.root = &folder{disk: d}
	long := time.Hour // only the kernel changes the files
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
		d.OnRead(nil)
		d.OnRename(nil)
		err := server.Unmount()
		for end := time.Now().Add(busyFor); errors.Is(err, syscall.EBUSY) && time.Now().Before(end); err = server.Unmount() { // it waits between its attempts
		}
		if err != nil {
			t.Error(err)
		}
		_ = watch.Process.Kill()
		_ = watch.Wait()
	})
	return d
}

// watchdog unmounts the disk when the test's process was killed. A process that waits for its own file system cannot
// end.
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

// SetRoom sets the number of bytes by which files may grow before writes fail with ENOSPC. A disk without room accepts
// no new files either. Less than 0 is no limit.
func (d *Disk) SetRoom(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = bytes
}

// OnFlush sets the function that is called before each flush of a file or folder. It is given the path on the disk. An
// error makes the flush fail with EIO: data since the last flush is readable, and will never be on the disk. fn may
// block.
func (d *Disk) OnFlush(fn func(name string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onFlush = fn
}

// OnWrite sets the function that is called before each write to a file, with its path on the disk. fn may block.
func (d *Disk) OnWrite(fn func(name string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onWrite = fn
}

// OnRead sets the function that is called before each read of a file, with its path on the disk. An error makes the read
// fail with EIO. Files that are open may be read from the kernel's memory without it.
func (d *Disk) OnRead(fn func(name string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onRead = fn
}

// OnRename sets the function that is called before each rename, with the path of the folder and the new name. An error
// makes the rename fail with EIO.
func (d *Disk) OnRename(fn func(name string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onName = fn
}

// hook returns what a hook says of a name.
func (d *Disk) hook(of func() func(string) error, name func() string) syscall.Errno {
	d.mu.Lock()
	fn := of()
	d.mu.Unlock()
	if fn != nil && fn(name()) != nil {
		return syscall.EIO
	}
	return 0
}

// Cut copies the present contents of the disk to a folder, as they would be found after a power failure.
func (d *Disk) Cut(into string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.root.writeTo(into)
}

// take reserves room for a file to grow, and returns how much it got. The lock is held.
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
	d.note(op{kind: flushed, of: n})
	return 0
}
