package mailbox

import (
	"testing"
	"unsafe"
)

// TestOpenFormIsSmall checks the bytes of a form, of which a mailbox holds all that are open. What few forms have stands
// behind pointers.
func TestOpenFormIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Form{}); size > 112 {
		t.Errorf("a form takes %d bytes: 112 is the allocator's size below 128", size)
	}
}
