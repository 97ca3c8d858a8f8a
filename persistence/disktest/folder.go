//go:build unix

package disktest

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// folder is a folder. The inode has the names as they are read, stored those that are on the disk.
type folder struct {
	fs.Inode
	disk    *Disk
	stored  map[string]*fs.Inode
	changed time.Time // the names; guarded by the disk's lock
}

var (
	_ fs.NodeCreater   = (*folder)(nil)
	_ fs.NodeMkdirer   = (*folder)(nil)
	_ fs.NodeLinker    = (*folder)(nil)
	_ fs.NodeUnlinker  = (*folder)(nil)
	_ fs.NodeRmdirer   = (*folder)(nil)
	_ fs.NodeRenamer   = (*folder)(nil)
	_ fs.NodeFsyncer   = (*folder)(nil)
	_ fs.NodeStatfser  = (*folder)(nil)
	_ fs.NodeGetattrer = (*folder)(nil)
)

// Create implements fs.NodeCreater.
func (d *folder) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	if d.isFull() {
		return nil, nil, 0, syscall.ENOSPC
	}
	f := &file{disk: d.disk, mode: mode & 0o7777, changed: time.Now()}
	f.attributes(&out.Attr)
	n := d.NewPersistentInode(ctx, f, fs.StableAttr{Mode: syscall.S_IFREG})
	d.link(name, n)
	return n, handleFor(flags), fuse.FOPEN_KEEP_CACHE, 0
}

// Mkdir implements fs.NodeMkdirer.
func (d *folder) Mkdir(ctx context.Context, name string, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if d.isFull() {
		return nil, syscall.ENOSPC
	}
	sub := &folder{disk: d.disk, changed: time.Now()}
	sub.attributes(&out.Attr)
	n := d.NewPersistentInode(ctx, sub, fs.StableAttr{Mode: syscall.S_IFDIR})
	d.link(name, n)
	return n, 0
}

// Link implements fs.NodeLinker: the file gets a second name.
func (d *folder) Link(_ context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	f, ok := target.(*file)
	if !ok {
		return nil, syscall.EPERM
	}
	d.disk.mu.Lock()
	f.attributes(&out.Attr)
	d.disk.mu.Unlock()
	d.link(name, &f.Inode)
	return &f.Inode, 0
}

// link records a new name.
func (d *folder) link(name string, n *fs.Inode) {
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	d.changed = time.Now()
	d.disk.note(op{kind: linked, of: &d.Inode, name: name, child: n})
}

func (d *folder) isFull() bool {
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	return d.disk.room == 0
}

// Unlink implements fs.NodeUnlinker: the server forgets the name.
func (d *folder) Unlink(_ context.Context, name string) syscall.Errno {
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	d.changed = time.Now()
	d.disk.note(op{kind: unlinked, of: &d.Inode, name: name})
	return 0
}

// Rmdir implements fs.NodeRmdirer.
func (d *folder) Rmdir(ctx context.Context, name string) syscall.Errno {
	if sub := d.GetChild(name); sub != nil && len(sub.Children()) > 0 {
		return syscall.ENOTEMPTY
	}
	return d.Unlink(ctx, name)
}

// Rename implements fs.NodeRenamer: the server moves the name.
func (d *folder) Rename(_ context.Context, name string, to fs.InodeEmbedder, toName string, _ uint32) syscall.Errno {
	failed := d.disk.hook(func() func(string) error { return d.disk.onName }, func() string { return to.EmbeddedInode().Path(nil) + "/" + toName })
	if failed != 0 {
		return failed
	}
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	d.changed = time.Now()
	if f, ok := to.(*folder); ok {
		f.changed = d.changed
	}
	d.disk.note(op{kind: renamed, of: &d.Inode, name: name, child: d.GetChild(name), to: to.EmbeddedInode(), toName: toName})
	return 0
}

// Fsync implements fs.NodeFsyncer: it stores the names, and not the contents of the files.
func (d *folder) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	return d.disk.flush(&d.Inode, func(failed bool) {
		if !failed {
			d.stored = maps.Clone(d.Children())
		}
	})
}

// Statfs implements fs.NodeStatfser.
func (d *folder) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	const blocks = 1 << 20
	*out = fuse.StatfsOut{Blocks: blocks, Bfree: blocks, Bavail: blocks, Bsize: 4096, NameLen: 255, Frsize: 4096}
	return 0
}

// Getattr implements fs.NodeGetattrer.
func (d *folder) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	d.attributes(&out.Attr)
	return 0
}

func (d *folder) attributes(out *fuse.Attr) {
	out.Mode, out.Nlink = syscall.S_IFDIR|0o700, 2
	out.Uid, out.Gid = uint32(os.Getuid()), uint32(os.Getgid())
	out.SetTimes(nil, &d.changed, &d.changed)
}

// writeTo copies the contents of the folder that are on the disk. The disk's lock is held.
func (d *folder) writeTo(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	for name, n := range d.stored {
		var err error
		switch n := n.Operations().(type) {
		case *folder:
			err = n.writeTo(filepath.Join(path, name))
		case *file:
			err = os.WriteFile(filepath.Join(path, name), n.stored, os.FileMode(n.mode))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
