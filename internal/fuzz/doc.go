// Command fuzz runs the fuzz targets of the module, one after the other.
//
//	go run ./internal/fuzz [-for 60s] [-keep 0] [WORD]
//
// It runs each target whose package or name contains WORD, and prints its count of inputs. An input that fails is left
// in testdata/fuzz of its package, as go test leaves it, and the command fails. With -keep N it copies inputs that
// reached new code from the cache to testdata/fuzz. They are of all sizes up to 2 KiB, and N at most.
package main
