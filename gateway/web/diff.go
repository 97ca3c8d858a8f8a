package web

import "parley/gateway/call"

// maxOpen bounds the lines of a changed file that are shown at once. More are folded, and the fold says how many.
const maxOpen = 400

// drawnBlock is a block of a call as the page draws it: with the numbers of its lines, and colours.
type drawnBlock struct {
	call.Block
	Rows []drawnLine
}

// drawnLine is a line with its numbers before and after the change. They count from the beginning of what the call names, which
// may be a part of a file; 0 is none.
type drawnLine struct {
	call.Line
	Old, New int
	Runs     []run
}

// run is a part of a line, all of it changed or none.
type run struct {
	Changed bool
	Pieces  []piece
}

// runsOf returns the pieces of a line by whether they changed.
func runsOf(pieces []piece) (runs []run) {
	for _, p := range pieces {
		if n := len(runs); n == 0 || runs[n-1].Changed != p.Changed {
			runs = append(runs, run{Changed: p.Changed})
		}
		last := &runs[len(runs)-1]
		last.Pieces = append(last.Pieces, p)
	}
	return runs
}

// Sign returns the character before the line.
func (l drawnLine) Sign() string {
	switch l.Mark {
	case call.Added:
		return "+ "
	case call.Removed:
		return "− "
	}
	return ""
}

// HasNumbers reports whether the lines of the block have numbers: those of a command line have none.
func (b drawnBlock) HasNumbers() bool { return b.Kind == call.Diff || b.Kind == call.File }

// IsFolded reports whether the lines of the block are folded at first.
func (b drawnBlock) IsFolded() bool { return b.HasNumbers() && len(b.Rows) > maxOpen }

// drawBlocks returns blocks as the page draws them.
func drawBlocks(blocks []call.Block) []drawnBlock {
	drawn := make([]drawnBlock, len(blocks))
	for i, b := range blocks {
		drawn[i] = drawnBlock{b, make([]drawnLine, len(b.Lines))}
		pieces := coloured(b)
		was, is := 0, 0
		for k, l := range b.Lines {
			row := drawnLine{Line: l, Runs: runsOf(pieces[k])}
			if drawn[i].HasNumbers() && (l.Mark == call.Same || l.Mark == call.Removed) && b.Kind == call.Diff {
				was++
				row.Old = was
			}
			if drawn[i].HasNumbers() && (l.Mark == call.Same || l.Mark == call.Added) {
				is++
				row.New = is
			}
			drawn[i].Rows[k] = row
		}
	}
	return drawn
}
