package disk

import (
	"cmp"
	"errors"
	"io/fs"
	"syscall"

	"parley/internal/fault"
)

// Hint says what is the matter with a disk or a file, and what to do. It is "" for an error that is neither's.
func Hint(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "the disk is full"
	case errors.Is(err, syscall.EROFS):
		return "its file system is read-only, as after an error of the disk: dmesg and mount say why"
	case errors.Is(err, syscall.EIO):
		return "the disk fails: dmesg says why"
	case errors.Is(err, fs.ErrPermission):
		return "the user that runs this may not use that file: ls -l shows whose it is and its mode; run this as that user, or give the file back with chown and chmod"
	}
	return ""
}

// Unwritable returns the error for a state folder that cannot be used. Another folder is advised only where nothing is the matter that
// could be mended here: it has another node.
func Unwritable(folder string, err error) *fault.Error {
	hint := Hint(err)
	switch {
	case hint == "":
		hint = "choose another with --state or PARLEY_STATE"
	case !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT):
		hint += ". The node is there; --state chooses another folder, with another node"
	}
	return unwritable("the state folder", folder, hint, err)
}

// UnwritableFolder returns the error for any other folder that cannot be used, with a hint for where nothing is the matter with its disk.
func UnwritableFolder(folder, otherwise string, err error) *fault.Error {
	return unwritable("the folder", folder, cmp.Or(Hint(err), otherwise), err)
}

func unwritable(what, folder, hint string, err error) *fault.Error {
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Path == folder {
		err = e.Err
	}
	return fault.Refuse(fault.ReadOnly, "%s %s cannot be written: %v", what, folder, err).WithHint("%s", hint)
}
