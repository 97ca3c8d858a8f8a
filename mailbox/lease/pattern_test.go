package lease_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/mailbox/lease"
)

func TestPatternsAreRead(t *testing.T) {
	for _, c := range []struct{ text, folder, want string }{
		{"src/checkout/**", "/srv/shop", "/srv/shop/src/checkout/**"},
		{"./src//a.go", "/srv/shop/", "/srv/shop/src/a.go"},
		{"../other/a.go", "/srv/shop", "/srv/other/a.go"},
		{"/etc/hosts", "/srv/shop", "/etc/hosts"},
		{"port:3000", "", "port:3000"},
		{"Port: 3000", "/srv/shop", "port:3000"},
		{"./Port:3000", "/srv/shop", "/srv/shop/Port:3000"},
		{"branch: Main ", "", "branch:Main"},
		{"branch:feature/rounding", "/srv/shop", "branch:feature/rounding"},
		{`src\a.go`, `C:\shop`, "C:/shop/src/a.go"},
		{`C:\shop\src\*.go`, "/", "C:/shop/src/*.go"},
		{"src/[id]/page.tsx", "/srv/shop", "/srv/shop/src/[id]/page.tsx"},
		{"**/*.sql", "/srv/shop", "/srv/shop/**/*.sql"},
		{"*/src/*", "/srv/shop", "/srv/shop/*/src/*"},
		{"src/*/*", "/srv/shop", "/srv/shop/src/*/*"},
		{"*_test.*", "/srv/shop", "/srv/shop/*_test.*"},
		{"cafe\u0301.txt", "/srv/shop", "/srv/shop/café.txt"},
	} {
		if got, err := lease.Parse(c.text, c.folder); err != nil || string(got) != c.want {
			t.Errorf("%q in %s is %q, want %q: %v", c.text, c.folder, got, c.want, err)
		}
	}
}

// TestPatternsOfEverythingAreRefused refuses patterns that cover a whole folder or system, however they say it.
func TestPatternsOfEverythingAreRefused(t *testing.T) {
	for _, text := range []string{
		"**", "*", ".", "./", "**/*", "*/**", "?*", "***", "**/**", "../shop", "../shop/**", "..", "../**", "/", "/**", "/*", "/srv/**", "/srv", "/*/shop/src",
		"??*", "*??", "**/??*", "**/?????*", "*.*", "**/*.*", "*/*", "**/*/*", "*/*/*/*", "??*/*.*", "/srv/shop/*/*",
		"src/..", "src/../**", "", "port:", "Port: ", "branch:feature/*",
		"src/*/../a", "a\x00b", "a\u202eb", "\xff", strings.Repeat("a", 2000), strings.Repeat("a/", 100), strings.Repeat("*a", 20),
	} {
		if got, err := lease.Parse(text, "/srv/shop"); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
	if _, err := lease.Parse("src", ""); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("a relative pattern without a folder: %v", err)
	}
}

func TestPatternsCover(t *testing.T) {
	for _, c := range []struct {
		pattern, file string
		fold, want    bool
	}{
		{"/w/s/src/**", "/w/s/src/a/b.go", false, true},
		{"/w/s/src/**", "/w/s/srcs/a.go", false, false},
		{"/w/s/src", "/w/s/src/a/b.go", false, true},
		{"/w/s/src/a.go", "/w/s/src", false, false},
		{"/w/s/**/*.sql", "/w/s/db/x/1.sql", false, true},
		{"/w/s/**/*.sql", "/w/s/1.sql", false, true},
		{"/w/s/**/*.sql", "/w/s/1.sq", false, false},
		{"/w/s/a?c", "/w/s/abc", false, true},
		{"/w/s/a?c", "/w/s/ac", false, false},
		{"/w/s/*a*b*", "/w/s/xxaxxbxx", false, true},
		{"/w/s/SRC/a.go", "/w/s/src/A.go", false, false},
		{"/w/s/SRC/a.go", "/w/s/src/A.go", true, true},
		{"/w/s/abc", "/w/s/a*c", false, false}, // a file may have such a name
		{"/w/s/a*c", "/w/s/a*c", false, true},
		{"port:3000", "port:3000", false, true},
		{"port:3000", "port:300", false, false},
	} {
		if got := lease.Pattern(c.pattern).Covers(c.file, c.fold); got != c.want {
			t.Errorf("%s covers %s: %t", c.pattern, c.file, got)
		}
	}
}

// drawn returns patterns and files of few names, so that many fit.
func drawn(part *rapid.Generator[string]) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return "/w/s/" + strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "parts"), "/")
	})
}

// TestOverlapIsACommonFile compares patterns by all short files: they overlap if one is covered by both. Without ** they overlap
// only then: with it, the file may be a deep one.
func TestOverlapIsACommonFile(t *testing.T) {
	var files []string
	names := []string{"a", "b", "ab", "ba", "aa", "bb", "aab", "abb", "bab"}
	for _, one := range names {
		files = append(files, "/w/s/"+one)
	}
	for level, all := 0, files; level < 3; level++ {
		var deeper []string
		for _, f := range all {
			for _, one := range names[:5+4*(1-min(level, 1))] {
				deeper = append(deeper, f+"/"+one)
			}
		}
		files, all = append(files, deeper...), deeper
	}
	part := rapid.SampledFrom([]string{"a", "b", "ab", "*", "?", "a*", "*b", "**", "?b"})
	rapid.Check(t, func(t *rapid.T) {
		a, b := lease.Pattern(drawn(part).Draw(t, "a")), lease.Pattern(drawn(part).Draw(t, "b"))
		got := a.Overlaps(b, false)
		if b.Overlaps(a, false) != got {
			t.Fatalf("%s and %s: not the same the other way", a, b)
		}
		i := slices.IndexFunc(files, func(f string) bool { return a.Covers(f, false) && b.Covers(f, false) })
		if found := i >= 0; found && !got {
			t.Fatalf("%s and %s both cover %s, and do not overlap", a, b, files[i])
		} else if !found && got && !strings.Contains(string(a+b), "**") {
			t.Fatalf("%s and %s overlap, and no file is in both", a, b)
		}
	})
}

// TestTreesAreBounded has paths of commands that hold more than a pattern may: they are of a folder above.
func TestTreesAreBounded(t *testing.T) {
	for path, want := range map[string]string{
		"/w/s/*.go":                             "/w/s/*.go",
		"/w/s/" + strings.Repeat("*a", 20):      "/w/s",
		"/w/" + strings.Repeat("a/*/", 20):      "/w/a",
		"/w/s/" + strings.Repeat("x", 2000):     "/w/s/" + strings.Repeat("x", 2000),
		"/w" + strings.Repeat("/a", 100) + "/b": "/w" + strings.Repeat("/a", 62),
	} {
		if got := lease.Tree(path); string(got) != want {
			t.Errorf("%.80q is %.80q", path, got)
		}
	}
}

// TestComparingIsCheap compares the worst patterns that are taken.
func TestComparingIsCheap(t *testing.T) {
	worst := strings.Repeat("**/", 8) + strings.Repeat("*a", 8) + strings.Repeat("b", 900)
	a, err := lease.Parse(worst, "/srv/shop")
	if err != nil {
		t.Fatal(err)
	}
	b, err := lease.Parse(worst+"c", "/srv/shop")
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1, func() { a.Overlaps(b, false) }); n > 50_000 {
		t.Errorf("%v allocations", n)
	}
}

func TestWritesOfCalls(t *testing.T) {
	for _, c := range []struct {
		tool, input string
		want        []string
	}{
		{"Edit", `{"file_path":"/srv/shop/src/../a.go","old_string":"x"}`, []string{"/srv/shop/src/../a.go"}},
		{"Write", `{"file_path":"src/a.go"}`, []string{"/srv/shop/src/a.go"}},
		{"MultiEdit", `{"file_path":"a"}`, []string{"/srv/shop/a"}},
		{"NotebookEdit", `{"notebook_path":"/n.ipynb"}`, []string{"/n.ipynb"}},
		{"Read", `{"file_path":"/srv/shop/a.go"}`, nil},
		{"Bash", `{"command":"*** Update File: a"}`, nil},
		{"write_file", `{"file_path":"b"}`, []string{"/srv/shop/b"}},
		{"edit", `{"filePath":"b"}`, []string{"/srv/shop/b"}},
		{"apply_patch", `{"command":"*** Begin Patch\n*** Update File: a.go\n*** Move to: b/c.go\r\n@@\n-x\n*** Add File: /tmp/n\n+*** Add File: no\n*** Delete File: a.go\n*** End Patch"}`,
			[]string{"/srv/shop/a.go", "/srv/shop/b/c.go", "/tmp/n"}},
		{"Edit", `{"file_path":7}`, nil},
		{"Edit", `[]`, nil},
	} {
		got, more := lease.Writes(c.tool, []byte(c.input), "/srv/shop")
		if more || !slices.Equal(got, c.want) {
			t.Errorf("%s of %s writes %v", c.tool, c.input, got)
		}
	}
	var patch strings.Builder
	for i := range lease.MaxWrites + 1 {
		patch.WriteString(`*** Add File: ` + strings.Repeat("x", i%40+1) + string(rune('a'+i%26)) + strings.Repeat("y", i/40) + `\n`)
	}
	if got, more := lease.Writes("apply_patch", []byte(`{"input":"`+patch.String()+`"}`), "/w"); !more && len(got) == lease.MaxWrites {
		t.Error("a patch of very many files")
	}
}
