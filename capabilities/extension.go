package capabilities

import (
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// The msgpack extension types of Parley. They are never used again for anything else.
const (
	extID     int8 = 1 // an ID: 16 bytes of ULID, 32 of node key
	extRef    int8 = 2 // a Ref: a msgpack array
	extTime   int8 = 3 // a Time: 8 bytes, milliseconds since 1970 in UTC, big endian
	extSealed int8 = 4 // a sealed value: ciphertext
)

var errMalformed = errors.New("malformed encoding")

// decodedNil consumes a nil if there is one.
func decodedNil(dec *msgpack.Decoder) (bool, error) {
	code, err := dec.PeekCode()
	if err != nil || code != msgpcode.Nil {
		return false, err
	}
	return true, dec.DecodeNil()
}

// wantExt consumes the header of an extension that must have this type and length.
func wantExt(dec *msgpack.Decoder, id int8, size int) error {
	got, n, err := dec.DecodeExtHeader()
	if err != nil {
		return err
	}
	if got != id || n != size {
		return fmt.Errorf("%w: extension %d of %d bytes, want %d of %d", errMalformed, got, n, id, size)
	}
	return nil
}
