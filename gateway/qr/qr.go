package qr

import (
	"strings"

	"rsc.io/qr"

	"parley"
)

// quiet is the number of light modules around the code, which readers need.
const quiet = 4

// The colours of a terminal in which readers see the code whatever its theme is: white on black, of the fixed palette.
const (
	colors = "\x1b[38;5;231;48;5;16m"
	reset  = "\x1b[0m"
)

// encode refuses with TOO_LARGE a text that no code has room for.
func encode(text string) (*qr.Code, error) {
	c, err := qr.Encode(text, qr.M)
	if err != nil {
		return nil, parley.Refuse(parley.TooLarge, "a text of %d bytes has no place in a QR code", len(text))
	}
	return c, nil
}

// Terminal draws a text in lines of half blocks. Without color it is drawn for a terminal with a dark ground.
func Terminal(text string, color bool) (string, error) {
	c, err := encode(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for y := -quiet; y < c.Size+quiet; y += 2 {
		if color {
			b.WriteString(colors)
		}
		for x := -quiet; x < c.Size+quiet; x++ {
			upper, lower := !c.Black(x, y), !c.Black(x, y+1) && y+1 < c.Size+quiet
			b.WriteString(map[[2]bool]string{{true, true}: "█", {true, false}: "▀", {false, true}: "▄", {false, false}: " "}[[2]bool{upper, lower}])
		}
		if color {
			b.WriteString(reset)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// PNG draws a text as an image.
func PNG(text string) ([]byte, error) {
	c, err := encode(text)
	if err != nil {
		return nil, err
	}
	return c.PNG(), nil
}
