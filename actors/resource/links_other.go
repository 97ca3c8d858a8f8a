//go:build !unix

package resource

import "io/fs"

// hasOtherNames reports false: this system does not tell.
func hasOtherNames(fs.FileInfo) bool { return false }
