package web

import "testing"

// TestCommentsAreNotServed leaves out the comments that have lines of their own or end one, and nothing else.
func TestCommentsAreNotServed(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"a(); // b\nc('//d');\n":       "a();\nc('//d');\n",
		"a('b; // c');\n":              "a('b; // c');\n",
		"a('b; // c'); // d; // e\n":   "a('b; // c');\n",
		"a(`b; // c`, d, // e\n`f`)\n": "a(`b; // c`, d,\n`f`)\n",
		"a = b // c\n":                 "a = b // c\n",
		"// a\n  // b\nc();\n":         "\n\nc();\n",
		"/** a\n * b */\nc();\n":       "\n\nc();\n",
		"/* a */ b { c: d }\n":         " b { c: d }\n",
		"/*\n a\n// */ b();\nc();\n":   "\n\n b();\nc();\n",
		"x = a /* b */;\n/* c */\nd()": "x = a /* b */;\n\nd()",
	} {
		if got := string(uncommented([]byte(code))); got != want {
			t.Errorf("%q: %q and not %q", code, got, want)
		}
	}
}
