package terminal

import (
	"errors"
	"io"
	"io/fs"
	"os"

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
