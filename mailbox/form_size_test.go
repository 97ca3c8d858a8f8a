package mailbox

import (
	"testing"
	"unsafe"

	"parley/events"
)

// TestOpenFormIsSmall checks the bytes of a form, of which a mailbox holds all that are open. What few forms have stands
// behind pointers. The limits are sizes of the allocator: the next are 128 and 448.
func TestOpenFormIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Form{}); size > 112 {
		t.Errorf("a form takes %d bytes, want 112", size)
	}
	if size := unsafe.Sizeof(events.FormRequested{}); size > 416 {
		t.Errorf("its event takes %d bytes, want 416", size)
	}
}
