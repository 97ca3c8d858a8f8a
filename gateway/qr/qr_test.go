package qr

import (
	"bytes"
	"image/png"
	"strings"
	"testing"

	"rsc.io/qr"

	"parley"
)

const link = "https://node.example:7420/sign-in?code=ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// modules reads a drawing for a terminal back.
func modules(drawn string) (dark [][]bool) {
	for line := range strings.SplitSeq(drawn, "\n") {
		var upper, lower []bool
		for _, r := range line {
			upper = append(upper, r == ' ' || r == '▄')
			lower = append(lower, r == ' ' || r == '▀')
		}
		dark = append(dark, upper, lower)
	}
	return dark
}

func TestDrawingsAreOfTheCode(t *testing.T) {
	want, err := qr.Encode(link, qr.M)
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := Terminal(link, false)
	if err != nil {
		t.Fatal(err)
	}
	got := modules(drawn)
	size := want.Size + 2*quiet
	if len(got) != size+1 || len(got[0]) != size {
		t.Fatalf("%d lines of %d, want %d", len(got), len(got[0]), size)
	}
	b, err := PNG(link)
	if err != nil {
		t.Fatal(err)
	}
	image, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	scale := image.Bounds().Dx() / size
	for y := range size {
		for x := range size {
			is := want.Black(x-quiet, y-quiet)
			if got[y][x] != is {
				t.Fatalf("the terminal shows another module at %d, %d", x, y)
			}
			if r, _, _, _ := image.At(x*scale+scale/2, y*scale+scale/2).RGBA(); r == 0 != is {
				t.Fatalf("the image shows another module at %d, %d", x, y)
			}
		}
	}
}

func TestColorsEndWithTheLine(t *testing.T) {
	plain, err := Terminal(link, false)
	if err != nil {
		t.Fatal(err)
	}
	colored, err := Terminal(link, true)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(colored, "\n") {
		if !strings.HasPrefix(line, colors) || !strings.HasSuffix(line, reset) {
			t.Fatalf("%q", line)
		}
	}
	if got := strings.NewReplacer(colors, "", reset, "").Replace(colored); got != plain {
		t.Errorf("with colours it shows\n%s\nwithout\n%s", got, plain)
	}
}

func TestLongTextHasNoCode(t *testing.T) {
	if _, err := Terminal(strings.Repeat("a", 5000), false); parley.CodeOf(err) != parley.TooLarge {
		t.Error(err)
	}
	if _, err := PNG(strings.Repeat("a", 5000)); parley.CodeOf(err) != parley.TooLarge {
		t.Error(err)
	}
}
