//go:build unix

package disktest

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// file is a file: as it is read, and as it is on the disk.
type file struct {
	fs.Inode
	disk    *Disk
	data    []byte
	stored  []byte
	pending []change // since the last flush
	mode    uint32
	changed time.Time
}

// change is a write, or a new size where there is no data.
type change struct {
	at   int64
	data []byte
}

// handle is an open file.
type handle struct{ sync bool }

func handleFor(flags uint32) *handle { return &handle{sync: flags&syscall.O_SYNC == syscall.O_SYNC} }

var (
	_ fs.NodeOpener    = (*file)(nil)
	_ fs.NodeReader    = (*file)(nil)
	_ fs.NodeWriter    = (*file)(nil)
	_ fs.NodeFsyncer   = (*file)(nil)
	_ fs.NodeGetattrer = (*file)(nil)
	_ fs.NodeSetattrer = (*file)(nil)
)

// Open implements fs.NodeOpener.
func (f *file) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.onRead != nil {
		return handleFor(flags), fuse.FOPEN_DIRECT_IO, 0 // else the kernel answers reads
	}
	return handleFor(flags), fuse.FOPEN_KEEP_CACHE, 0
}

// Read implements fs.NodeReader.
func (f *file) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if failed := f.disk.hook(func() func(string) error { return f.disk.onRead }, func() string { return f.Path(nil) }); failed != 0 {
		return nil, failed
	}
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	off = min(off, int64(len(f.data)))
	n := copy(dest, f.data[off:])
	return fuse.ReadResultData(dest[:n]), 0
}

// Write implements fs.NodeWriter.
func (f *file) Write(ctx context.Context, h fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	f.disk.mu.Lock()
	hook := f.disk.onWrite
	f.disk.mu.Unlock()
	if hook != nil {
		hook(f.Path(nil))
	}
	f.disk.mu.Lock()
	if grows := off + int64(len(data)) - int64(len(f.data)); grows > 0 {
		data = data[:max(0, int64(len(data))-grows+f.disk.take(grows))] // a gap before it takes room too
	}
	if len(data) == 0 {
		f.disk.mu.Unlock()
		return 0, syscall.ENOSPC
	}
	c := change{at: off, data: append([]byte(nil), data...)}
	f.data = c.apply(f.data)
	f.pending = append(f.pending, c)
	f.disk.note(op{kind: changed, of: &f.Inode, change: c})
	f.changed = time.Now()
	f.disk.mu.Unlock()
	if open, ok := h.(*handle); ok && open.sync {
		return uint32(len(data)), f.Fsync(ctx, h, 0)
	}
	return uint32(len(data)), 0
}

func (c change) apply(to []byte) []byte {
	if c.data == nil {
		if c.at <= int64(len(to)) {
			return to[:c.at:c.at]
		}
		return append(to, make([]byte, c.at-int64(len(to)))...)
	}
	if end := c.at + int64(len(c.data)); end > int64(len(to)) {
		to = append(to, make([]byte, end-int64(len(to)))...)
	}
	copy(to[c.at:], c.data)
	return to
}

// Fsync implements fs.NodeFsyncer.
func (f *file) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	return f.disk.flush(&f.Inode, func(failed bool) {
		if !failed {
			for _, c := range f.pending {
				f.stored = c.apply(f.stored)
			}
		}
		f.pending = nil
	})
}

// Getattr implements fs.NodeGetattrer.
func (f *file) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.attributes(&out.Attr)
	return 0
}

func (f *file) attributes(out *fuse.Attr) {
	out.Mode, out.Size, out.Nlink = syscall.S_IFREG|f.mode, uint64(len(f.data)), 1
	out.Uid, out.Gid = uint32(os.Getuid()), uint32(os.Getgid())
	out.SetTimes(nil, &f.changed, &f.changed)
}

// Setattr implements fs.NodeSetattrer.
func (f *file) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if size, ok := in.GetSize(); ok {
		c := change{at: int64(size)}
		f.data = c.apply(f.data)
		f.pending = append(f.pending, c)
		f.disk.note(op{kind: changed, of: &f.Inode, change: c})
	}
	if mode, ok := in.GetMode(); ok {
		f.mode = mode & 0o7777
	}
	f.attributes(&out.Attr)
	return 0
}
