package resource_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"parley"
	"parley/actors/resource"
	"parley/capabilities"
)

// TestASecretThatIsWrappedIsStruck strikes out a secret that quoted-printable, a shell or a string of a program has broken into lines, with a mark
// at the end of each. A secret that ends as such a mark does is struck out too where a line ends behind it.
func TestASecretThatIsWrappedIsStruck(t *testing.T) {
	for _, secret := range []string{"correct-horse-battery", "Y29ycmVjdC1ob3JzZQ=="} {
		for _, mark := range []string{"=\r\n", "=\n", "\\\n", "\\\r\n", "\n", `=\r\n`, `\\\n`} {
			for at := 1; at < len(secret); at++ {
				got := string(resource.Strike(secret, []byte("key "+secret[:at]+mark+secret[at:]+mark+"end")))
				if got != "key [secret]"+mark+"end" {
					t.Errorf("%q broken at %d by %q: %q", secret, at, mark, got)
				}
			}
		}
		quoted := strings.ReplaceAll(secret, "=", "=3D")
		if got := string(resource.Strike(secret, []byte(quoted[:5]+"=\r\n"+quoted[5:]))); got != "[secret]" {
			t.Errorf("in quoted-printable: %q", got)
		}
		if got := string(resource.Strike(secret, []byte("x="+secret+"\n"))); got != "x=[secret]\n" {
			t.Errorf("at the end of a line: %q", got)
		}
	}
}

// TestASecretIsStruckOut has a server give the secret back in the encodings that servers use.
func TestASecretIsStruckOut(t *testing.T) {
	answer := ""
	header := ""
	server, r := secretOf(t, func(w http.ResponseWriter, req *http.Request) {
		if got := req.Header.Get("Authorization"); got != "Bearer "+secretValue {
			t.Errorf("the request has %q", got)
		}
		w.Header().Set("X-Echo", header)
		w.Header().Set("Set-Cookie", "session=abc")
		_, _ = w.Write([]byte(answer))
	})
	kind := resource.Kinds()[capabilities.KindSecret]
	raw := []byte(secretValue)
	basic := base64.StdEncoding.EncodeToString([]byte("user:" + secretValue))
	wrapped := basic[:20] + "\r\n" + basic[20:]
	unicode, percent, entities := "", "", ""
	for _, c := range raw {
		unicode += fmt.Sprintf(`\u%04X`, c)
		percent += fmt.Sprintf("%%%02X", c)
		entities += fmt.Sprintf("&#x%X;", c)
	}
	mixed := "" // each character by another encoder
	for i, c := range raw {
		mixed += []string{string(rune(c)), fmt.Sprintf("%%%02x", c), fmt.Sprintf("%%25%02X", c), fmt.Sprintf("&#%07d;", c), fmt.Sprintf(`\u%04x`, c), fmt.Sprintf("=%02X", c)}[i%6]
	}
	quoted, err := json.Marshal(map[string]string{"token": secretValue})
	if err != nil {
		t.Fatal(err)
	}
	for name, echoed := range map[string]string{
		"as it is": "you sent Bearer " + secretValue + "!", "upper case": strings.ToUpper(secretValue), "JSON": string(quoted), "JSON, all escaped": unicode, "URL": url.QueryEscape(secretValue), "path": url.PathEscape(secretValue),
		"URL, all escaped": percent, "HTML": html.EscapeString(secretValue), "HTML, all escaped": entities, "base64": basic, "base64 of a URL": base64.RawURLEncoding.EncodeToString([]byte("ab" + secretValue + "c")),
		"base64, wrapped": wrapped, "base64 twice": base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString(raw))), "base32": base32.StdEncoding.EncodeToString([]byte("x" + secretValue)),
		"hex": hex.EncodeToString(raw), "HEX": strings.ToUpper(hex.EncodeToString(raw)), "over a line": secretValue[:9] + "\n" + secretValue[9:], "each in another way": mixed, "base64 within JSON": basic[:20] + `\n` + basic[20:],
	} {
		answer, header = "before "+echoed+" after", strings.NewReplacer("\r", "", "\n", "").Replace(echoed)
		got, err := do(t, kind, r, "request", resource.Input{"url": text(server.URL + "/echo")})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		all, err := json.Marshal(capabilities.Record(got))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := got["text"].AsString()
		if strings.Count(string(all), "[secret]") < 2 || !strings.HasPrefix(body, "before ") || !strings.HasSuffix(body, " after") {
			t.Errorf("%s: the secret stands in %s", name, all)
		}
		if strings.Contains(string(all), "session=abc") {
			t.Errorf("%s: a cookie comes back", name)
		}
	}
	answer = strings.Repeat("x", 128<<10-10) + secretValue + "y" // the end of what is read cuts it in two
	got, err := do(t, kind, r, "request", resource.Input{"url": text(server.URL + "/echo")})
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := got["text"].AsString(); strings.Contains(body, secretValue[:6]) {
		t.Errorf("a part of the secret is at the end: %q", body[len(body)-20:])
	}
}

// TestASecretIsStruckOutByCharacter has encoders escape some characters, and leave others.
func TestASecretIsStruckOutByCharacter(t *testing.T) {
	const value = "Kx9/correct-horse+battery=Zq"
	for _, echoed := range []string{
		"Kx9/correct-horse%2Bbattery%3DZq", "Kx9%2Fcorrect-horse%2bbattery=Zq", "Kx9%252Fcorrect-horse%252Bbattery%253DZq", "Kx9/correct-horse&#43;battery=Zq", "Kx9&#x2F;correct-horse+battery&#x3D;Zq",
		"Kx9&sol;correct-horse&plus;battery&equals;Zq", "&#0000075;x9/correct-horse+battery=Zq", `Kx9\/correct-horse+battery=Zq`, `Kx9/correct-horse\u002Bbattery=Zq`,
	} {
		got := string(resource.Strike(value, []byte("before "+echoed+" after")))
		if wanted := "before [secret] after"; got != wanted {
			t.Errorf("%s: %s", echoed, got)
		}
	}
	for _, other := range []string{"Kx9/correct-horse battery=Zq", "Kx8/correct-horse+battery=Zq", "%", "&#", `\u`, "&;"} {
		if got := string(resource.Strike(value, []byte(other))); got != other {
			t.Errorf("%s: %s", other, got)
		}
	}
}

// TestASecretFollowsNoRedirect has a server send the request on to another host.
func TestASecretFollowsNoRedirect(t *testing.T) {
	asked := 0
	other := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked++ }))
	defer other.Close()
	server, r := secretOf(t, func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, other.URL+"/"+url.PathEscape(secretValue), http.StatusTemporaryRedirect)
	})
	kind := resource.Kinds()[capabilities.KindSecret]
	got, err := do(t, kind, r, "request", resource.Input{"url": text(server.URL + "/")})
	if err != nil {
		t.Fatal(err)
	}
	all, err := json.Marshal(capabilities.Record(got))
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := got["status"].AsInt(); status != http.StatusTemporaryRedirect || asked != 0 || !strings.Contains(string(all), "[secret]") {
		t.Errorf("the answer is %s, and the other host was asked %d times", all, asked)
	}
}

// TestASecretGoesWhereItMay tries addresses that one side reads as another than the other does.
func TestASecretGoesWhereItMay(t *testing.T) {
	asked := 0
	server, r := secretOf(t, func(http.ResponseWriter, *http.Request) { asked++ })
	host := strings.TrimPrefix(server.URL, "https://")
	facet := r.Made.Facet.Narrow(capabilities.Facet{Below: "v1/items", Mode: capabilities.ReadOnly})
	kind := resource.Kinds()[capabilities.KindSecret]
	for _, in := range []resource.Input{
		{"url": text("http://" + host + "/v1/items")}, {"url": text("https://evil.example/v1/items")}, {"url": text("https://" + host + "@evil.example/v1/items")},
		{"url": text("https://evil.example\\@" + host + "/v1/items")}, {"url": text(server.URL + "/v1/items/../../admin")}, {"url": text(server.URL + "/v1/items/%2e%2e/%2e%2e/admin")},
		{"url": text(server.URL + "/v1/items%2f..%2fadmin")}, {"url": text(server.URL + "/v1//items")}, {"url": text(server.URL + "/v1/itemsx")}, {"url": text(server.URL + "/v1/items;/../admin")},
		{"url": text(server.URL + "/v1/items"), "method": text("POST")}, {"url": text(server.URL + "/v1/items"), "method": text("get")}, {"url": text(server.URL + "/v1/items"), "method": text("CONNECT")},
		{"url": text(server.URL + "/v1/items"), "headers": capabilities.Record(map[string]capabilities.Value{"X-HTTP-Method-Override": text("DELETE")})},
		{"url": text(server.URL + "/v1/items"), "headers": capabilities.Record(map[string]capabilities.Value{"Range": text("bytes=0-5")})},
		{"url": text(server.URL + "/v1/items"), "headers": capabilities.Record(map[string]capabilities.Value{"Host": text("evil.example")})},
		{"url": text(server.URL + "/v1/items"), "headers": capabilities.Record(map[string]capabilities.Value{"Accept": text("a\r\nX-Evil: b")})},
	} {
		call, err := kind.Read(r, "request", in)
		if err == nil {
			err = facet.Allows(call.Action, 1)
		}
		if code := parley.CodeOf(err); code != parley.NotPermitted && code != parley.InvalidArgument {
			t.Errorf("%v: %v", in, err)
		}
	}
	call, err := kind.Read(r, "request", resource.Input{"url": text(server.URL + "/v1/items/7?page=2")})
	if err == nil {
		err = facet.Allows(call.Action, 1)
	}
	if err == nil {
		_, err = kind.Invoke(t.Context(), r, call, facet)
	}
	if err != nil || asked != 1 {
		t.Errorf("what it may is refused: %v, after %d requests", err, asked)
	}
}

// TestAnUnreachableHostTellsNothing checks that no error has the secret in it.
func TestAnUnreachableHostTellsNothing(t *testing.T) {
	server, r := secretOf(t, func(http.ResponseWriter, *http.Request) {})
	server.Close()
	kind := resource.Kinds()[capabilities.KindSecret]
	_, err := do(t, kind, r, "request", resource.Input{"url": text(server.URL + "/")})
	if parley.CodeOf(err) != parley.NodeUnreachable || strings.Contains(err.Error(), "Bearer") || strings.Contains(err.Error(), secretValue) {
		t.Errorf("the error is %v", err)
	}
	for _, short := range []string{"", "1234567", "two\nlines of it", " space at the front", strings.Repeat("x", 5000)} {
		if err := resource.CheckSecret(short); err == nil {
			t.Errorf("%.20q is a secret", short)
		}
	}
}

// TestCompressedAnswersAreWithheld has a server compress against what was asked for: as a header says, as the second of two says, and as none says.
// What is compressed and does not have the secret is given.
func TestCompressedAnswersAreWithheld(t *testing.T) {
	var headers []string
	var body []byte
	server, r := secretOf(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header()["Content-Encoding"] = headers
		_, _ = w.Write(body)
	})
	packed := func(text string, by func(io.Writer) io.WriteCloser) []byte {
		var b bytes.Buffer
		w := by(&b)
		if _, err := w.Write([]byte(text)); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	gz := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	zl := func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
	echo := "you sent Bearer " + secretValue + strings.Repeat(" and more", 1000)
	twice := packed(string(packed(echo, gz)), zl)
	cut := packed(echo, gz)
	kind := resource.Kinds()[capabilities.KindSecret]
	for name, c := range map[string]struct {
		headers []string
		body    []byte
		given   bool
	}{
		"br":                         {[]string{"br"}, []byte("x"), false},
		"identity and then gzip":     {[]string{"identity", "gzip"}, packed("x", gz), false},
		"gzip without a header":      {nil, packed(echo, gz), false},
		"zlib without a header":      {nil, packed(echo, zl), false},
		"one in the other":           {nil, twice, false},
		"cut off":                    {nil, cut[:len(cut)-8], false},
		"escaped in it":              {nil, packed(base64.StdEncoding.EncodeToString([]byte(echo)), gz), false},
		"more than is looked into":   {nil, packed(strings.Repeat("x", 64<<20), gz), false},
		"without the secret":         {nil, packed("nothing of it", gz), true},
		"what only begins as such":   {nil, []byte("\x1f\x8b and so on"), true},
		"text that begins with an x": {nil, []byte("x\x9c is no such"), true},
	} {
		headers, body = c.headers, c.body
		got, err := do(t, kind, r, "request", resource.Input{"url": text(server.URL + "/")})
		if c.given && err != nil || !c.given && parley.CodeOf(err) != parley.NotPermitted {
			t.Errorf("%s: given %v, %v", name, got != nil, err)
		}
	}
}
