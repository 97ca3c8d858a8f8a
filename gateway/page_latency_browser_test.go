package gateway

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"parley"
	"parley/events"
)

// TestQuestionIsDrawnAtOnce measures the time from the ask to the drawn question, in an inbox of 400 other messages. The bound
// allows for a machine that is busy with other tests.
func TestQuestionIsDrawnAtOnce(t *testing.T) {
	h := openPageServer(t)
	h.sendMany(400)
	b := h.openBrowser()
	b.open("/mail")
	var took []time.Duration
	for i := range 10 {
		began := time.Now()
		h.ask(parley.Form{Description: fmt.Sprintf("question number %d", i), Fields: []events.Field{{Name: "a"}}})
		b.reads("#stream .entry .what", fmt.Sprintf("question number %d", i))
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("median %v, p90 %v", took[5], took[8])
	if took[2] > time.Second { // what else the machine does makes the others longer
		t.Errorf("the quickest took %v", took[:3])
	}
	b.checkNoFaults()
}
