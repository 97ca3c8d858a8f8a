package api

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPagesHaveEveryItemOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []string
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 200<<10), 0, 12).Draw(t, "sizes") {
			all = append(all, fmt.Sprintf("%04d", i)+strings.Repeat("x", n))
		}
		key := func(s string) string { return s[:4] }
		limit := rapid.IntRange(0, 5).Draw(t, "limit")
		var seen []string
		for p := (Paging{Limit: limit}); ; {
			items, paged, err := PageOf(all, p, key)
			if err != nil {
				t.Fatal(err)
			}
			size := 0
			for _, item := range items {
				size += len(item) + 2
			}
			if len(items) > 1 && size > MaxPageBytes || limit > 0 && len(items) > limit || len(items) == 0 && len(all) > 0 {
				t.Fatalf("%d items of %d bytes", len(items), size)
			}
			seen = append(seen, items...)
			if p.After = paged.Next; p.After == "" {
				break
			}
		}
		if strings.Join(seen, "") != strings.Join(all, "") {
			t.Fatalf("%d of %d items", len(seen), len(all))
		}
	})
}

func TestPageContinuesAfterRemovedItem(t *testing.T) {
	names, _, err := PageOf([]string{"a", "c", "d"}, Paging{After: "b"}, func(s string) string { return s })
	if err != nil || fmt.Sprint(names) != "[c d]" {
		t.Errorf("%v %v", names, err)
	}
}
