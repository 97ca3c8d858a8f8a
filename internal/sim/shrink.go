package sim

// shrink returns a schedule that breaks an invariant of the same kind with as few steps as it can find. It leaves out
// chunks of steps, of half as many each time.
func shrink(s Schedule, broken string) Schedule {
	kept := s.Steps
	fails := func(steps []Step) bool {
		var seen [states]int
		text, _ := run(Schedule{s.Nodes, steps}, &seen, false)
		return text != "" && sameKind(text, broken)
	}
	for size := len(kept) / 2; size > 0; {
		dropped := false
		for at := 0; at < len(kept); {
			end := min(at+size, len(kept))
			without := append(append(make([]Step, 0, len(kept)), kept[:at]...), kept[end:]...)
			if fails(without) {
				kept, dropped = without, true
			} else {
				at = end
			}
		}
		if !dropped || size > 1 {
			size /= 2
		}
	}
	return Schedule{s.Nodes, kept}
}

// sameKind reports whether two broken invariants are the same but for names and numbers.
func sameKind(a, b string) bool { return letters(a) == letters(b) }

// letters returns the words of a text that have neither digits nor capitals.
func letters(text string) string {
	var out, word []byte
	plain := true
	for i := 0; i <= len(text); i++ {
		if i == len(text) || text[i] == ' ' {
			if plain {
				out = append(append(out, word...), ' ')
			}
			word, plain = word[:0], true
			continue
		}
		if c := text[i]; c < 'a' || c > 'z' {
			plain = false
		}
		word = append(word, text[i])
	}
	return string(out)
}
