package parley

// PasskeySignature is what a browser returns when a person signs something with a passkey: the members of a PublicKeyCredential, in
// base64url without padding but for Statement, which is the text that ask_passkey gave.
type PasskeySignature struct {
	Credential    string `json:"credential"` // its ID
	Statement     string `json:"statement"`
	ClientData    string `json:"clientData"`
	Authenticator string `json:"authenticator"` // authenticatorData
	Signature     string `json:"signature"`
}
