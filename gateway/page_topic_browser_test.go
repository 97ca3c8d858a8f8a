package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley"
	"parley/actors"
)

// TestTopicIsLiveAndCarriesFiles has posts come to the open page of a topic, while one with a file is written there, and posts that.
func TestTopicIsLiveAndCarriesFiles(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{390, 1280} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			h := openPageServer(t)
			if _, err := actors.TopicsOf(h.node.Host()).Make(t.Context(), "news", ""); err != nil {
				t.Fatal(err)
			}
			b := h.openBrowser()
			b.do(chromedp.EmulateViewport(width, 800))
			b.open("/topics/news")
			b.live()
			b.reads("#agent", "Nothing was posted yet.")
			b.fill("#text", "the log is attached")
			post := func(text string) {
				t.Helper()
				if _, err := actors.TopicsOf(h.fae).Post(t.Context(), "news", parley.Post{Text: text}); err != nil {
					t.Fatal(err)
				}
			}
			post("the build is green")
			b.reads(".topic-posts li:nth-child(1)", "the build is green")
			post("the build is red")
			b.reads(".topic-posts li:nth-child(2)", "the build is red")
			b.reads("#agent", "2 posts")
			b.until(`document.getElementById("text").value === "the log is attached"`)
			log := filepath.Join(t.TempDir(), "build.log")
			if err := os.WriteFile(log, []byte("all of it"), 0o600); err != nil {
				t.Fatal(err)
			}
			b.do(chromedp.SetUploadFiles(".write input[type=file]", []string{log}))
			b.reads(".write .clips", "build.log")
			b.shotIfWanted(fmt.Sprintf("topic-%d", width))
			b.click(".write button[value=post]")
			b.reads(".topic-posts li:nth-child(3)", "the log is attached")
			b.reads(".topic-posts li:nth-child(3) .attachments", "build.log")
			status, _, body := h.get(strings.TrimPrefix(b.text(`document.querySelector(".topic-posts .attachments a").getAttribute("href")`), h.path("")), "text/html")
			if status != 200 || body != "all of it" {
				t.Errorf("%d %q", status, body)
			}
			if wide := b.text(`document.documentElement.scrollWidth > innerWidth`); wide != "false" {
				t.Error("it is wider than its window")
			}
			b.checkNoFaults()
		})
	}
}
