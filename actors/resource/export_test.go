package resource

import (
	"io/fs"
	"os"
)

// SameFolder is what enter does with a folder that it has opened.
func SameFolder(opened *os.Root, seen fs.FileInfo) (*os.Root, error) { return sameFolder(opened, seen) }

// Strike strikes a secret out of data.
func Strike(secret string, data []byte) []byte { return newStrike(secret).out(data) }
