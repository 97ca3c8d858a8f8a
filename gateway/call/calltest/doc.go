// Package calltest has calls that are made to be shown for something else. All places that show calls are tested with it.
package calltest
