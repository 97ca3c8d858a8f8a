package backend

import (
	"testing"

	"parley"
)

// TestSecretsInCallsAreSeen looks for secrets in calls that have some, and in calls that have none.
func TestSecretsInCallsAreSeen(t *testing.T) {
	secret := []string{
		`{"command":"curl -u me:hunter2 https://a.example"}`, `{"command":"curl -H 'Authorization: Bearer abcdef123' a.example"}`,
		`{"command":"git clone https://me:hunter2@a.example/x"}`, `{"command":"export API_KEY=hunter2"}`, `{"command":"login --password hunter2"}`,
		`{"command":"login --password=hunter2"}`, `{"password":"hunter2"}`, `{"options":{"client_secret":"x"}}`, `{"token":123456}`, `{"pin":"1234"}`,
		`{"content":"-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl"}`, `{"content":"aws_secret_access_key = wJalr"}`, `{"command":"echo ghp_0123456789abcdefghij"}`,
		`{"command":"echo AKIAIOSFODNN7EXAMPLE"}`, `{"command":"echo sk-ant-api03-abcdefgh"}`, `{"command":"x eyJhbGciOiJIUzI1NiJ9.eyJzdWIi"}`,
		`{"command":"export API_KEY\u003dhunter2"}`, `{"content":"DB_PASSWORD: hunter2"}`, `{"args":["--token","hunter2"],"x":["token hunter2"]}`, `"password=hunter2"`,
		`{"command":"mysql -u me -phunter2 shop"}`, `{"command":"sshpass -p hunter2 ssh a"}`, `{"command":"echo wJalrXUtnFEMI7K7MDENGbPxRfiCY1"}`,
		`{"content":"{\"apiKey\":\"abc\"}"}`,
	}
	for _, input := range secret {
		if !hasSecret(&parley.Permission{Tool: "shell", Input: input}) {
			t.Errorf("%s: no secret is seen", input)
		}
	}
	if !hasSecret(&parley.Permission{Tool: "shell", Input: `{}`, Reason: "the password is hunter2: password=hunter2"}) {
		t.Error("no secret is seen in what the agent says")
	}
	none := []string{
		`{"command":"make test"}`, `{"command":"git push origin main"}`, `{"command":"go test ./... -run TestTokens"}`, `{"file_path":"/srv/app/tokenizer.go"}`,
		`{"command":"login --password $PASSWORD"}`, `{"command":"curl -H \"Authorization: $AUTH\" a.example"}`, `{"command":"git show 4de356ec0123456789abcdef0123456789abcdef"}`,
		`{"command":"cat docs/AReallyLongNameOfADocument.md"}`, `{"command":"ls -la"}`, `{"n":5}`, `[]`, `{"to":"landlord","amount":80}`,
	}
	for _, input := range none {
		if hasSecret(&parley.Permission{Tool: "shell", Input: input, Folder: "/srv/app"}) {
			t.Errorf("%s: a secret is seen", input)
		}
	}
	folder := "/tmp/TestBuildOfWXyz3427186xQ/001"
	for _, input := range []string{`{"command":"make test"}`, `{"file_path":"` + folder + `/a.go","content":"see ` + folder + `"}`} {
		if hasSecret(&parley.Permission{Tool: "shell", Input: input, Folder: folder}) {
			t.Errorf("%s: the name of its folder is taken for a secret", input)
		}
	}
	if !hasSecret(&parley.Permission{Tool: "shell", Input: `{"command":"cd ` + folder + ` && login --password hunter2"}`, Folder: folder}) {
		t.Error("no secret is seen beside the folder")
	}
}
