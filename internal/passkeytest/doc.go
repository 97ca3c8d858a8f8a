// Package passkeytest has a device with a passkey, for tests.
package passkeytest
