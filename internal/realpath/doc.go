// Package realpath tells which file a path leads to, whether it is there or not.
package realpath
