package outbox

import (
	"maps"
	"slices"
	"testing"

	"parley/events"
	"parley/mailbox"
)

func ackOf(seq uint64, refused string, after uint64) Ack[uint64] {
	return Ack[uint64]{Item: mailbox.OutboxItem{Seq: seq, Kind: events.OutboxCopy}, Refused: refused, After: after}
}

func isLost(after uint64) bool { return after == 9 }

func TestAcksOfLostAppendsDoNotCount(t *testing.T) {
	var s Acks[uint64]
	s.Add(ackOf(1, "", 5), ackOf(2, "", 9), ackOf(3, "", 0))
	if got := slices.Sorted(maps.Keys(s.Seqs(isLost))); !slices.Equal(got, []uint64{1, 3}) {
		t.Errorf("items %v are acknowledged, want 1 and 3", got)
	}
	if got := s.Take(nil, 4); len(got) != 0 || s.Len() != 3 {
		t.Errorf("%d of %d acks are taken, want none: there are fewer than 4", len(got), s.Len())
	}
	got := s.Take([]Ack[uint64]{ackOf(7, "", 0)}, 3)
	if len(got) != 4 || s.Len() != 0 || s.Seqs(isLost) != nil {
		t.Errorf("%d acks are taken, and %d are left", len(got), s.Len())
	}
}

func TestRecordsNameEachItemOnce(t *testing.T) {
	all := Records([]Ack[uint64]{ackOf(1, "", 0), ackOf(2, "FULL: no room", 0), ackOf(1, "FULL: again", 0), ackOf(3, "", 9), ackOf(4, "", 8)}, isLost)
	if len(all) != 2 || all[0].Refused != "FULL: no room" || all[0].Items[0].Seq != 2 {
		t.Fatalf("%+v: want the refusal first", all)
	}
	if all[1].Refused != "" || len(all[1].Items) != 2 || all[1].Items[0].Seq != 1 || all[1].Items[1].Seq != 4 {
		t.Errorf("%+v have arrived, want items 1 and 4", all[1])
	}
	if none := Records(nil, isLost); none != nil {
		t.Errorf("%+v records no acks", none)
	}
}

func TestRefusalsAreSplitOff(t *testing.T) {
	whole := []Ack[uint64]{ackOf(1, "", 0), ackOf(2, "FULL: no room", 0), ackOf(3, "", 0)}
	arrived, refused := Split(whole)
	if len(arrived) != 2 || len(refused) != 1 || arrived[1].Item.Seq != 3 || refused[0].Item.Seq != 2 || whole[1].Item.Seq != 2 {
		t.Errorf("%+v and %+v", arrived, refused)
	}
	var s Acks[uint64]
	mint := ackOf(4, "FULL: no room", 0)
	mint.Item.Kind = events.OutboxMint
	if s.Add(mint); s.HasRefusedCopy() {
		t.Error("a refused grant is taken for a copy")
	}
	if s.Add(refused...); !s.HasRefusedCopy() {
		t.Error("a refused copy is not seen")
	}
	if !mint.IsUrgent() || !refused[0].IsUrgent() || arrived[0].IsUrgent() {
		t.Error("urgent are refusals and grants, and no copy that has arrived")
	}
}

func TestLineEndsOnce(t *testing.T) {
	l := NewLine(2)
	if !l.Takes(2) || l.Takes(3) || !l.Retries(2) || l.Retries(3) {
		t.Error("a line is of one failure of the journal")
	}
	if l.HasRefused() || TurnOf(l.HasRefused(), false) != Decide {
		t.Error("a new line has refused a copy")
	}
	l.Refuse()
	if TurnOf(l.HasRefused(), true) != Refuse || TurnOf(l.HasRefused(), false) != Delay {
		t.Error("what follows a refused copy may be accepted")
	}
	if !l.Break() || l.Break() || !l.IsBroken() || l.Takes(2) {
		t.Error("a broken line goes on")
	}
}
