package gateway

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// sharedBrowser is the browser of all tests without options of their own. Its zero value is a browser to be started.
type sharedBrowser struct {
	mu   sync.Mutex
	ctx  context.Context
	stop func()
}

// The shared browsers of this package's tests. TestMain ends them.
var packageBrowser, wholeBrowser sharedBrowser

// The programs that can open a page, the preferred first. The shell has no windows and no notifications, and takes half the
// processor time.
var (
	wholes = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}
	shells = append([]string{"chromium-headless-shell"}, wholes...)
)

// started returns the context of the browser, and starts one of the programs if it does not run.
func (s *sharedBrowser) started(t *testing.T, programs []string) context.Context {
	t.Helper()
	path := browserPath(t, programs...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx != nil && s.ctx.Err() == nil {
		return s.ctx
	}
	if s.ctx != nil {
		t.Logf("the browser has died and is started again: %v", context.Cause(s.ctx))
		s.stop()
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), browserOptions(path)...)
	s.ctx, _ = chromedp.NewContext(alloc)
	s.stop = stop
	if err := chromedp.Do(s.ctx); err != nil {
		t.Fatal(err)
	}
	return s.ctx
}

// end ends the browser if it runs.
func (s *sharedBrowser) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil {
		return
	}
	if s.ctx.Err() == nil {
		_ = chromedp.Cancel(s.ctx) // otherwise it is killed
	}
	s.stop()
	s.ctx = nil
}

// browserOptions returns the options that all browsers are started with.
func browserOptions(path string, more ...chromedp.ExecAllocatorOption) []chromedp.ExecAllocatorOption {
	return slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WSURLReadTimeout(time.Minute),
		chromedp.WindowSize(1100, 900), chromedp.Flag("lang", "en-GB"),
	}, more)
}
