package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"
)

// clientPage asks as one agent and answers as another. It gets their tokens.
const clientPage = `<!doctype html><link rel="icon" href="data:,"><title>Client</title>
<script type="module">
import { connect } from "/client/client.js";
const asker = await connect({ url: location.origin, token: %q });
const host = await asker.signIn({ token: %q });
const signal = AbortSignal.timeout(20000);
async function answer() {
  for await (const { message } of host.follow({ view: { pending: true }, signal })) {
    if (message.answerNeeded) await host.answer(message.messageId, { a: message.description });
  }
}
answer().catch((e) => (window.failed = String(e)));
const answers = [];
for (const description of ["one", "two", "three"]) {
  const asked = await asker.ask({ recipient: "HOST", description, fields: [{ name: "a" }] });
  answers.push((await asked.answer({ signal })).a);
}
window.answers = answers.join(" ");
</script>`

// TestTypeScriptClientInBrowser counts the calls by HTTP of a page that uses the client.
func TestTypeScriptClientInBrowser(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	passed := &requestRecorder{Handler: http.HandlerFunc(h.server.servePublic)}
	pages := http.NewServeMux()
	pages.Handle("/client/", http.StripPrefix("/client/", http.FileServer(http.Dir(typescript))))
	pages.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, clientPage, makeToken(t, h.fae, "read", "ask"), h.token)
	})
	pages.Handle("/", passed)
	server := httptest.NewServer(pages)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	b := h.openBrowser()
	b.do(chromedp.Navigate(server.URL + "/page"))
	b.until(`window.answers !== undefined || window.failed !== undefined`)
	if got := b.text(`String(window.failed ?? window.answers)`); got != "one two three" {
		t.Errorf("the answers are %s", got)
	}
	for _, operation := range []string{"form", "await", "respond_form", "follow_messages"} {
		if got := len(passed.matching("POST /rpc/" + operation)); got != 0 {
			t.Errorf("%s: %d calls by HTTP, want all over the connection", operation, got)
		}
	}
}
