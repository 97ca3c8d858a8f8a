package terminal

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"parley"
)

// Read reads input of at most so many bytes from a person or a program. Its errors contain name.
func Read(r io.Reader, name string, most int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "cannot read %s: %v", name, Reason(err))
	}
	if len(b) > most {
		return nil, TooLong(name, most)
	}
	return b, nil
}

// TooLong returns the error for input that has more than so many bytes.
func TooLong(name string, most int) error {
	return parley.Refuse(parley.TooLarge, "%s has more than %d bytes", name, most)
}

// Reason returns the system's own error of a failed call, without the path that the caller knows.
func Reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// Message returns an error in words, without its code.
func Message(err error) string {
	if e, ok := errors.AsType[*parley.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

// Unwritable returns the error for a state folder that cannot be used.
func Unwritable(folder string, err error) error {
	e := parley.Refuse(parley.ReadOnly, "the state folder %s cannot be written: %v", folder, Reason(err))
	if errors.Is(err, syscall.ENOSPC) {
		return e.WithHint("the disk is full")
	}
	if errors.Is(err, syscall.EROFS) { // first what is the matter: another folder has another node
		return e.WithHint("its file system is read-only, as after an error of the disk: dmesg and mount say why. The node is there; --state chooses another folder, with another node")
	}
	return e.WithHint("choose another with --state or PARLEY_STATE")
}
