// Package regular opens files that have to be regular ones. A pipe in the place of a file would be waited for, and a link
// could lead elsewhere.
package regular
