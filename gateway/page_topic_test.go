package gateway

import (
	"net/url"
	"strings"
	"testing"

	"parley"
	"parley/actors"
	"parley/mailbox"
)

// TestTopicIsInMailAndNoAgent makes a topic, and has the page list it with the topics of Mail alone, by plain HTML forms: to subscribe, to
// post, to end that. An agent of the name of none is found nowhere.
func TestTopicIsInMailAndNoAgent(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	if _, _, body := h.get("/topics", "text/html"); !strings.Contains(body, "No topics yet.") {
		t.Errorf("without topics:\n%s", body)
	}
	host := h.node.Host()
	if _, err := actors.TopicsOf(host).Make(t.Context(), "news", ""); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]bool{"/agents": false, "/questions": false, "/access": false, "/topics": true, "/topics/news": true} {
		if _, _, body := h.get(at, "text/html"); strings.Contains(body, `<bdi>news</bdi>`) != want {
			t.Errorf("%s has the topic: %t\n%s", at, !want, body)
		}
	}
	if _, _, body := h.get("/mail", "text/html"); !strings.Contains(body, "/topics\"") {
		t.Error("Mail does not lead to the topics")
	}
	do := func(status int, want string, values url.Values) {
		t.Helper()
		got, _, body := h.postForm("/topics/news", values)
		if got == 303 {
			_, _, body = h.get("/topics/news", "text/html")
		}
		if got != status || !strings.Contains(body, want) {
			t.Errorf("%v: %d, without %q:\n%s", values, got, want, body)
		}
	}
	do(303, "A digest comes to Mail every hour", url.Values{"do": {"subscribe"}, "every": {"60"}})
	do(303, "Each post comes to Mail", url.Values{"do": {"subscribe"}, "every": {"stream"}})
	for range 2 { // a form that is sent again posts once
		do(303, "<strong>twice</strong>", url.Values{"do": {"post"}, "subject": {"<i>Build</i>"}, "text": {"not **twice**"}, "key": {"k1"}})
	}
	if _, err := actors.TopicsOf(h.fae).Post(t.Context(), "news", parley.Post{Text: "<script>alert(1)</script>"}); err != nil {
		t.Fatal(err)
	}
	_, _, body := h.get("/topics/news", "text/html")
	if strings.Contains(body, "<script>alert") || strings.Contains(body, "<i>Build") || strings.Count(body, "twice") != 1 || !strings.Contains(body, "2 posts") || !strings.Contains(body, "fae") {
		t.Errorf("the posts:\n%s", body)
	}
	do(303, "Not subscribed", url.Values{"do": {"unsubscribe"}})
	do(400, "is no time of a digest", url.Values{"do": {"subscribe"}, "every": {"0"}})
	do(400, "there is nothing to post", url.Values{"do": {"post"}, "text": {" "}})
	do(400, "nothing is known of", url.Values{"do": {"odd"}})
	if status, _, _ := h.get("/topics/none", "text/html"); status != 404 {
		t.Errorf("no topic: %d", status)
	}
	if status, _, _ := h.get("/topics/fae", "text/html"); status != 404 {
		t.Errorf("an agent as a topic: %d", status)
	}
	for i := range 60 {
		if _, err := actors.Post(t.Context(), h.fae, mailbox.PostMessage{To: "news", Post: parley.Post{Text: strings.Repeat("x", i+1)}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, body := h.get("/topics/news", "text/html"); !strings.Contains(body, "Older posts") || strings.Contains(body, "twice") {
		t.Error("the newest posts have no older ones")
	}
	if _, _, body := h.get("/topics/news?before=13", "text/html"); !strings.Contains(body, "twice") || strings.Contains(body, "Older posts") {
		t.Errorf("the older posts:\n%s", body)
	}
}
