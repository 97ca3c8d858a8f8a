package main

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"parley"
)

// TestSavedNamesAreSafe has names by which a sender would write elsewhere, hide something, or show something else.
func TestSavedNamesAreSafe(t *testing.T) {
	for name, want := range map[string]string{
		"plan.pdf": "plan.pdf", "Pläne für März.txt": "Pläne für März.txt",
		"../../.ssh/authorized_keys": "_", "/etc/passwd": "_etc_passwd", `..\..\x`: "_", "C:evil.exe": "C_evil.exe",
		".bashrc": "_bashrc", "..": "file-3", "": "file-3", "   ": "file-3", "a. . .": "a", "con": "_con", "NUL.txt": "_NUL.txt", "com1.log": "_com1.log",
		"a\x00b\x1b[2J\n": "a_b_[2J_", "invoice\u202efdp.exe": "invoice_fdp.exe", "a\u200bb": "a_b", "x\xff": "x_", "what?*": "what__",
		strings.Repeat("ü", 300) + ".txt": "", strings.Repeat("x", 250) + ".tar": "",
	} {
		got := safeName(name, 2)
		switch {
		case want == "_":
			if !strings.HasPrefix(got, "_") || strings.ContainsAny(got, `/\`) {
				t.Errorf("%q: %q", name, got)
			}
		case want != "" && got != want:
			t.Errorf("%q: %q, want %q", name, got, want)
		}
		if !filepath.IsLocal(got) || filepath.Base(got) != got || len(got) > maxSavedBytes || utf8.RuneCountInString(got) > maxSavedName || strings.HasPrefix(got, ".") {
			t.Errorf("%q: %q", name, got)
		}
		if strings.ContainsFunc(got, parley.IsInvisible) {
			t.Errorf("%q shows something else: %q", name, got)
		}
	}
}
