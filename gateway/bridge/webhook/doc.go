// Package webhook tells a web server of forms, as Standard Webhooks 1.0 has it: a JSON body, signed with Ed25519 (v1a) and,
// by a secret that the receiver has too, with HMAC (v1). The types are form.opened, form.settled and form.withdrawn. A receiver that answers 410 is told no more.
package webhook
